"""What `braid explain` says of layouts."""

import pytest
from xdsl.dialects.func import FuncOp

from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.frontends.mlir import parse_mlir
from braid.passes.layout.layout_report import layout_report
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.layout_costs import LayoutCosts
from braid.targets.machines.load import load_target
from braid.tools.explain.layout_view import LayoutExplanation
from braid.universe import make_context


@pytest.mark.parametrize(("layouts", "proven"), [(8, True), (9, False)])
def test_that_nothing_is_proven_where_sets_are_cut_off(layouts: int, proven: bool) -> None:
    names = [f"l{number}" for number in range(layouts)]
    reorders = ", ".join(
        f'{{source = "l0", target = "{name}", cost = 1.0 : f64}}' for name in names[1:]
    )
    readers = "\n".join(
        f'braid.opaque "u"(%a) {{layouts = [{{operands = ["{name}"], results = []}}], cost = '
        "1.0 : f64}"
        " : (tensor<4xf32>) -> ()"
        for name in names[1:]
    )
    text = (
        f"module attributes {{braid.reorder_costs = [{reorders}]}} {{ func.func @f() {{\n"
        '%a = braid.opaque "a"() {layouts = [{operands = [], results = ["l0"]}], cost = 1.0 : f64}'
        f" : () -> tensor<4xf32>\n{readers}\nfunc.return }} }}"
    )
    module = parse_mlir(make_context(), text, "f.mlir").module
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    report = layout_report(
        function,
        LayoutCosts(module, CostSource(load_target()), "seconds"),
        ExecutionCounts.of(module),
    )
    summary = LayoutExplanation(report, "seconds").summary
    assert ("proven to be within 0.00%" in summary) == proven
    assert ("not all sets of the 9 layouts of a value were tried" in summary) != proven
