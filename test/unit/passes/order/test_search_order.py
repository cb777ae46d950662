"""`search-order` and `apply-order` on random graphs against all orders and against the arena."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import SSAValue

from braid.analysis.remarks import Remark, collect_remarks
from braid.dialects.braid.opaque import OpaqueOp
from braid.passes.manager import run_pipeline
from braid.passes.order.block_graph import BlockGraph
from braid.passes.order.memory_problem import memory_problem
from braid.passes.order.search_order import SearchOrderPass
from braid.universe import make_context


def random_module(seed: int, size: int) -> ModuleOp:
    """A function of `size` opaque ops on tensors of random sizes; every op is used."""
    random = Random(seed)
    function = func.FuncOp("main", ((TensorType(f32, [4]),), ()))
    values: list[SSAValue] = list(function.args)
    unused: list[SSAValue] = []
    for _ in range(size):
        inputs = random.sample(values, min(len(values), random.randint(1, 2)))
        op = OpaqueOp.get("op", inputs, [TensorType(f32, [random.randint(1, 99)])])
        function.body.block.add_op(op)
        values.append(op.results[0])
        unused = [value for value in (*unused, op.results[0]) if value not in inputs]
    last = OpaqueOp.get("last", unused, [TensorType(f32, [1])])
    function.body.block.add_ops([last, func.ReturnOp(last)])
    function.update_function_type()
    return ModuleOp([function])


def main_block(module: ModuleOp) -> BlockGraph:
    function = module.body.block.first_op
    assert isinstance(function, func.FuncOp)
    return BlockGraph.of(function.body.block)


def least_peak(block: BlockGraph) -> float:
    """The least peak over all orders, by dynamic programming over sets of ops that ran."""
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
def test_the_order_needs_the_least_memory_and_the_arena_no_less(seed: int, size: int) -> None:
    module = random_module(seed, size)
    expected = least_peak(main_block(module))
    with collect_remarks() as remarks:
        run_pipeline(make_context(), module, "search-order,apply-order,plan-memory")
    found = total(remarks, "search-order").data
    assert found["cost"] == found["lower_bound"] == expected
    applied = main_block(module)
    assert memory_problem(applied, [0] * len(applied.ops)).evaluate(range(size + 1)) == expected
    arena = total(remarks, "plan-memory").data["arena_bytes"]
    assert isinstance(arena, int) and arena >= expected


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
    assert monotonic() - begin < 4.0
