"""Options of passes as a user sees them: which there are, and what they take."""

import dataclasses
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from xdsl.passes import ModulePass

_SIZE = int | str
"""The type of an option that takes bytes as a number or as text with a unit (64MiB)."""


@dataclasses.dataclass(frozen=True)
class PassOption:
    """One option of a pass as a user sees it; `default` is None where a value is required.

    `type` is that of the Python field.
    """

    name: str
    type: Any
    default: str | None

    @property
    def type_name(self) -> str:
        """What stands for a value in help texts and diagnostics."""
        return _type_name(self.type)

    def __str__(self) -> str:
        default = "required" if self.default is None else f"default {self.default}"
        return f"{self.name}=<{self.type_name}> ({default})"


def pass_options(pass_class: type[ModulePass]) -> tuple[PassOption, ...]:
    """The options of `pass_class`, in the order of its fields."""
    hints = get_type_hints(pass_class)
    return tuple(
        PassOption(field.name.replace("_", "-"), hints[field.name], _default(field))
        for field in dataclasses.fields(pass_class)
        if field.name != "name" and field.init
    )


def _type_name(hint: object) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if set(arguments) - {types.NoneType} == set(get_args(_SIZE)):
            return "size"
        return " | ".join(_type_name(a) for a in arguments if a is not types.NoneType)
    if origin is tuple:
        return ",".join("..." if a is ... else _type_name(a) for a in arguments)
    if origin is Literal:
        return " | ".join(str(argument) for argument in arguments)
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _default(field: dataclasses.Field[Any]) -> str | None:
    if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
        return "none" if types.NoneType in get_args(field.type) else None
    value = (
        field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    )
    if isinstance(value, tuple):
        value = ",".join(str(element) for element in value)  # pyright: ignore
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return str(value) or "empty"
