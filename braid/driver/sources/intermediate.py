"""Attributes that passes write while a model is compiled, and that a file must not bring."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.attribute_names import (
    APPENDED,
    BRANCH_SIZE_CHECKS,
    DIM_ORDER,
    PHASE,
    PHASE_OUTPUTS,
    SIZE_CHECKS,
    SPECIALIZED,
)
from braid.support.errors import UnsupportedError

_INTERMEDIATE = {
    PHASE: ("was split into phases", "split-phases"),
    PHASE_OUTPUTS: ("was split into phases", "split-phases"),
    SPECIALIZED: ("has functions for some sizes", "add-specializations"),
    APPENDED: ("appends to a state in place", "append-in-place"),
    DIM_ORDER: ("appends to a state in place", "append-in-place"),
}
"""Attributes of functions and their ports that passes write: their meaning, and the pass."""


def refuse_intermediate(module: ModuleOp) -> None:
    """Refuse attributes that passes write on functions: their claims are not checked again.

    Raises:
        UnsupportedError: there is such an attribute.

    """
    for op in module.walk():
        ports = (*(op.arg_attrs or ()), *(op.res_attrs or ())) if isinstance(op, FuncOp) else ()
        names = {*op.attributes, *(name for port in ports for name in port.data)}
        found = next((name for name in _INTERMEDIATE if name in names), None)
        if found is not None:
            what, pass_ = _INTERMEDIATE[found]
            raise UnsupportedError(
                f"the module {what}, as a model is while it is compiled",
                location=source_location(op),
                hint=f"compile the module that {pass_} was run on",
            )


def drop_size_checks(module: ModuleOp) -> None:
    """Drop a file's claims about past checks: memory safety depends on them."""
    for op in module.walk():
        for name in (SIZE_CHECKS, BRANCH_SIZE_CHECKS):
            op.attributes.pop(name, None)
