"""`search-order` and `apply-order` on random graphs against all orders."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from benchmarks.generators.opaque_modules import random_module
from braid.analysis.diagnostics.remarks import Remark, collect_remarks
from braid.frontends.mlir import parse_mlir
from braid.lowering.npu.lower_block import lower_to_instructions
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.order.block_graph import BlockGraph
from braid.passes.order.latency_problem import latency_problem
from braid.passes.order.memory_problem import memory_problem
from braid.passes.order.search_order import SearchOrderPass
from braid.support.errors import UnsupportedError
from braid.targets.machines.load import load_target
from braid.targets.simulator.simulate import simulate
from braid.universe import make_context


def main_block(module: ModuleOp) -> BlockGraph:
    function = module.body.block.first_op
    assert isinstance(function, func.FuncOp)
    return BlockGraph.of(function.body.block)


def least_peak(block: BlockGraph) -> float:
    """Return the least peak over all orders, by dynamic programming over sets of ops that ran."""
    problem = memory_problem(block, [0] * len(block.ops))
    best = {frozenset[int](): 0}
    for _ in block.ops:
        following: dict[frozenset[int], int] = {}
        for ran, peak in best.items():
            for op in set(range(len(block.ops))) - ran:
                if ran.issuperset(block.graph.predecessors[op]):
                    live = sum(
                        t.size
                        for t in problem.tensors
                        if t.producer in ran | {op} and not ran.issuperset(t.consumers)
                    )
                    grown = ran | {op}
                    following[grown] = min(following.get(grown, 1 << 40), max(peak, live))
        best = following
    return min(best.values())


def total(remarks: list[Remark], pass_name: str) -> Remark:
    return next(r for r in reversed(remarks) if r.pass_name == pass_name)


@given(st.integers(0, 1 << 30), st.integers(2, 9))
@settings(max_examples=60, deadline=None)
def test_the_order_needs_the_least_memory(seed: int, size: int) -> None:
    module = random_module(seed, size)
    expected = least_peak(main_block(module))
    with collect_remarks() as remarks:
        run_pipeline(make_context(), module, "search-order,apply-order,plan-memory")
    found = total(remarks, "search-order").data
    assert found["cost"] == found["lower_bound"] == expected
    applied = main_block(module)
    assert memory_problem(applied, [0] * len(applied.ops)).evaluate(range(size + 1)) == expected
    # A tensor may live in the memory of the output, one float, until that is written.
    arena = total(remarks, "plan-memory").data["arena_bytes"]
    assert isinstance(arena, int) and arena + 4 >= expected


ELEMENTWISE = """func.func @main(%x: tensor<100xf32>) -> tensor<1xf32> {
  %0 = braid.opaque "a"(%x) : (tensor<100xf32>) -> tensor<100xf32>
  %1 = braid.tanh %0 : (tensor<100xf32>) -> tensor<100xf32>
  %2 = braid.opaque "b"(%SOURCE) : (tensor<100xf32>) -> tensor<1xf32>
  %3 = braid.opaque "c"(%1, %2) : (tensor<100xf32>, tensor<1xf32>) -> tensor<1xf32>
  func.return %3 : tensor<1xf32>
}"""


@pytest.mark.parametrize(("source", "floats"), [("0", 101), ("1", 101), ("0, %1", 201)])
def test_a_result_lies_over_an_operand_that_dies(source: str, floats: int) -> None:
    """The tanh needs no memory of its own unless what it reads is read once more."""
    types = ", ".join(["tensor<100xf32>"] * (source.count("%") + 1))
    text = ELEMENTWISE.replace("%SOURCE) : (tensor<100xf32>)", f"%{source}) : ({types})")
    module = parse_mlir(make_context(), text, "f.mlir").module
    with collect_remarks() as remarks:
        run_pipeline(make_context(), module, "search-order")
    assert total(remarks, "search-order").data["cost"] == 4 * floats


@pytest.mark.parametrize("options", ["", "key-nodes-per-subgraph=3", "min-nodes=6", "seed=7"])
def test_cutting_subgraphs_elsewhere_does_not_change_the_value(options: str) -> None:
    costs: set[object] = set()
    for extra in ("", options):
        module = random_module(5, 12)
        with collect_remarks() as remarks:
            run_pipeline(make_context(), module, f"search-order{{{extra}}}")
        costs.add(total(remarks, "search-order").data["cost"])
    assert len(costs) == 1


def test_the_time_limit_is_for_the_whole_module() -> None:
    from time import monotonic

    module = random_module(1, 2000)
    begin = monotonic()
    SearchOrderPass(time_limit=1.0).apply(make_context(), module)
    assert monotonic() - begin < 8.0  # beside other tests


INPUTS = Path(__file__).parents[3] / "passes" / "order" / "Inputs"
OWN = (f"{INPUTS}/chip_{name}.toml" for name in ("two_mpu", "one_dau", "twins"))
CHIPS = ["npu-small", "npu-davinci", *OWN]


@pytest.mark.parametrize("target", CHIPS, ids=lambda target: Path(target).stem)
@pytest.mark.parametrize("seed", range(8))
def test_the_estimate_agrees_with_the_simulator(target: str, seed: int) -> None:
    backend = load_target(target).default_backend
    module = random_module(seed, 40, parameters=0.4, largest=20_000)
    with collect_remarks() as remarks:
        options = f"objective=latency target={target} time-limit=0.5"
        run_pipeline(make_context(), module, f"search-order{{{options}}},apply-order")
    found = total(remarks, "search-order").data
    block = main_block(module)
    estimate = latency_problem(block, backend, {}).evaluate(range(len(block.ops)))
    assert estimate == pytest.approx(found["cost"])
    assert found["cost"] <= found["before"]
    simulated = simulate(lower_to_instructions(block.block, backend), backend)
    assert simulated.seconds == pytest.approx(estimate, rel=0.02)
    assert simulated.seconds >= found["lower_bound"]


def test_control_flow_has_no_stream() -> None:
    text = """func.func @main(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = scf.if %c -> (tensor<4xf32>) { scf.yield %x : tensor<4xf32> }
        else { scf.yield %x : tensor<4xf32> }
      func.return %0 : tensor<4xf32>
    }"""
    module = parse_mlir(make_context(), text, "f.mlir").module
    with pytest.raises(UnsupportedError, match="a stream has no control flow"):
        lower_to_instructions(main_block(module).block, load_target("npu-small").default_backend)
