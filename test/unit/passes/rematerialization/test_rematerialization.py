"""Rematerialization of random programs: same results, peaks as predicted, budgets respected."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from braid.analysis.diagnostics.remarks import Remark, collect_remarks
from braid.analysis.interpreter import interpret_measured
from braid.analysis.storage.memory_graph import MemoryGraph
from braid.analysis.structure.verification import verify_module
from braid.dialects.braid.names import names_of
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.rematerialization.rematerialization_budget import budget_problem
from braid.passes.rematerialization.select_rematerialization import SelectRematerializationPass
from braid.passes.storage.memory_spaces import MemorySpaces
from braid.passes.storage.placement import live_peak
from braid.passes.storage.storage_assignment import StorageAssignment
from braid.solvers.rematerialization import minimum_budget
from braid.support.errors import BraidError, InfeasibleError
from braid.targets.costs.cost_source import CostSource
from braid.targets.machines.load import load_target
from braid.universe import make_context
from test.unit.passes.storage.test_measured_peak import declare_in_place

ROWS, COLUMNS = 4, 8
ARGUMENTS = [
    ("a", (ROWS, 1)),
    ("b", (1, COLUMNS)),
    ("c", (ROWS, COLUMNS)),
]
UNARY = ("neg", "abs", "floor")
BINARY = ("add", "sub", "maximum")


def tensor(shape: tuple[int, int]) -> str:
    return f"tensor<{shape[0]}x{shape[1]}xf32>"


@dataclass
class Program:
    """The text of a function, and the values in it with their shapes."""

    lines: list[str]
    values: list[tuple[str, tuple[int, int]]]

    def add(self, op: str, operands: list[int], shape: tuple[int, int], data: str = "") -> None:
        read = [self.values[index] for index in operands]
        name = f"v{len(self.values)}"
        self.lines.append(
            f"%{name} = braid.{op} {', '.join(f'%{value}' for value, _ in read)} "
            f'{{braid.name = "{name}"{data}}} : '
            f"({', '.join(tensor(s) for _, s in read)}) -> {tensor(shape)}"
        )
        self.values.append((name, shape))

    def text(self, results: list[int]) -> str:
        chosen = [self.values[index] for index in results]
        arguments = ", ".join(f"%{name}: {tensor(shape)}" for name, shape in ARGUMENTS)
        types = ", ".join(tensor(shape) for _, shape in chosen)
        body = "\n".join(self.lines)
        names = ", ".join(f"%{name}" for name, _ in chosen)
        head = f"func.func @main({arguments}) -> ({types})"
        return f"{head} {{\n{body}\nfunc.return {names} : {types}\n}}"


@st.composite
def programs(draw: st.DrawFn, most: int = 12) -> str:
    program = Program([], list(ARGUMENTS))
    for _ in range(draw(st.integers(3, most))):
        # Recent values are read more often, so that the programs are deep.
        recent = st.integers(max(0, len(program.values) - 5), len(program.values) - 1)
        kind = draw(st.sampled_from(("unary", "binary", "binary", "reduce")))
        first = draw(recent)
        shape = program.values[first][1]
        if kind == "unary":
            program.add(draw(st.sampled_from(UNARY)), [first], shape)
        elif kind == "reduce":
            data = ', kind = "maximum", dims = array<i64: 1>'
            program.add("reduce", [first], (shape[0], 1), data)
        else:
            second = draw(st.integers(0, len(program.values) - 1))
            other = program.values[second][1]
            joined = (max(shape[0], other[0]), max(shape[1], other[1]))
            program.add(draw(st.sampled_from(BINARY)), [first, second], joined)
    last = len(program.values) - 1
    earlier = draw(st.lists(st.integers(len(ARGUMENTS), last), max_size=1))
    return program.text([*earlier, last])


def parsed(text: str) -> ModuleOp:
    return parse_mlir(make_context(), text, "program.mlir").module


def transformed(text: str, pipeline: str) -> tuple[ModuleOp, list[Remark]]:
    module = parsed(text)
    with collect_remarks() as remarks:
        run_pipeline(make_context(), module, pipeline)
    verify_module(module)
    return module, remarks


def main_graph(module: ModuleOp) -> MemoryGraph:
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    return MemoryGraph.of(function.body.block)


def run(module: ModuleOp) -> tuple[list[np.ndarray], int]:
    random = np.random.default_rng(0)
    inputs = [random.integers(-9, 9, shape).astype(np.float32) for _, shape in ARGUMENTS]
    result = interpret_measured(module, inputs)
    return result.outputs, result.peak_bytes


def planned_peak(module: ModuleOp) -> int:
    """Bytes that live together by the storages of the kernels, which write over operands."""
    run_pipeline(make_context(), module, "outline-kernels")
    declare_in_place(module)
    main = next(op for op in module.ops if isinstance(op, FuncOp))
    storages = StorageAssignment(main, MemorySpaces(load_target("host"))).of.values()
    for storage in storages:
        is_output = storage.place is not None and storage.place.output_number is not None
        storage.place = None if is_output else storage.place
    return live_peak(list(dict.fromkeys(storages)))


def require_equal(module: ModuleOp, text: str) -> None:
    for actual, expected in zip(run(module)[0], run(parsed(text))[0], strict=True):
        np.testing.assert_array_equal(actual, expected)


@settings(max_examples=60, deadline=None)
@given(programs())
def test_the_graph_predicts_the_peak(text: str) -> None:
    module = parsed(text)
    assert main_graph(module).peak == run(module)[1]


@settings(max_examples=60, deadline=None)
@given(programs())
def test_indirect_paths_are_those_through_another_op(text: str) -> None:
    graph = main_graph(parsed(text))
    count = len(graph.ops)
    reads = {(graph.producer[t], op) for op in range(count) for t in graph.inputs[op]}

    def paths(first: int, last: int, length: int) -> bool:
        """Whether a path has at least `length` edges."""
        if first == last:
            return length <= 0
        return any(paths(op, last, length - 1) for op in range(count) if (first, op) in reads)

    for first in range(count):
        for last in range(first + 1, min(count, first + 6)):
            assert graph.has_indirect_path(first, last) == paths(first, last, 2)


THRESHOLDS = st.fixed_dictionaries(
    {},
    optional={
        "tensor-threshold": st.sampled_from([0, 16, 64]),
        "peak-threshold": st.sampled_from([0, 128, 300]),
        "jump-threshold": st.sampled_from([0, 32, 112]),
        "fusion-rules": st.just("default"),
    },
).filter(bool)


@settings(max_examples=60, deadline=None)
@given(programs(), THRESHOLDS, st.sampled_from(["union", "all"]))
def test_thresholds_keep_the_meaning(text: str, thresholds: dict[str, object], mode: str) -> None:
    options = " ".join(f"{name}={value}" for name, value in thresholds.items())
    select = f"select-rematerialization{{{options} mode={mode}}}"
    module, remarks = transformed(text, f"{select},apply-rematerialization")
    require_equal(module, text)
    fused, _ = transformed(str(module), "select-fusion,apply-fusion")
    require_equal(fused, text)
    left = [name for op in module.walk() for name in op.attributes]
    assert not {"braid.recompute_sets", "braid.recompute_operands"} & set(left)
    assert set().union(*(names_of(op) for op in module.walk())) <= {
        name for op in parsed(text).walk() for name in names_of(op)
    }
    if not remarks[0].data["ops"]:
        assert module.is_structurally_equivalent(parsed(text))


@settings(max_examples=60, deadline=None)
@given(programs())
def test_what_is_too_large_remains_only_beside_its_reader(text: str) -> None:
    """Above a tensor threshold, only copies are read, each by one op or by its own set."""
    limit = 4 * ROWS
    options = f"select-rematerialization{{tensor-threshold={limit}}}"
    graph = main_graph(transformed(text, f"{options},apply-rematerialization")[0])
    for tensor_, readers in enumerate(graph.readers):
        made = graph.producer[tensor_]
        if made >= 0 and graph.sizes[tensor_] > limit and readers:
            mark = graph.ops[made].attributes.get("braid.recomputed")
            assert mark is not None
            marks = [graph.ops[reader].attributes.get("braid.recomputed") for reader in readers]
            assert len(readers) == 1 or marks.count(mark) >= len(readers) - 1


@settings(max_examples=25, deadline=None)
@given(programs(most=9), st.integers(0, 4))
def test_budgets_are_respected(text: str, quarter: int) -> None:
    graph = main_graph(parsed(text))
    least = minimum_budget(
        budget_problem(graph, CostSource(load_target()).seconds), time_limit=1.0
    ).found
    budget = least + max(graph.peak - least, 0) * quarter // 4
    select = f"select-rematerialization{{budget={budget} time-limit=1.0}}"
    module, remarks = transformed(text, f"{select},apply-rematerialization")
    require_equal(module, text)
    assert planned_peak(module) == remarks[0].data["peak_bytes"] <= budget
    assert "braid.order" not in str(module)


def costs(text: str, budgets: list[int]) -> list[Remark]:
    pipeline = "select-rematerialization{{budget={} time-limit=2.0}}"
    return [transformed(text, pipeline.format(budget))[1][-1] for budget in budgets]


@settings(max_examples=8, deadline=None)
@given(programs(most=8))
def test_proven_cost_never_falls_with_the_budget(text: str) -> None:
    graph = main_graph(parsed(text))
    least = minimum_budget(
        budget_problem(graph, CostSource(load_target()).seconds), time_limit=1.0
    ).found
    budgets = sorted({max(graph.peak, least), (graph.peak + least) // 2, least}, reverse=True)
    found = costs(text, [budget for budget in budgets if budget >= least])
    # Sums of the same costs in another order differ by rounding.
    proven = [float(r.data["cost"] or 0.0) for r in found if r.data["gap"] == 0.0]
    assert all(less <= more * (1 + 1e-9) for less, more in pairwise(proven))
    assert all(float(r.data["lower_bound"] or 0.0) <= float(r.data["cost"] or 0.0) for r in found)


CHAIN = """
func.func @main(%a: tensor<4x1xf32>, %b: tensor<1x8xf32>, %c: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = braid.add %a, %b {braid.name = "sum"}
      : (tensor<4x1xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  %1 = braid.mul %0, %c {braid.name = "product"}
      : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %1 : tensor<4x8xf32>
}
"""


MOVED = """
func.func @main(%a: tensor<4x1xf32>, %b: tensor<1x8xf32>) -> tensor<8x4xf32> {
  %0 = braid.add %a, %b {braid.name = "sum"}
      : (tensor<4x1xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  %1 = braid.transpose %0 {permutation = array<i64: 1, 0>, braid.name = "moved"}
      : (tensor<4x8xf32>) -> tensor<8x4xf32>
  func.return %1 : tensor<8x4xf32>
}
"""


def test_an_impossible_budget_names_the_tensors_to_blame() -> None:
    with pytest.raises(InfeasibleError) as caught:
        transformed(MOVED, "select-rematerialization{budget=200}")
    assert "256 bytes are needed by 'moved'" in caught.value.message
    assert "the smallest budget found feasible is 256 bytes" in (caught.value.hint or "")
    assert ["sum" in note.message for note in caught.value.notes] == [True, False]


@pytest.mark.parametrize(
    "options",
    ["", "tensor-threshold=1 budget=2", "tensor-threshold=big", "budget=-1", "mode=all"],
)
def test_parameters_that_make_no_sense(options: str) -> None:
    with pytest.raises(BraidError):
        transformed(CHAIN, f"select-rematerialization{{{options}}}")


def test_python_attributes_and_text_mean_the_same() -> None:
    by_text, _ = transformed(CHAIN, "select-rematerialization{tensor-threshold=100}")
    by_python = parsed(CHAIN)
    run_pipeline(make_context(), by_python, [SelectRematerializationPass(tensor_threshold=100)])
    entry = "attributes {braid.rematerialization = {tensor_threshold = 100 : i64}} {"
    annotated = CHAIN.replace("-> tensor<4x8xf32> {", f"-> tensor<4x8xf32> {entry}")
    by_attribute, _ = transformed(annotated, "select-rematerialization")
    assert "braid.recompute_sets" in str(by_text)
    assert by_text.is_structurally_equivalent(by_python)
    stripped = str(by_attribute).replace(f" {entry[:-2]}", "")
    assert stripped == str(by_text)


def test_options_come_before_attributes() -> None:
    entry = "attributes {braid.rematerialization = {tensor_threshold = 1 : i64}} {"
    annotated = CHAIN.replace("-> tensor<4x8xf32> {", f"-> tensor<4x8xf32> {entry}")
    module, remarks = transformed(annotated, "select-rematerialization{tensor-threshold=1KiB}")
    assert remarks[-1].data["sets"] == 0
    module, _ = transformed(annotated, "select-rematerialization{budget=1KiB}")
    assert "braid.order" in str(module)
