"""Decisions and claims that are tampered with: each has to be found, and to crash the pass."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

import braid.analysis.storage.liveness as liveness
import braid.passes.layout.select_layouts as layouts
import braid.passes.order.search_order as ordering
import braid.passes.rematerialization.rematerialization_budget as budget
import braid.passes.rematerialization.select_rematerialization as rematerialization
import braid.passes.storage.call_storage as call_storage
import braid.passes.storage.plan_memory as plan_memory
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.decision_checks import VARIABLE, verifying_decisions
from braid.passes.infrastructure.manager import PassCrashError, run_pipeline
from braid.solvers.ordering import Order
from braid.solvers.strategy import Solution
from braid.support.errors import UnsupportedError
from braid.tools.braid_opt import main
from braid.universe import make_context

LAYOUTS = """
module attributes {braid.reorder_costs = [{source = "l0", target = "l1", cost = 3.0 : f64},
                                          {source = "l1", target = "l0", cost = 3.0 : f64}]} {
  func.func @f(%n: index, %c: i1) {
    %x = braid.opaque "x"() {layouts = [{operands = [], results = ["l0"], cost = 1.0 : f64},
                                        {operands = [], results = ["l1"], cost = 2.0 : f64}]}
        : () -> tensor<4xf32>
    scf.if %c {
      braid.opaque "y"(%x) {layouts = [{operands = ["l0"], results = [], cost = 7.0 : f64},
                                       {operands = ["l1"], results = [], cost = 1.0 : f64}]}
          : (tensor<4xf32>) -> ()
      scf.yield
    } {braid.branch_probability = 0.5 : f64}
    func.return
  }
}
"""
"""Best is l1 for x: 2 + 1/2."""

DIAMOND = """
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = braid.opaque "a"(%x) {cost = 1.0} : (tensor<8xf32>) -> tensor<64xf32>
  %b = braid.opaque "b"(%a) {cost = 2.0} : (tensor<64xf32>) -> tensor<4xf32>
  %c = braid.opaque "c"(%x) {cost = 3.0} : (tensor<8xf32>) -> tensor<32xf32>
  %d = braid.opaque "d"(%c) {cost = 4.0} : (tensor<32xf32>) -> tensor<4xf32>
  %e = braid.opaque "e"(%b, %d, %a) {cost = 5.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<64xf32>) -> tensor<8xf32>
  func.return %e : tensor<8xf32>
}
"""

HUGE = """
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = braid.opaque "a"(%x) {cost = 1.0} : (tensor<8xf32>) -> tensor<6755402259628550xf32>
  %b = braid.opaque "b"(%a) {cost = 1.0} : (tensor<6755402259628550xf32>) -> tensor<8xf32>
  func.return %b : tensor<8xf32>
}
"""

LAUNCHES = """
module attributes {braid.target = #braid.target<"host-2">} {
  func.func @f(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %a, %s = braid.launch async [] @one(%x) : (tensor<8xf32>) -> tensor<8xf32>
    %b, %t = braid.launch async [%s] @two(%a) : (tensor<8xf32>) -> tensor<8xf32>
    %c, %u = braid.launch async [] @two(%x) : (tensor<8xf32>) -> tensor<8xf32>
    %d = braid.await [%t] %b : (tensor<8xf32>) -> tensor<8xf32>
    %e = braid.await [%u] %c : (tensor<8xf32>) -> tensor<8xf32>
    func.return %d, %e : tensor<8xf32>, tensor<8xf32>
  }
  func.func private @one(%x: tensor<8xf32>) -> tensor<8xf32> attributes {braid.device = "cpu:0"} {
    %y = braid.opaque "one"(%x) {cost = 1.0} : (tensor<8xf32>) -> tensor<8xf32>
    func.return %y : tensor<8xf32>
  }
  func.func private @two(%x: tensor<8xf32>) -> tensor<8xf32> attributes {braid.device = "cpu:1"} {
    %y = braid.opaque "two"(%x) {cost = 2.0} : (tensor<8xf32>) -> tensor<8xf32>
    func.return %y : tensor<8xf32>
  }
}
"""
"""Four seconds where c is launched first, five as it stands."""

CALLS = """
func.func @f(%x: tensor<16xf32>, %n: index) -> tensor<16xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = func.call @k(%x, %x) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %b = func.call @k(%a, %x) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%s = %x) -> (tensor<16xf32>) {
    %t = func.call @k(%s, %a) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    %u = func.call @k(%t, %s) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    scf.yield %u : tensor<16xf32>
  }
  %y = func.call @k(%r, %b) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  func.return %y : tensor<16xf32>
}
func.func private @k(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    attributes {braid.scratch_bytes = 64 : i64}
"""


def crash(text: str, pipeline: str) -> str:
    """Return the message of the crash with which the last pass of a pipeline ends."""
    context = make_context()
    module = parse_mlir(context, text, "f.mlir").module
    with verifying_decisions(), pytest.raises(PassCrashError) as caught:
        run_pipeline(context, module, pipeline)
    return str(caught.value)


def runs(text: str, pipeline: str) -> None:
    context = make_context()
    with verifying_decisions():
        run_pipeline(context, parse_mlir(context, text, "f.mlir").module, pipeline)


def after(function: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return `function` with its result changed."""

    def changed(*args: Any, **kwargs: Any) -> Any:
        return change(function(*args, **kwargs))

    return changed


@pytest.mark.parametrize(
    ("text", "pipeline"),
    [
        (LAYOUTS, "select-layouts,apply-layouts"),
        (DIAMOND, "search-order,apply-order"),
        (DIAMOND, "search-order{objective=latency},apply-order"),
        (LAUNCHES, "search-order{objective=latency},apply-order"),
        (DIAMOND, "select-rematerialization{budget=320},apply-rematerialization"),
        (DIAMOND, "select-rematerialization{tensor-threshold=0},apply-rematerialization"),
        (CALLS, "plan-memory"),
    ],
)
def test_what_is_right_passes(text: str, pipeline: str) -> None:
    runs(text, pipeline)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda s: replace(s, cost=s.cost / 2), "cost 1.25 claimed, 2.5 found"),
        (lambda s: replace(s, lower_bound=s.cost * 2), "lower_bound 5 claimed, more than the cost"),
        (lambda s: replace(s, assignment=_other(s)), "claimed, "),
    ],
)
def test_layouts(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Solution], Solution], says: str
) -> None:
    monkeypatch.setattr(layouts, "solve", after(layouts.solve, change))
    message = crash(LAYOUTS, "select-layouts")
    assert message.startswith("pass 'select-layouts' crashed: it claims what does not hold: '@f'")
    assert says in message


def _other(solution: Solution) -> tuple[int, ...]:
    """Return the assignment in which the reader takes its other layout, with a reorder for it."""
    first, *rest = solution.assignment
    assert not first
    return (0, 0, *(1 - x for x in rest[1:2]), *rest[2:])


def test_peaks_of_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "peak_usage", after(layouts.peak_usage, lambda peak: peak - 1))
    message = crash(LAYOUTS, "select-layouts{memory-limit=64}")
    assert "a peak of 16 bytes is claimed to be 15" in message


@pytest.mark.parametrize("objective", ["memory", "latency"])
@pytest.mark.parametrize("what", ["value", "order", "bound"])
def test_orders(monkeypatch: pytest.MonkeyPatch, objective: str, what: str) -> None:
    changes = {"value": lambda x: x * 0.9, "bound": lambda x: x * 1.1}
    run = ordering.SubgraphSearch.run

    def tampered(search: ordering.SubgraphSearch) -> Any:
        subgraphs, order = run(search)
        if what == "value":
            order = replace(order, value=changes["value"](order.value))
        elif what == "bound":
            order = replace(order, lower_bound=changes["bound"](order.value))
        else:
            # a, c, b, d, e needs more bytes than any other; none needs more time, so less is said.
            order = Order((0, 2, 1, 3, 4), order.value * 0.999, order.lower_bound * 0.9)
        return subgraphs, order

    monkeypatch.setattr(ordering.SubgraphSearch, "run", tampered)
    message = crash(DIAMOND, f"search-order{{objective={objective}}}")
    assert "claimed" in message and "'@f'" in message


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda x: replace(x, value=3.0), "cost 3 claimed, 4.00002001 found"),
        (lambda x: replace(x, lower_bound=4.5), "lower_bound 4.5 claimed, more than the cost"),
        (lambda x: replace(x, order=(0, 1, 2, 3, 4)), "cost 4.00002001 claimed, 5.00002001 found"),
    ],
    ids=["value", "bound", "order"],
)
def test_orders_of_launches(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Order], Order], says: str
) -> None:
    run = ordering.SubgraphSearch.run

    def tampered(search: ordering.SubgraphSearch) -> Any:
        subgraphs, order = run(search)
        return subgraphs, change(order) if len(order.order) == 5 else order

    monkeypatch.setattr(ordering.SubgraphSearch, "run", tampered)
    message = crash(LAUNCHES, "search-order{objective=latency}")
    assert says in message and "'@f'" in message


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda s: replace(s, peak=s.peak - 4), "peak_bytes"),
        (lambda s: replace(s, duration=s.duration * 0.99), "cost"),
        (lambda s: replace(s, sequence=(0, 1, 2, 3, 4)), "peak_bytes"),
    ],
)
def test_budgets(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any], says: str) -> None:
    monkeypatch.setattr(budget, "solve", after(budget.solve, change))
    message = crash(DIAMOND, "select-rematerialization{budget=320}")
    assert f"{says} " in message and "claimed" in message


def test_counts_of_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    write = rematerialization.write_sets

    def tampered(sets: Sequence[Any]) -> None:
        write(sets)
        _clear(sets[0].members[0], list(sets[0].members[0].parent.ops))

    monkeypatch.setattr(rematerialization, "write_sets", tampered)
    message = crash(DIAMOND, "select-rematerialization{tensor-threshold=200}")
    assert "sets of" in message or "cannot be applied" in message


def _clear(marked: Operation, ops: Sequence[Operation]) -> None:
    for op in ops:
        for name in [name for name in op.attributes if name.startswith("braid.recompute")]:
            del op.attributes[name]


def test_plans_in_which_all_is_at_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    pack = plan_memory.place_in_arenas

    def tampered(storages: Sequence[Any], time_limit: float) -> Any:
        arenas = pack(storages, time_limit)
        for storage in storages:
            if storage.place is not None and storage.place.space.data == "arena":
                storage.place = type(storage.place).of("arena", 0)
        return arenas

    monkeypatch.setattr(plan_memory, "place_in_arenas", tampered)
    message = crash(CALLS, "plan-memory")
    assert "pass 'plan-memory' crashed: it claims what does not hold" in message


def test_plans_that_forget_that_loops_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a loop reads from outside it reads again; an allocator that forgets that reuses it."""
    monkeypatch.setattr(liveness, "LOOPS", ())
    assert "where something else was written since" in crash(CALLS, "plan-memory")


def test_plans_that_write_over_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_storage, "in_place_pairs", lambda call: [(0, 0), (1, 0)])  # type: ignore
    assert "as it reads it" in crash(CALLS, "plan-memory")


@pytest.mark.parametrize("bytes_", [-64, 64])
def test_sizes_of_arenas(monkeypatch: pytest.MonkeyPatch, bytes_: int) -> None:
    record = plan_memory.record_sections

    def tampered(module: Any, *sections: Any) -> None:
        record(module, *sections)
        function = next(op for op in module.ops if isinstance(op, FuncOp))
        size = function.attributes["braid.arena_bytes"]
        function.attributes["braid.arena_bytes"] = IntegerAttr(size.value.data + bytes_, i64)

    monkeypatch.setattr(plan_memory, "record_sections", tampered)
    message = crash(CALLS, "plan-memory")
    assert "of arena" in message or "arena of" in message


def test_a_wrong_claim_leaves_a_reproducer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    change = lambda s: replace(s, cost=s.cost / 2)  # noqa: E731
    monkeypatch.setattr(layouts, "solve", after(layouts.solve, change))
    source, reproducer = tmp_path / "f.mlir", tmp_path / "r.mlir"
    source.write_text(LAYOUTS)
    arguments = [str(source), "-p", "hoist-views,select-layouts", "-o", str(tmp_path / "out.mlir")]
    assert main([*arguments, "--crash-reproducer", str(reproducer)]) == 0
    assert not reproducer.exists()
    checked = [*arguments, "--verify-decisions", "--crash-reproducer", str(reproducer)]
    assert main(checked) == 1
    said = capsys.readouterr().err
    assert "cost 1.25 claimed, 2.5 found" in said and str(reproducer) in said
    assert "--verify-decisions" in reproducer.read_text()
    again = ["--run-reproducer", "--verify-decisions", str(reproducer), "-o", str(tmp_path / "o")]
    assert main([*again, "--crash-reproducer", str(tmp_path / "again.mlir")]) == 1


def test_a_plan_that_no_memory_holds() -> None:
    module = parse_mlir(make_context(), HUGE, "huge.mlir").module
    with (
        verifying_decisions(),
        pytest.raises(UnsupportedError, match="out of memory: the tags of a plan"),
    ):
        run_pipeline(make_context(), module, [plan_memory.PlanMemoryPass()])
