"""Layouts: the decision for every op, and the rejected alternatives."""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Operation

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.passes.layout.layout_report import LayoutReport, OpReport
from braid.targets.costs.model_summary import label_of
from braid.tools.explain.quantities import format_change, format_cost
from braid.tools.explain.views import Table


@dataclass(frozen=True)
class LayoutExplanation:
    """The layouts that were decided for one function, and the resource that their cost counts."""

    report: LayoutReport
    resource: str

    @property
    def summary(self) -> str:
        """One sentence."""
        report, gap = self.report, self.report.cost - self.report.lower_bound
        share = gap / report.cost if report.cost else 0.0
        count = len(report.reorders)
        if report.most_layouts is None:
            proof = f"proven to be within {share:.2%} of the least possible by the cost model"
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
        """Return a row per op.

        It has the op's layouts, the family of its kernel, its cost, and the next best choice.
        """
        columns = ("op", "runs", "layouts", "kernel", "cost of a run", "next best", "in all")
        return Table(columns, tuple(map(self._row, self.report.ops)))

    def reorders(self) -> Table:
        """Return a row per reorder."""
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


def _arrow(choice: LayoutChoice) -> str:
    """Return a choice as text; equal neighbours are written once, weights keep their packing."""
    operands = _joined(str(layout) for layout in choice.operands)
    return f"{operands} → {_joined(str(layout) for layout in choice.results)}"


def _joined(names: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _value_label(owner: object) -> str:
    return label_of(owner) if isinstance(owner, Operation) else "input"
