"""From an op to the place in a user's file that a diagnostic about it should name."""

from collections.abc import Generator
from contextlib import contextmanager

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute, Block, Operation, SSAValue

from braid.support.errors import BraidError, SourceLocation


def source_location(op: Operation) -> SourceLocation | None:
    """Return the location of `op`, or of the nearest enclosing op that has one.

    Ops that a pass made have no location of their own, and an enclosing function is a better
    place to look than none. Returns None where no enclosing op has a location either.
    """
    current: Operation | None = op
    while current is not None:
        if (location := _resolve(current.location)) is not None:
            return location
        current = current.parent_op()
    return None


@contextmanager
def located_at(owner: Operation | Block) -> Generator[None]:
    """Give errors of the `with` block that have no location that of `owner`, or of the nearest op
    around it.
    """
    try:
        yield
    except BraidError as error:
        op = owner.parent_op() if isinstance(owner, Block) else owner
        if error.location is None and op is not None:
            error.location = source_location(op)
        raise


def definition_location(value: SSAValue) -> SourceLocation | None:
    """Return where `value` is defined: its op, or the op whose region has it as a block
    argument.
    """
    owner = value.owner
    if isinstance(owner, Block):
        parent = owner.parent_op()
        return source_location(parent) if parent is not None else None
    return source_location(owner)


def _resolve(location: Attribute) -> SourceLocation | None:
    match location:
        case FileLineColLoc():
            return SourceLocation(location.filename.data, location.line.data, location.column.data)
        case NameLoc():
            return _resolve(location.location)
        case CallSiteLoc():
            return _resolve(location.callee)
        case FusedLoc():
            parts = (_resolve(part) for part in location.locations)  # pyright: ignore
            return next((part for part in parts if part is not None), None)
        case _:
            return None
