"""Where ops run survives every pass: random clusters on random programs, before and after each."""

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from braid.analysis.interpreter import interpret
from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.structure.clusters import (
    complete_clusters,
    has_clusters,
    is_placed,
    verify_clusters,
)
from braid.analysis.structure.verification import verify_module
from braid.dialects.braid.attribute_names import PREPARED_KEYS, RECOMPUTED
from braid.dialects.braid.clusters import Placement, device_name, placement_of
from braid.dialects.braid.names import names_of, set_names
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.passes.infrastructure.registry import pass_table
from braid.passes.partition.apply_clusters import ApplyClustersPass
from braid.support.errors import BraidError
from braid.universe import make_context
from test.unit.passes.partition.random_clusters import split_at_random
from test.unit.passes.random_graphs import programs

DEVICES = ["cpu:0", "npu:0"]
FUSED = "simplify,expand-padding,hoist-parameter-expressions,select-fusion,apply-fusion"
STATES = {
    "graph": "",
    "decided to fuse": "simplify,select-fusion",
    "fused": FUSED,
    "decided on layouts": f"{FUSED},hoist-views,select-layouts",
    "laid out": f"{FUSED},hoist-views,select-layouts,apply-layouts",
    "split": "select-splits{memory=600B}",
    "to be recomputed": "select-rematerialization{tensor-threshold=1}",
}
"""What passes find: each runs on all states in which it does not refuse the module."""

OPTIONS = {
    "select-splits": "{memory=600B}",
    "search-order": "{time-limit=0.05}",
    "split-concats": "{time-limit=0.2}",
    "reorder-sums": "{time-limit=0.2}",
    "attach-streams": "{target=npu-small search-seconds=0}",
    "prepare-backends": "{target=npu-small}",
    "select-layouts": "{target=npu-small}",
    "select-types": "{target=npu-small}",
    "select-rematerialization": "{tensor-threshold=1}",
}
ELSEWHERE = {
    "annotate-profile": "reads a file",
    "select-variants": "reads a file",
    "annotate-weights": "works on products of bytes",
    "apply-convolution-groups": "works on convolutions of bytes",
    "select-convolution-groups": "works on convolutions of bytes",
    "apply-clusters": "makes functions of clusters: test_apply_clusters.py",
    "measure-order": "compiles",
    "assign-inter-op-streams": "works on what apply-clusters leaves",
    "tune-schedules": "compiles",
    "lower-floats-to-cpp": "works on functions for FPGAs",
    "lower-hls-to-cpp": "works on designs",
    "lower-hls-to-verilog": "works on designs",
    "apply-hls-schedule": "works on designs",
    "select-channel-depths": "works on designs",
    "select-hls-schedule": "works on designs",
    "lower-program": "works on planned functions",
    "lower-to-instructions": "makes a stream",
    "convert-braid-to-linalg": "works on kernels",
    "materialize-layouts": "works on kernels",
    "plan-memory": "works on outlined kernels",
    "outline-kernels": "works on what apply-clusters leaves",
    "convert-linalg-to-braid": "runs when a model is read, before there are clusters",
    "split-complex-numbers": "runs when a model is read, before there are clusters",
    "convert-stablehlo-to-braid": "runs when a model is read, before there are clusters",
    "convert-tosa-to-braid": "runs when a model is read, before there are clusters",
}

Home = tuple[str, ...]
"""The names of the ops around an op."""


def placed_ops(module: ModuleOp) -> Iterator[tuple[Operation, Home]]:
    """Return the ops that run in clusters, outside of groups."""

    def visit(op: Operation, home: Home) -> Iterator[tuple[Operation, Home]]:
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    if is_placed(inner):
                        yield inner, home
                    elif inner.regions:
                        number = op.regions.index(region)
                        yield from visit(inner, (*home, str(number), *names_of(inner)))

    for function in module.ops:
        is_function = isinstance(function, FuncOp) and PREPARED_KEYS not in function.attributes
        if is_function and device_name(function) is None:
            yield from visit(function, ())


def placements(module: ModuleOp) -> dict[str, tuple[Placement | None, Home]]:
    return {
        name: (placement_of(op), home) for op, home in placed_ops(module) for name in names_of(op)
    }


def reads_copy(op: Operation) -> bool:
    """Whether `op` reads what was computed again, itself or through views."""
    owners = [operand.owner for operand in op.operands]
    return any(
        isinstance(owner, Operation)
        and (RECOMPUTED in owner.attributes or (is_view(owner) and reads_copy(owner)))
        for owner in owners
    )


def check_survival(
    before: dict[str, tuple[Placement | None, Home]], after: ModuleOp, what: str
) -> None:
    for op, home in placed_ops(after):
        for name in names_of(op):
            if name not in before:
                continue
            known, old_home = before[name]
            own = placement_of(op)
            # A copy in another block is for a reader there, and so is what reads such a copy.
            is_copy = RECOMPUTED in op.attributes or is_view(op)
            left = (own is None or is_copy) and (home != old_home or reads_copy(op))
            assert own == known or left, f"{what}: '{name}' ({op.name}) is {own}, was {known}"


def named_program(text: str, seed: int) -> ModuleOp:
    """Return the program, in which every op has a name and a random cluster."""
    module = parse_mlir(make_context(), text, "p.mlir").module
    for number, op in enumerate(module.walk()):
        if not isinstance(op, ModuleOp | FuncOp) and op.results:
            set_names(op, [f"{op.name}#{number}"])
    split_at_random(module, DEVICES, Random(seed))
    return module


def check_pass(context: Context, module: ModuleOp, name: str, state: str) -> bool:
    """Whether the pass takes the module; it has kept the placements then."""
    (*passes,) = parse_pipeline(name + OPTIONS.get(name, ""))
    before = placements(module)
    for pass_ in passes:
        try:
            pass_.apply(context, module)
        except BraidError:
            return False
    what = f"{name} on '{state}'"
    check_survival(before, module, what)
    if has_clusters(module):
        complete_clusters(module)
        verify_clusters(module)
    verify_module(module)
    return True


def check_all(program: tuple[str, dict[str, np.ndarray]], seed: int) -> set[str]:
    """Run every pass on every state; return the names of passes that accepted some."""
    text, parameters = program
    context = make_context()
    x = np.random.default_rng(0).standard_normal((1, 4, 6, 6)).astype(np.float32)
    (expected,) = interpret(named_program(text, seed), [x], parameters=parameters)
    tolerance = 1e-4 * max(float(np.abs(expected).max()), 1e-6)
    taken: set[str] = set()
    for state, pipeline in STATES.items():
        module = named_program(text, seed)
        try:
            run_pipeline(context, module, pipeline)
        except BraidError:
            continue
        for name in sorted({*pass_table()} - {*ELSEWHERE}):
            copy = module.clone()
            if not check_pass(context, copy, name, state):
                continue
            taken.add(name)
            ApplyClustersPass().apply(context, copy)
            verify_module(copy)
            (actual,) = interpret(copy, [x], parameters=parameters)
            np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance, err_msg=name)
    return taken


SETTINGS = {"deadline": None, "phases": [Phase.generate], "derandomize": True}


@settings(max_examples=1, **SETTINGS)
@given(program=programs(views=True), seed=st.integers(0, 1 << 30))
def test_every_pass(program: tuple[str, dict[str, np.ndarray]], seed: int) -> None:
    check_all(program, seed)


@pytest.mark.slow
@settings(max_examples=100, **SETTINGS)
@given(program=programs(views=True), seed=st.integers(0, 1 << 30))
def test_every_pass_more_often(program: tuple[str, dict[str, np.ndarray]], seed: int) -> None:
    check_all(program, seed)
