"""Options of passes: their names, their types, and the text within the braces of a pass.

options ::= (name (`=` value)?)*       separated by blanks
value   ::= scalar (`,` scalar)*
scalar  ::= bare text | `"` text in which `\\` makes the next character plain `"`
"""

import dataclasses
import re
import types
from collections.abc import Iterator
from math import isnan
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, ParameterListType, ParameterType
from xdsl.utils.hints import isa

from braid.support.errors import BraidError, SourceLocation, did_you_mean

PIPELINE_FILE = "<pass-pipeline>"
"""The name of the file in diagnostics about the text of a pipeline."""


def error_at(text: str, position: int, message: str, hint: str | None = None) -> BraidError:
    """Return the error about the text at `position`, counted from 0, of the pipeline `text`."""
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return BraidError(message, location=SourceLocation(PIPELINE_FILE, line, column), hint=hint)


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
        """Return the text that stands for a value in help texts and diagnostics."""
        return _type_name(self.type)

    def __str__(self) -> str:
        default = "required" if self.default is None else f"default {self.default}"
        return f"{self.name}=<{self.type_name}> ({default})"


def pass_options(pass_class: type[ModulePass]) -> tuple[PassOption, ...]:
    """Return the options of `pass_class`, in the order of its fields."""
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


_QUOTED = r'"(?:\\.|[^"\\])*"'
_SCALAR = re.compile(rf'{_QUOTED}|[^\s,"]+')
_VALUE = rf"(?:{_SCALAR.pattern})(?:,(?:{_SCALAR.pattern}))*"
_OPTION = re.compile(rf"(?P<name>[A-Za-z_][\w-]*)(?:=(?P<value>{_VALUE}))?(?:\s+|$)")
_BLANKS = re.compile(r"\s*")
_TIME_LIMIT = "time-limit"
_SYNTAX = 'options are written {name=value other="a b, c"}'


def create_pass(
    pass_class: type[ModulePass], pipeline: str, start: int, begin: int, end: int
) -> ModulePass:
    """Return the pass that stands at `start` of `pipeline`, with its options from `begin` to `end`.

    Raises:
        BraidError: an option that is malformed, unknown, given twice, missing, or of another type.

    """
    name = pass_class.name
    known = {option.name: option for option in pass_options(pass_class)}
    parameters: dict[str, ParameterListType] = {}
    for match in _matches(name, pipeline, begin, end):
        option = known.get(match["name"].replace("_", "-"))
        if option is None:
            raise _unknown_option(name, match["name"], known, pipeline, match.start())
        field = option.name.replace("-", "_")
        if field in parameters:
            message = f"option '{option.name}' of pass '{name}' is given twice"
            raise error_at(pipeline, match.start(), message)
        parameters[field] = _parse_value(match["value"], option)
        if not _fits(parameters[field], option) or _is_before_now(option, parameters[field]):
            raise _wrong_type(name, option, match["value"], pipeline, match.start())
    for option in known.values():
        if option.default is None and option.name.replace("-", "_") not in parameters:
            message = f"pass '{name}' needs option '{option.name}'"
            raise error_at(pipeline, start, message, _usage(name, known))
    try:
        return pass_class.from_spec(ArgSpec(name, parameters))
    except ValueError as error:
        message = f"pass '{name}' rejects its options: {error}"
        raise error_at(pipeline, start, message, _usage(name, known)) from error


def pass_text(pass_: ModulePass) -> str:
    """Return the pass with its options as `parse_pipeline` reads it, whatever characters
    they hold.
    """
    options = [
        f"{name}={','.join(map(_value_text, values))}" if values else name
        for name, values in pass_.spec().parameters.items()
    ]
    return pass_.name + (f"{{{' '.join(options)}}}" if options else "")


def _value_text(value: ParameterType) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value).lower() if isinstance(value, bool) else str(value)


def _matches(pass_name: str, pipeline: str, begin: int, end: int) -> Iterator[re.Match[str]]:
    """Yield the options one by one."""
    position = _skip_blanks(pipeline, begin, end)
    while position < end:
        match = _OPTION.match(pipeline, position, end)
        if match is None:
            rest = pipeline[position:end].strip()
            message = f"malformed options of pass '{pass_name}' at '{rest}'"
            raise error_at(pipeline, position, message, _SYNTAX)
        yield match
        position = match.end()


def _skip_blanks(pipeline: str, begin: int, end: int) -> int:
    blanks = _BLANKS.match(pipeline, begin, end)
    return begin if blanks is None else blanks.end()


def _parse_value(text: str | None, option: PassOption) -> ParameterListType:
    types_ = _scalar_types(option.type)
    if text is None:
        # `{verbose}` switches a flag on; for other options xDSL takes it as "no value".
        return (True,) if bool in types_ else ()
    return tuple(_parse_scalar(match[0], types_) for match in _SCALAR.finditer(text))


def _parse_scalar(text: str, expected: set[object]) -> ParameterType:
    """Return `text` as the first of the `expected` types that can hold it, otherwise as a
    string.
    """
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if bool in expected and text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        if number in expected:
            try:
                value = number(text)
            except ValueError:
                continue
            return text if isnan(value) else value
    return text


def _scalar_types(hint: object) -> set[object]:
    """Return the types of the scalars that a value of type `hint` is made of."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType, tuple):
        return {scalar for argument in get_args(hint) for scalar in _scalar_types(argument)}
    return {str} if origin is Literal else {hint}


def _fits(values: ParameterListType, option: PassOption) -> bool:
    """Return whether xDSL takes the values for a field of this type."""
    if not values and types.NoneType in get_args(option.type):
        return True
    return (len(values) == 1 and isa(values[0], option.type)) or isa(values, option.type)


def _is_before_now(option: PassOption, values: ParameterListType) -> bool:
    """Return whether a time limit is negative."""
    return option.name == _TIME_LIMIT and any(
        isinstance(value, int | float) and value < 0 for value in values
    )


def _wrong_type(
    pass_name: str, option: PassOption, text: str | None, pipeline: str, position: int
) -> BraidError:
    actual = "has no value" if text is None else f"is '{text}'"
    message = f"option '{option.name}' of pass '{pass_name}' {actual}, expected"
    hint = _SYNTAX if str in _scalar_types(option.type) else None
    expected = "seconds from 0 on" if option.name == _TIME_LIMIT else f"<{option.type_name}>"
    return error_at(pipeline, position, f"{message} {expected}", hint)


def _unknown_option(
    pass_name: str, option: str, known: dict[str, PassOption], pipeline: str, position: int
) -> BraidError:
    hint = did_you_mean(option, known) or _usage(pass_name, known)
    return error_at(pipeline, position, f"pass '{pass_name}' has no option '{option}'", hint)


def _usage(pass_name: str, known: dict[str, PassOption]) -> str:
    if not known:
        return f"pass '{pass_name}' takes no options"
    return f"its options are {', '.join(map(str, known.values()))}"
