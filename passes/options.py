"""Options of passes: what a pass takes, and the text within its braces, read and written."""

import dataclasses
import re
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, ParameterListType, ParameterType

from braid.errors import BraidError, SourceLocation

_OPTION = re.compile(
    r"""\s*(?P<name>[A-Za-z_][\w-]*)
        (?:=(?P<value>(?:"(?:\\.|[^"\\])*"|[^\s"])+))?(?:\s+|$)""",
    re.VERBOSE,
)
_ELEMENT = re.compile(r'"(?P<quoted>(?:\\.|[^"\\])*)"|(?P<bare>[^,"]+)')


@dataclasses.dataclass(frozen=True)
class PassOption:
    """One option of a pass as a user sees it; `default` is None where a value is required."""

    name: str
    type_name: str
    default: str | None


def pass_options(pass_class: type[ModulePass]) -> tuple[PassOption, ...]:
    """The options of `pass_class`, in the order of its fields."""
    hints = get_type_hints(pass_class)
    return tuple(
        PassOption(field.name.replace("_", "-"), _type_name(hints[field.name]), _default(field))
        for field in _fields(pass_class)
    )


def create_pass(pass_class: type[ModulePass], options: str, location: SourceLocation) -> ModulePass:
    """The pass with the given `options`, such as `target=host memory=65536 tags=a,b verbose`.

    A value with blanks or commas stands in double quotes. Raises `BraidError` at `location` for
    an unknown option, a missing one, and a value of the wrong type.
    """
    hints = get_type_hints(pass_class)
    known = {field.name: hints[field.name] for field in _fields(pass_class)}
    parameters: dict[str, ParameterListType] = {}
    for name, text in _split_options(pass_class.name, options, location):
        key = name.replace("-", "_")
        if key not in known:
            raise BraidError(
                f"pass '{pass_class.name}' has no option '{name}'",
                location=location,
                hint=_usage(pass_class),
            )
        parameters[key] = _parse_value(text, known[key])
    try:
        return pass_class.from_spec(ArgSpec(pass_class.name, parameters))
    except ValueError as error:
        raise BraidError(
            f"pass '{pass_class.name}' rejects its options: {error}",
            location=location,
            hint=_usage(pass_class),
        ) from error


def pass_text(pass_: ModulePass) -> str:
    """The pass with its options as `parse_pipeline` reads it, whatever characters they hold."""
    options = [
        f"{name}={','.join(map(_value_text, values))}" if values else name
        for name, values in pass_.spec().parameters.items()
    ]
    return pass_.name + (f"{{{' '.join(options)}}}" if options else "")


def _value_text(value: ParameterType) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value).lower() if isinstance(value, bool) else str(value)


def _fields(pass_class: type[ModulePass]) -> list[dataclasses.Field[Any]]:
    return [f for f in dataclasses.fields(pass_class) if f.name != "name" and f.init]


def _split_options(
    pass_name: str, text: str, location: SourceLocation
) -> list[tuple[str, str | None]]:
    options: list[tuple[str, str | None]] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _OPTION.match(text, position)
        if match is None:
            raise BraidError(
                f"malformed options of pass '{pass_name}' at '{text[position:].strip()}'",
                location=location,
                hint="options are written {name=value other=value}",
            )
        options.append((match["name"], match["value"]))
        position = match.end()
    return options


def _parse_value(text: str | None, hint: object) -> ParameterListType:
    if text is None:
        # `{verbose}` switches a flag on; for other options xDSL takes it as "no value".
        return (True,) if bool in _scalar_types(hint) else ()
    types_ = _scalar_types(hint)
    values: list[ParameterType] = []
    for match in _ELEMENT.finditer(text):
        bare = match["bare"]
        if bare is None:
            values.append(re.sub(r"\\(.)", r"\1", match["quoted"]))
        else:
            values.append(_parse_scalar(bare, types_))
    return tuple(values)


def _parse_scalar(text: str, expected: set[object]) -> ParameterType:
    """`text` as the first of the `expected` types that can hold it, otherwise as a string."""
    if bool in expected and text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        if number in expected:
            try:
                return number(text)
            except ValueError:
                continue
    return text


def _scalar_types(hint: object) -> set[object]:
    """The types of the scalars that a value of type `hint` is made of."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType, tuple):
        return {scalar for argument in get_args(hint) for scalar in _scalar_types(argument)}
    return {str} if origin is Literal else {hint}


def _type_name(hint: object) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
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
        return ",".join(str(element) for element in value)  # pyright: ignore
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _usage(pass_class: type[ModulePass]) -> str:
    options = pass_options(pass_class)
    if not options:
        return f"pass '{pass_class.name}' takes no options"
    listed = ", ".join(
        f"{o.name}=<{o.type_name}>" + ("" if o.default is None else f" (default {o.default})")
        for o in options
    )
    return f"its options are {listed}"
