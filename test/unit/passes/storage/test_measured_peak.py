"""Random programs through the default pipeline: what they mean, and the memory that they take.

The interpreter runs the planned program; every storage is live from the op that first writes it to
the last one that reads it, as they were run.
"""

import numpy as np
from hypothesis import given, settings
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from braid.analysis.interpreter import evaluate_prepare, interpret
from braid.dialects.braid.attribute_names import ARENA_BOUND, ARENA_BYTES, IN_PLACE
from braid.dialects.braid.buffer import in_place_attribute
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.passes.storage.memory_spaces import MemorySpaces
from braid.passes.storage.placement import live_peak
from braid.passes.storage.plan_memory import PlanMemoryPass
from braid.passes.storage.storage import Storage
from braid.passes.storage.storage_assignment import StorageAssignment
from braid.targets.machines.load import load_target
from braid.universe import make_context
from test.unit.passes.random_graphs import programs

INPUT = np.random.default_rng(0).standard_normal((1, 4, 6, 6)).astype(np.float32)


def declare_in_place(module: ModuleOp) -> None:
    """Lets elementwise kernels write over operands of their result's type."""
    for function in module.ops:
        assert isinstance(function, func.FuncOp)
        body = list(function.body.block.ops)[:-1]
        if function.sym_visibility is not None and all(
            isinstance(op, ElementwiseOp) for op in body
        ):
            inputs, (result, *_) = function.function_type.inputs, function.function_type.outputs
            pairs = [(i, 0) for i, type in enumerate(inputs) if type == result]
            function.attributes[IN_PLACE] = in_place_attribute(pairs)


def entry(module: ModuleOp) -> func.FuncOp:
    return next(f for f in module.ops if isinstance(f, func.FuncOp) and f.sym_visibility is None)


def measured_peak(main: func.FuncOp, trace: list[Operation]) -> tuple[int, int]:
    """Return the most bytes of the arena that were live at once, as run and as predicted."""
    assignment = StorageAssignment(main, MemorySpaces(load_target("host")))
    first: dict[Storage, int] = {}
    last: dict[Storage, int] = {}
    for number, op in enumerate(trace):
        values: list[SSAValue] = [*op.operands, *op.results]
        for storage in (assignment.of[v] for v in values if v in assignment.of):
            if storage.place is None:
                first.setdefault(storage, number)
                last[storage] = number
    live = np.zeros(len(trace) + 1, np.int64)
    for storage, begin in first.items():
        live[begin : last[storage] + 1] += storage.size
    return int(live.max()), live_peak(list(dict.fromkeys(assignment.of.values())))


@settings(max_examples=40, deadline=None)
@given(programs())
def test_meaning_and_peak(program: tuple[str, dict[str, np.ndarray]]) -> None:
    text, parameters = program
    context = make_context()
    module = parse_mlir(context, text, "program.mlir").module
    expected = interpret(module, [INPUT], parameters=parameters)
    run_pipeline(context, module, parse_pipeline("default"))
    declare_in_place(module)
    main = entry(module)
    known = {**parameters, **evaluate_prepare(module, parameters)}
    trace: list[Operation] = []

    def observe(op: Operation, operands: object, results: object) -> None:
        if op.parent_op() is main:
            trace.append(op)

    actual = interpret(module, [INPUT], parameters=known, observer=observe)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)
    measured, predicted = measured_peak(main, trace)
    has_regions = any(
        isinstance(op, scf.IfOp | scf.ForOp | scf.WhileOp | scf.IndexSwitchOp) for op in main.walk()
    )
    assert measured <= predicted
    assert has_regions or measured == predicted
    PlanMemoryPass(time_limit=0.2).apply(context, module)
    sizes = [main.attributes[name].value.data for name in (ARENA_BYTES, ARENA_BOUND)]  # type: ignore[attr-defined]
    assert sizes[1] <= sizes[0] <= predicted * 1.02 + 64 * len(trace)
