"""Find an op that cannot read a value, where no choice of layouts fits together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from xdsl.ir import Block, Operation, SSAValue

from braid.dialects.braid.layout import Layout
from braid.dialects.braid.names import names_of
from braid.dialects.braid.opaque import OpaqueOp
from braid.passes.layout.availability import LayoutSets
from braid.passes.layout.problem import LayoutProblem

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Conflict:
    """`reader` wants `value` in one of `wanted`; all it may be made in are `made`."""

    reader: Operation
    value: SSAValue
    made: tuple[Layout, ...]
    wanted: tuple[Layout, ...]

    def __str__(self) -> str:
        wanted, made = _listed(self.wanted), _listed(self.made)
        return (
            f"{describe(self.reader)} reads {_described(self.value)} in {wanted}, it comes in "
            f"{made}, and no reorders lead from there"
        )


def find_conflict(problem: LayoutProblem) -> Conflict | None:
    """Return the first value between whose maker and a reader no choices are left.

    By arc consistency (A. K. Mackworth, 1977): a choice is removed if a neighbour has no compatible
    one, until none is removed or a variable has no choice left. None where choices fit in pairs but
    not all together.
    """
    sets = _sets_of(problem)
    left = [np.ones(len(variable.costs), dtype=bool) for variable in problem.variables]
    changed = True
    while changed:
        changed = False
        for value, layouts in sets.items():
            flow = problem.values[value]
            for user in flow.users:
                made, wanted = left[flow.maker], left[user.node]
                fits = _fits(layouts, flow.port.layouts, user.port.layouts)
                kept = made & fits[:, wanted].any(axis=1)
                read = wanted & fits[made].any(axis=0)
                if not kept.any():
                    return Conflict(
                        user.port.op,
                        value,
                        _of(flow.port.layouts, made),
                        _of(user.port.layouts, wanted),
                    )
                changed |= bool((kept != made).any() or (read != wanted).any())
                left[flow.maker], left[user.node] = kept, read
    return None


def _sets_of(problem: LayoutProblem) -> Mapping[SSAValue, LayoutSets]:
    return problem.direct | {item.value: item.sets for item in problem.available}


def _fits(sets: LayoutSets, made: Sequence[Layout], wanted: Sequence[Layout]) -> Mask:
    """Return per option that makes a value and option that reads it whether reorders lead there."""
    rows = [sets.layouts.index(layout) for layout in made]
    columns = [sets.layouts.index(layout) for layout in wanted]
    return np.isfinite(sets.distances[np.ix_(rows, columns)])


def _of(layouts: Sequence[Layout], mask: Mask) -> tuple[Layout, ...]:
    return tuple(dict.fromkeys(x for x, kept in zip(layouts, mask, strict=True) if kept))


def describe(op: Operation) -> str:
    """Return the name of `op` for people."""
    kind = op.kind.data if isinstance(op, OpaqueOp) else op.name
    return f"'{', '.join(names_of(op)) or kind}'"


def _described(value: SSAValue) -> str:
    owner = value.owner
    if isinstance(owner, Block):
        parent = owner.parent_op()
        return "an argument" if parent is None else f"what {describe(parent)} hands on"
    return f"the result of {describe(owner)}"


def _listed(layouts: Sequence[Layout]) -> str:
    return " or ".join(f"'{layout}'" for layout in layouts)
