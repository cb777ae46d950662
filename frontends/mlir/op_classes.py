"""What the class of an op says about a mistake that was found while the op was made."""

from collections.abc import Mapping

from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation, VerificationContext
from xdsl.utils.exceptions import VerifyException

from braid.support.errors import BraidError


def require_complete(op_type: type[Operation]) -> None:
    """Raises BraidError for a class that leaves a method of its base class out."""
    missing = sorted(getattr(op_type, "__abstractmethods__", ()))
    if missing:
        names = ", ".join(f"'{name}'" for name in missing)
        raise BraidError(
            f"the class of op '{op_type.name}' has no {names}",
            hint=f"'{op_type.__module__}:{op_type.__qualname__}' has to define what its base "
            "class asks for",
        )


def wrong_attribute(op_type: type[Operation], given: Mapping[str, Attribute]) -> str | None:
    """The first of the `given` attributes that is not as the class says, None if all are."""
    if not issubclass(op_type, IRDLOperation):
        return None
    definition = op_type.get_irdl_definition()
    for name, declared in {**definition.attributes, **definition.properties}.items():
        try:
            if name in given:
                declared.constr.verify(given[name], VerificationContext())
        except VerifyException:
            return name
    return None
