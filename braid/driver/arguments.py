"""Pipelines as the Python API takes them."""

from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.passes import ModulePass

from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.support.errors import BraidError


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
