"""Options in groups: a parameter of a command that is a dataclass has an option for each field."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """`command` as typer is to see it.

    Fields have the types and defaults of options; those without a default are required.

    ```python
    @dataclass(frozen=True)
    class Sizes:
        shape: ShapeOption = None

    @grouped
    def show(model: SourceArgument, sizes: Sizes) -> None: ...
    ```
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        own = hints[name]
        if not dataclasses.is_dataclass(own):
            parameters.append(parameter.replace(kind=_KEYWORD, annotation=own))
            continue
        groups[name] = own
        types = get_type_hints(own, include_extras=True)
        for field in dataclasses.fields(own):
            missing = field.default is dataclasses.MISSING
            default = inspect.Parameter.empty if missing else field.default
            parameters.append(
                inspect.Parameter(
                    field.name, _KEYWORD, default=default, annotation=types[field.name]
                )
            )

    @functools.wraps(command)
    def called(**values: Any) -> None:
        for name, group in groups.items():
            names = [field.name for field in dataclasses.fields(group)]
            values[name] = group(**{each: values.pop(each) for each in names})
        command(**values)

    called.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


_KEYWORD = inspect.Parameter.KEYWORD_ONLY
