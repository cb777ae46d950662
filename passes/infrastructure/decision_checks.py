"""Whether what decision passes claim is checked: asked for by a flag, or by the environment."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import passing_on_remarks
from braid.passes.infrastructure.claim_checks import check_of
from braid.support.diagnostics import Diagnostic, handle_diagnostics

VARIABLE = "BRAID_VERIFY_DECISIONS"
"""Environment variable: anything but nothing and `0` checks all claims, in child processes too."""

_asked: ContextVar[bool] = ContextVar("braid_verify_decisions", default=False)


@contextmanager
def verifying_decisions(enabled: bool = True) -> Generator[None]:
    """Check the claims of all passes that run within the `with` block, if `enabled`."""
    token = _asked.set(enabled or _asked.get())
    try:
        yield
    finally:
        _asked.reset(token)


def is_verifying() -> bool:
    """Whether claims are checked here."""
    return _asked.get() or os.environ.get(VARIABLE, "") not in ("", "0")


def apply_checked(context: Context, module: ModuleOp, pass_: ModulePass) -> None:
    """Run `pass_` on `module`, and check what it claims where that is asked for.

    Raises what the pass raises, and WrongClaimError for a claim that does not hold.
    """
    check = check_of(pass_) if is_verifying() else None
    if check is None:
        pass_.apply(context, module)
        return
    with passing_on_remarks() as remarks:
        pass_.apply(context, module)
    with handle_diagnostics(_ignore):  # The pass has warned of what there is to warn of.
        check(pass_, module, remarks)


def _ignore(diagnostic: Diagnostic) -> None:
    del diagnostic
