"""Checks of the claims in a decision pass's remarks against the IR."""

import math
from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import Remark, collect_remarks
from braid.analysis.structure.verification import verify_module
from braid.passes.infrastructure.decision_checks import WrongClaimError
from braid.support.errors import BraidError

TOLERANCE = 1e-6
"""Relative: sums in another order differ by rounding."""


def require_equal(remark: Remark, what: str, found: float) -> None:
    """Raise WrongClaimError unless `remark` claims `found` for `what`, up to rounding."""
    claimed = number(remark, what)
    if not math.isclose(claimed, found, rel_tol=TOLERANCE, abs_tol=1e-15):
        raise WrongClaimError(f"{about(remark)}: {what} {claimed:.9g} claimed, {found:.9g} found")


def require_at_most(remark: Remark, what: str, limit: float, meaning: str) -> None:
    """Raise WrongClaimError where `remark` claims more than `limit`, which `meaning` names."""
    claimed = number(remark, what)
    if claimed > limit + TOLERANCE * abs(limit):
        raise WrongClaimError(
            f"{about(remark)}: {what} {claimed:.9g} claimed, more than {meaning} {limit:.9g}"
        )


def require_bound(remark: Remark, cost: float) -> None:
    """Check that the bound is not above the cost that was found, and that the gap is theirs.

    A remark may claim no gap.
    """
    require_at_most(remark, "lower_bound", cost, "the cost")
    if remark.data.get("gap", 0.0) is None:
        return
    bound = number(remark, "lower_bound")
    gap = 1 - bound / cost if cost else 0.0
    if not math.isclose(number(remark, "gap"), gap, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        raise WrongClaimError(
            f"{about(remark)}: gap {number(remark, 'gap'):.9g} claimed, {gap:.9g} found"
        )


def number(remark: Remark, what: str) -> float:
    """Return the number that `remark` gives for `what`."""
    value = remark.data.get(what)
    if not isinstance(value, int | float):
        raise WrongClaimError(f"{about(remark)}: no {what} claimed")
    return float(value)


def about(remark: Remark) -> str:
    """Return the subject of `remark`, for people."""
    return name_of(remark.op)


def name_of(op: Operation) -> str:
    """Return the function `op`, or the op and the function that it is in."""
    outer: Operation | None = op
    while outer is not None and "sym_name" not in outer.properties:
        outer = outer.parent_op()
    symbol = None if outer is None else outer.properties["sym_name"]
    function = f"'@{symbol.data}'" if isinstance(symbol, StringAttr) else "the module"
    return function if outer is op else f"'{op.name}' in {function}"


class AppliedCopy:
    """A copy of a module with a decision carried out, to inspect its effect.

    `origin` are the ops of the module that those of the copy were made from.
    """

    def __init__(self, module: ModuleOp) -> None:
        self.module = module.clone()
        pairs = list(zip(self.module.walk(), module.walk(), strict=True))
        self.origin: dict[Operation, Operation] = dict(pairs)
        self._copies = {original: copy for copy, original in pairs}

    def apply(self, context: Context, apply: ModulePass, what: str) -> list[Remark]:
        """Apply a decision, which messages call `what`, and return the remarks about that.

        Raises:
            WrongClaimError: the pass refuses it, or makes IR that is not valid.

        """
        try:
            with collect_remarks() as remarks:
                apply.apply(context, self.module)
            verify_module(self.module)
        except BraidError as error:
            raise WrongClaimError(f"{what} cannot be applied: {error.message}") from error
        return remarks

    def of(self, op: Operation) -> Operation:
        """Return the copy of `op`."""
        return self._copies[op]


def claims_about(remarks: Sequence[Remark], pass_: ModulePass, key: str) -> list[Remark]:
    """Return the remarks of `pass_` that say something about `key`."""
    return [r for r in remarks if r.pass_name == pass_.name and key in r.data]
