"""Layouts: a graph in which colours are layouts, and for every op what it decided against."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, Region

from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.layout import ALIASES
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.regions import GroupOp
from braid.passes.layout.layout_report import LayoutReport, OpReport
from braid.targets.costs.model_summary import label_of
from braid.tools.explain.graph_view import (
    RegionLabel,
    function_graph,
    plain_node,
    region_name,
)
from braid.tools.explain.quantities import format_change, format_cost
from braid.tools.explain.views import GraphView, Node, Table

REORDER = "reorder"
_WORDS = {tag: name for name, tag in ALIASES.items() if "H" in name and "I" not in name}


@dataclass(frozen=True)
class LayoutExplanation:
    """What was decided for one function, and in which resource it is counted."""

    report: LayoutReport
    resource: str

    @property
    def summary(self) -> str:
        """One sentence."""
        report, gap = self.report, self.report.cost - self.report.lower_bound
        share = gap / report.cost if report.cost else 0.0
        count = len(report.reorders)
        if report.most_layouts is None:
            proof = f"proven to be within {share:.2%} of the least possible"
        else:
            proof = (
                f"which is not proven to be the least: not all sets of the {report.most_layouts} "
                "layouts of a value were tried"
            )
        return (
            f"Expected cost {format_cost(report.cost, self.resource)}, {proof}; "
            f"{count} reorder{'' if count == 1 else 's'}."
        )

    def table(self) -> Table:
        """A row per op: its layouts, who makes its kernel, its cost, and what was next best."""
        columns = ("op", "runs", "layouts", "kernel", "cost of a run", "next best", "in all")
        return Table(columns, tuple(map(self._row, self.report.ops)))

    def reorders(self) -> Table:
        """A row per reorder."""
        rows = tuple(
            (
                _value_label(reorder.value.owner),
                f"{reorder.source} → {reorder.target}",
                f"{reorder.executions:g}",
                format_cost(reorder.cost, self.resource),
            )
            for reorder in self.report.reorders
        )
        return Table(("reordered value", "layouts", "runs", "cost of a run"), rows)

    def view(self, function: FuncOp, counts: ExecutionCounts) -> GraphView:
        """The graph of `function`, to which the layouts were applied since."""
        by_op = {id(op.op): op for op in self.report.ops}
        used: Counter[str] = Counter()

        def node_of(op: Operation) -> Node:
            node = plain_node(op)
            colour = REORDER if _is_reorder(op) else _tag(op)
            used[colour] += 1
            if (report := by_op.get(id(op))) is None:
                return replace(node, colour=colour)
            facts = (*node.facts, ("runs", f"{report.executions:g}"))
            return replace(node, colour=colour, facts=facts, choices=self.choices(report))

        graph = function_graph(function, node_of, _region_label(counts))
        legend = {key: _words(key) for key, _ in used.most_common() if key}
        return GraphView("Layouts", self.summary, graph, legend)

    def choices(self, op: OpReport) -> Table:
        """A row per choice of an op; the one that was taken is marked."""
        best = self.report.cost
        rows = tuple(
            (
                "●" if index == op.chosen else "",
                _arrow(choice.layouts),
                choice.family,
                choice.source,
                format_cost(choice.cost, self.resource),
                format_change(choice.total, best, self.resource),
            )
            for index, choice in enumerate(op.choices)
        )
        total = "in all" if op.is_exact else "in all, at most"
        return Table(("", "layouts", "kernel", "by", "a run", total), rows)

    def _row(self, op: OpReport) -> tuple[str, ...]:
        chosen = op.choices[op.chosen]
        taken = (
            label_of(op.op),
            f"{op.executions:g}",
            _arrow(chosen.layouts),
            chosen.family,
            format_cost(chosen.cost, self.resource),
        )
        others = [c for index, c in enumerate(op.choices) if index != op.chosen]
        if not others:
            return (*taken, "no other", "")
        other = min(others, key=lambda choice: choice.total)
        change = format_change(other.total, self.report.cost, self.resource)
        return (*taken, f"{_arrow(other.layouts)} {other.family}".rstrip(), change)


def _region_label(counts: ExecutionCounts) -> RegionLabel:
    def label(op: Operation, region: Region) -> str:
        return f"{region_name(op, region)}, runs {counts.of_block(region.block):g}"

    return label


def _arrow(choice: LayoutChoice) -> str:
    """Equal neighbours are written once; weights keep their packing."""
    operands = _joined(str(layout) for layout in choice.operands)
    return f"{operands} → {_joined(str(layout) for layout in choice.results)}"


def _joined(names: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _value_label(owner: object) -> str:
    return label_of(owner) if isinstance(owner, Operation) else "input"


def _is_reorder(op: Operation) -> bool:
    return isinstance(op, GroupOp) and isinstance(op.body.block.first_op, ReorderOp)


def _tag(op: Operation) -> str:
    tensors = [result for result in op.results if isinstance(result.type, TensorType)]
    return str(layout_of(tensors[0].type)) if tensors else ""


def _words(key: str, names: Mapping[str, str] = _WORDS) -> str:
    return f"{key} ({names[key]})" if key in names else key
