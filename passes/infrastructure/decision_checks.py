"""Checks of what decision passes claim: which there are, and whether they are asked for.

A check is separate, simple code: it carries the decision out on a copy of the module and counts the
result. A claim that does not hold is a bug of the pass. A flag or the environment asks for them;
tests and fuzzing always do.
"""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import Remark, passing_on_remarks
from braid.passes.sizes.likely_decisions import decide
from braid.support.compile_scope import scope_variable
from braid.support.diagnostics import Diagnostic, handle_diagnostics
from braid.support.entry_points import installed_checks

Check = Callable[[Context, ModulePass, ModuleOp, Sequence[Remark]], None]


class WrongClaimError(Exception):
    """A pass says something about its decision that does not hold."""


def check_of(pass_: ModulePass) -> Check | None:
    """Return the function that checks the claims of `pass_` in a context, module and remarks.

    The context knows the parameters, by whose values passes decide. The check raises
    WrongClaimError. None for a pass that claims nothing.
    """
    if pass_.name not in installed_checks():
        return None
    module, _, function = installed_checks()[pass_.name].partition(":")
    return getattr(import_module(module), function)


VARIABLE = "BRAID_VERIFY_DECISIONS"
"""Environment variable: anything but nothing and `0` checks all claims, in child processes too."""

_asked = scope_variable("verify_decisions", default=False)


@contextmanager
def verifying_decisions(enabled: bool = True) -> Generator[None]:
    """Check the claims of all passes that run within the `with` block, if `enabled`."""
    token = _asked.set(enabled or _asked.get())
    try:
        yield
    finally:
        _asked.reset(token)


def is_verifying() -> bool:
    """Return whether claims are checked here."""
    return _asked.get() or os.environ.get(VARIABLE, "") not in ("", "0")


def apply_checked(context: Context, module: ModuleOp, pass_: ModulePass) -> None:
    """Run `pass_` on `module`, and check what it claims where that is asked for.

    With open dims, it decides at likely sizes. Raises what the pass raises, and
    WrongClaimError for a claim that does not hold.
    """
    decide(module, pass_, lambda decided: _apply_checked(context, decided, pass_))


def _apply_checked(context: Context, module: ModuleOp, pass_: ModulePass) -> None:
    check = check_of(pass_) if is_verifying() else None
    if check is None:
        pass_.apply(context, module)
        return
    with passing_on_remarks() as remarks:
        pass_.apply(context, module)
    with handle_diagnostics(_ignore):  # The pass has warned of what there is to warn of.
        check(context, pass_, module, remarks)


def _ignore(diagnostic: Diagnostic) -> None:
    del diagnostic
