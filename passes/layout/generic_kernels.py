"""Remarks on groups computed by generic loops that take a notable share of the predicted time."""

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from braid.analysis.diagnostics.remarks import emit_remark
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.movement import ConcatOp, PadOp, SliceOp
from braid.dialects.braid.names import names_of
from braid.dialects.braid.regions import FusedOp
from braid.passes.layout.problem import LayoutProblem
from braid.targets.costs.layout_costs import LayoutCosts

_SHARE = 0.01
"""The share of a function's predicted time above which a group gets a remark."""


def remark_generic_kernels(
    func: FuncOp,
    pass_name: str,
    problem: LayoutProblem,
    assignment: Sequence[int],
    costs: LayoutCosts,
) -> None:
    """Emit a remark for each group computed by generic loops in over 1 % of the predicted time."""
    chosen = list(zip(problem.variables, assignment, problem.problem.node_costs, strict=False))
    total = sum(float(own[option]) for _, option, own in chosen)
    for variable, option, own in chosen:
        group, cost = variable.owner, float(own[option])
        if not isinstance(group, FusedOp) or cost <= _SHARE * total:
            continue
        if not costs.by_generic_loops(group, variable.families[option]):
            continue
        ops = [op for op in group.body.block.ops if not isinstance(op, ConstantOp)][:-1]
        kinds = ", ".join(dict.fromkeys(op.name.removeprefix("braid.") for op in ops))
        name = next(iter(names_of(group)), "")
        elided = ", unless select-storage elides it" if _may_be_elided(ops) else ""
        emit_remark(
            group,
            pass_name,
            f"generic loops compute {kinds}{f' of {name!r}' if name else ''}, "
            f"{cost / total:.1%} of the predicted time in '{func.sym_name.data}'{elided}",
            generic=kinds,
            name=name,
            seconds=cost,
            share=cost / total,
        )


def _may_be_elided(ops: Sequence[Operation]) -> bool:
    """Return whether the group only concatenates, pads or slices, which views may replace."""
    return len(ops) == 1 and isinstance(ops[0], ConcatOp | PadOp | SliceOp)
