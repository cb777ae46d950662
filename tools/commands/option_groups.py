"""Options in groups: a parameter of a command that is a dataclass has an option for each field."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from braid.driver.options import CompileOptions, options_of
from braid.tools.commands.options import option_of
from braid.tools.terminal.option_values import (
    parse_bounds,
    parse_buckets,
    parse_dims,
    parse_shapes,
    parse_specialize,
    parse_state,
)

_Result = TypeVar("_Result")


@dataclasses.dataclass(frozen=True)
class Only:
    """The names of the options of a compilation that a command takes."""

    names: tuple[str, ...]


def only(*names: str) -> Only:
    """Return a mark of the options that a command takes: `Annotated[CompileOptions, only(…)]`."""
    return Only(names)


def grouped(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Return `command` with the signature that typer is to see.

    Fields have the types and defaults of options; those without a default are required. Return the
    options of `CompileOptions` for commands, or `only` some of them.

    ```python
    @dataclass(frozen=True)
    class Sizes:
        seed: SeedOption = 0

    @grouped
    def show(model: SourceArgument, sizes: Sizes, options: CompileOptions) -> Answer: ...
    ```
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Callable[[dict[str, Any]], Any]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind, *marks = get_args(hints[name]) if _is_annotated(hints[name]) else [hints[name]]
        if kind is CompileOptions:
            names = next((mark.names for mark in marks if isinstance(mark, Only)), None)
            own = list(_compile_parameters(names))
            groups[name] = functools.partial(_compile_options, [each.name for each in own])
        elif isinstance(kind, type) and dataclasses.is_dataclass(kind):
            own = list(_parameters(kind))
            groups[name] = functools.partial(_made, kind, [each.name for each in own])
        else:
            own = [parameter.replace(kind=_KEYWORD, annotation=hints[name])]
        parameters += own

    @functools.wraps(command)
    def called(**values: Any) -> _Result:
        made = {name: make(values) for name, make in groups.items()}
        return command(**values, **made)

    called.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


def _parameters(group: Any) -> Iterator[inspect.Parameter]:
    types = get_type_hints(group, include_extras=True)
    for field in dataclasses.fields(group):
        missing = field.default is dataclasses.MISSING
        default = inspect.Parameter.empty if missing else field.default
        yield inspect.Parameter(field.name, _KEYWORD, default=default, annotation=types[field.name])


def _made(group: Callable[..., Any], names: list[str], values: dict[str, Any]) -> Any:
    return group(**{name: values.pop(name) for name in names})


def _compile_parameters(names: tuple[str, ...] | None) -> Iterator[inspect.Parameter]:
    defaults = {field.name: field.default for field in dataclasses.fields(CompileOptions)}
    for name, option in options_of().items():
        if option.kind is None or (names is not None and name not in names):
            continue
        default = None if option.repeats else defaults[name]
        kind: Any = list[option.kind] if option.repeats else option.kind
        kind = kind if default is not None else kind | None
        annotation = Annotated[kind, option_of(name)]
        yield inspect.Parameter(name, _KEYWORD, default=default, annotation=annotation)


def _compile_options(names: list[str], values: dict[str, Any]) -> CompileOptions:
    """Return the options with these values. Raises BraidError for a text that is not valid."""
    given = {name: values.pop(name) for name in names}
    return CompileOptions(**{n: _PARSERS.get(n, lambda text: text)(v) for n, v in given.items()})


def _is_annotated(hint: Any) -> bool:
    return get_origin(hint) is Annotated


def _constants(texts: list[str] | None) -> Mapping[str, object]:
    if not texts:
        return {}
    from braid.tools.commands.arrays import read_constants  # which imports numpy

    return read_constants(texts)


_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "shapes": parse_shapes,
    "dims": parse_dims,
    "state": parse_state,
    "specialize": parse_specialize,
    "constants": _constants,
    "shape_buckets": parse_buckets,
    "shape_bounds": parse_bounds,
    "pin": lambda texts: tuple(texts or ()),
}
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
