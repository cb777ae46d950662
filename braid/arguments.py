"""Arguments of the Python API that types do not check: numbers, pipelines, models."""

import math
from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.passes import ModulePass

from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.support.errors import BraidError, check_kinds


def check_seconds(name: str, value: object) -> None:
    """Raises BraidError unless `value` is a time that is not negative, or None."""
    if value is None:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= cast(float, value) < math.inf:
        raise BraidError(f"{name} is {value!r}, expected a number of seconds")


def as_target(target: object) -> str | None:
    """The name of a target, or the path of its file, as text; raises BraidError for others."""
    check_kinds(paths={"target": target})
    return None if target is None else str(target)


def as_passes(passes: object) -> tuple[ModulePass, ...]:
    """Passes, or the text of a pipeline, or texts of its parts, as passes.

    Raises:
        BraidError: it is none of these, or there is no such pass.

    """
    if isinstance(passes, str):
        return tuple(parse_pipeline(passes))
    if not isinstance(passes, Iterable):
        raise BraidError(
            f"passes is {passes!r}, expected a sequence of passes, or text",
            hint='such as passes="canonicalize,cse"',
        )
    found: list[ModulePass] = []
    for part in cast(Sequence[object], passes):
        if isinstance(part, ModulePass):
            found.append(part)
        elif isinstance(part, str):
            found.extend(parse_pipeline(part))
        else:
            raise BraidError(f"passes holds {part!r}, expected passes, or their names")
    return tuple(found)
