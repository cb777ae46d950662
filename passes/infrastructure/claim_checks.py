"""Which passes claim what, and who checks it; always on in tests and fuzzing.

A check is separate, simple code: it carries the decision out on a copy of the module and counts
what is then there. A claim that does not hold is a bug of the pass.
"""

from collections.abc import Callable, Sequence
from importlib import import_module

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import Remark

Check = Callable[[ModulePass, ModuleOp, Sequence[Remark]], None]


class WrongClaimError(Exception):
    """A pass says something about its decision that does not hold."""


_CHECKS = {
    "apply-rematerialization": "recomputation_claims:check_application",
    "assign-devices": "partition_claims:check_assignment",
    "plan-memory": "memory_claims:check_plan",
    "search-order": "order_claims:check_order",
    "select-layouts": "layout_claims:check_layouts",
    "select-rematerialization": "recomputation_claims:check_selection",
}
"""Name of the pass -> `module:function`, loaded when it is used."""


def check_of(pass_: ModulePass) -> Check | None:
    """What checks the claims of `pass_`, given the module after it and its remarks.

    It raises WrongClaimError. None for a pass that claims nothing.
    """
    if pass_.name not in _CHECKS:
        return None
    module, _, function = _CHECKS[pass_.name].partition(":")
    return getattr(import_module(f"braid.passes.verification.{module}"), function)
