"""`search-order` against every order of small blocks, each run by the simulator of chips."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from benchmarks.generators.opaque_modules import random_module
from braid.analysis.diagnostics.remarks import collect_remarks
from braid.lowering.npu.lower_block import lower_to_instructions
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.order.block_graph import BlockGraph
from braid.passes.order.latency_problem import chip_problem
from braid.targets.costs.device_rates import DeviceRates
from braid.targets.machines.load import load_target
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.simulate import simulate
from braid.universe import make_context

INPUTS = Path(__file__).parents[3] / "passes" / "order" / "Inputs"
OWN = (f"{INPUTS}/chip_{name}.toml" for name in ("two_mpu", "one_dau", "twins", "narrow_port"))
CHIPS = ["npu-small", "npu-davinci", *OWN]


def graph_of(module: ModuleOp) -> BlockGraph:
    function = module.body.block.first_op
    assert function is not None
    return BlockGraph.of(function.regions[0].block)


def all_orders(graph: BlockGraph, begun: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    if len(begun) == len(graph.ops):
        yield begun
    for op in range(len(graph.ops)):
        if op not in begun and set(begun).issuperset(graph.graph.predecessors[op]):
            yield from all_orders(graph, (*begun, op))


def seconds_of(module: ModuleOp, order: tuple[int, ...], backend: BackendDescription) -> float:
    """Return the simulated time of the ops of `module` in `order`."""
    graph = graph_of(module.clone())
    block = graph.block
    last = block.last_op
    assert last is not None
    for op in [graph.ops[place] for place in order]:
        op.detach()
        block.insert_op_before(op, last)
    return simulate(lower_to_instructions(block, backend), backend).seconds


def check_against_all(target: str, seed: int) -> None:
    backend = load_target(target).default_backend
    module = random_module(seed, 2 + seed % 5, parameters=0.4, largest=20_000)
    times = [seconds_of(module, order, backend) for order in all_orders(graph_of(module))]
    given = tuple(range(len(graph_of(module).ops)))
    before = seconds_of(module, given, backend)
    with collect_remarks() as remarks:
        options = f"objective=latency target={target} time-limit=2"
        run_pipeline(make_context(), module, f"search-order{{{options}}},apply-order")
    own = [r for r in remarks if r.pass_name == "search-order" and "before" in r.data]
    found = own[-1].data if own else None
    taken = seconds_of(module, given, backend)
    if found is None:
        assert len(times) == 1 and taken == before
        return
    cost, bound = found["cost"], found["lower_bound"]
    assert isinstance(cost, float) and isinstance(bound, float)
    assert bound <= min(times) * (1 + 1e-9)
    assert taken in times
    if DeviceRates(backend).crowded_ports():
        assert cost <= taken * 1.02  # what waits for ports comes on top
        return
    assert cost == pytest.approx(taken, rel=0.02)
    if bound >= cost * (1 - 1e-9):
        assert taken <= min(times) * 1.02


@pytest.mark.parametrize("target", CHIPS, ids=lambda target: Path(target).stem)
def test_no_order_of_a_chip_is_faster_than_what_is_proven(target: str) -> None:
    for seed in range(6):
        check_against_all(target, seed)


@pytest.mark.slow
@pytest.mark.parametrize("target", CHIPS, ids=lambda target: Path(target).stem)
def test_no_order_of_many_is_faster_than_what_is_proven(target: str) -> None:
    for seed in range(6, 1700):
        check_against_all(target, seed)


@pytest.mark.parametrize("target", CHIPS, ids=lambda target: Path(target).stem)
def test_an_order_is_costed_as_it_is_lowered(target: str) -> None:
    """However the ops stood before: plans may not depend on that."""
    backend = load_target(target).default_backend
    for seed in (1173, *range(20)):
        module = random_module(seed, 2 + seed % 5, parameters=0.4, largest=20_000)
        searched = chip_problem(graph_of(module), backend, {}).problem
        for order in list(all_orders(graph_of(module)))[:20]:
            copy = module.clone()
            graph = graph_of(copy)
            last = graph.block.last_op
            assert last is not None
            for op in [graph.ops[place] for place in order]:
                op.detach()
                graph.block.insert_op_before(op, last)
            applied = chip_problem(graph_of(copy), backend, {}).problem
            stands = list(range(len(graph.ops)))
            assert applied.evaluate(stands) == searched.evaluate(list(order))
