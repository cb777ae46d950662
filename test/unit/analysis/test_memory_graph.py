"""A block as arrays: views, control flow, weights, peaks and costs."""

import pytest
from xdsl.dialects.func import FuncOp

from braid.analysis.storage.memory_graph import MemoryGraph
from braid.frontends.mlir import parse_mlir
from braid.support.errors import UnsupportedError
from braid.targets.costs.cost import Source
from braid.targets.costs.cost_source import CostSource
from braid.targets.machines.resolve import resolve_target
from braid.universe import make_context


def graph_of(body: str, arguments: str = "%x: tensor<8xf32>") -> MemoryGraph:
    text = f"func.func @main({arguments}) {{\n{body}\n}}"
    # The signature follows from the terminator, so that tests need not repeat it.
    types = body.rsplit(":", 1)[1].strip()
    text = text.replace(") {", f") -> ({types}) {{", 1)
    module = parse_mlir(make_context(), text, "graph.mlir").module
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    return MemoryGraph.of(function.body.block)


def test_inputs_are_not_counted_and_results_live_to_the_end() -> None:
    graph = graph_of("""
        %0 = braid.neg %x : (tensor<8xf32>) -> tensor<8xf32>
        %1 = braid.abs %x : (tensor<8xf32>) -> tensor<8xf32>
        %2 = braid.exp %1 : (tensor<8xf32>) -> tensor<8xf32>
        func.return %0, %2 : tensor<8xf32>, tensor<8xf32>""")
    assert graph.profile.tolist() == [32, 64, 96]
    assert graph.peak_between(0, 2) == 0  # neither reads results of the other
    assert graph.peak_between(1, 2) == 0


def test_a_peak_between_two_ops_is_that_of_ops_on_a_path() -> None:
    graph = graph_of("""
        %0 = braid.neg %x : (tensor<8xf32>) -> tensor<8xf32>
        %1 = braid.abs %x : (tensor<8xf32>) -> tensor<8xf32>
        %2 = braid.exp %0 : (tensor<8xf32>) -> tensor<8xf32>
        %3 = braid.add %0, %2 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
        func.return %1, %3 : tensor<8xf32>, tensor<8xf32>""")
    assert graph.profile.tolist() == [32, 64, 96, 128]
    assert graph.peak_between(0, 3) == 96  # while op 2 runs; op 1 is on no path from 0 to 3
    assert graph.peak_between(1, 3) == 0


def test_a_view_is_what_it_shows() -> None:
    graph = graph_of("""
        %0 = braid.neg %x : (tensor<8xf32>) -> tensor<8xf32>
        %1 = braid.reshape %0 : (tensor<8xf32>) -> tensor<2x4xf32>
        %2 = braid.exp %1 : (tensor<2x4xf32>) -> tensor<2x4xf32>
        func.return %2 : tensor<2x4xf32>""")
    assert len(graph.ops) == 2
    assert graph.inputs[1] == graph.outputs[0]
    assert graph.profile.tolist() == [32, 64]


def test_weights_take_no_bytes_of_the_arena() -> None:
    graph = graph_of("""
        %w = braid.parameter {key = "w"} : tensor<8xf32>
        %0 = braid.add %x, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
        func.return %0 : tensor<8xf32>""")
    assert len(graph.ops) == 1
    assert graph.peak == 32
    assert sum(graph.sizes) == 96


def test_control_flow_is_one_op_with_workspace() -> None:
    graph = graph_of(
        """
        %0 = braid.neg %x : (tensor<8xf32>) -> tensor<8xf32>
        %1 = scf.if %c -> (tensor<8xf32>) {
          %2 = braid.exp %0 : (tensor<8xf32>) -> tensor<8xf32>
          %3 = braid.abs %2 : (tensor<8xf32>) -> tensor<8xf32>
          scf.yield %3 : tensor<8xf32>
        } else {
          scf.yield %x : tensor<8xf32>
        }
        func.return %1 : tensor<8xf32>""",
        "%x: tensor<8xf32>, %c: i1",
    )
    assert len(graph.ops) == 2
    assert graph.outputs[0][0] in graph.inputs[1]
    assert graph.workspace == (0, 64)
    assert graph.peak == 32 + 32 + 64
    assert [graph.can_recompute(op) for op in range(2)] == [True, False]


def test_a_direct_edge_beside_an_indirect_path() -> None:
    graph = graph_of("""
        %0 = braid.neg %x : (tensor<8xf32>) -> tensor<8xf32>
        %1 = braid.abs %0 : (tensor<8xf32>) -> tensor<8xf32>
        %2 = braid.add %0, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
        func.return %2 : tensor<8xf32>""")
    assert graph.has_indirect_path(0, 2)
    assert not graph.has_indirect_path(0, 1)
    assert not graph.has_indirect_path(1, 2)


def test_open_dims_have_no_bytes() -> None:
    with pytest.raises(UnsupportedError, match="open dim"):
        graph_of("func.return %x : tensor<?xf32>", "%x: tensor<?xf32>")


def test_costs_are_declared_or_a_roofline() -> None:
    graph = graph_of(
        """
        %0 = braid.opaque "f"(%x) {cost = 0.5 : f64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
        %1 = braid.opaque "f"(%0) {cost = {seconds = 2.0 : f64, bytes = 9.0 : f64}}
            : (tensor<64x64xf32>) -> tensor<64x64xf32>
        %2 = braid.matmul %1, %x
            : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
        %3 = braid.neg %2 : (tensor<64x64xf32>) -> tensor<64x64xf32>
        func.return %3 : tensor<64x64xf32>""",
        "%x: tensor<64x64xf32>",
    )
    costs = CostSource(resolve_target("host", {"cpu": "x86-64-v3"}))
    machine = resolve_target("host", {"cpu": "x86-64-v3"}).host_device.machine
    product = 2 * 64**3 / machine.fact("flops")
    moved = 2 * 4 * 64**2 / machine.fact("memory_bandwidth")
    found = [costs.cost(op) for op in graph.ops]
    expected = pytest.approx([0.5, 2.0, max(product, 1.5 * moved), moved])
    assert [cost.seconds for cost in found] == expected
    assert [cost.source for cost in found] == [Source.DECLARED] * 2 + [Source.ROOFLINE] * 2
    assert found[1].declared["bytes"] == found[1].bytes == 9
    assert costs.sources() == "2 declared, 2 roofline"
