"""Dims that somebody asks ops to be split along, by name, in an order of preference."""

from collections.abc import Sequence

from xdsl.ir import Operation

from braid.dialects.braid.base import shape_of
from braid.passes.split.split_rules import SplitDim
from braid.support.errors import BraidError

_FROM_FRONT = {"N": 0, "C": 1}
_FROM_BACK = {"W": 1, "H": 2, "D": 3}


def check_dim_names(names: Sequence[str]) -> None:
    """Raises BraidError for a name that is neither a letter of an image's dims nor a number."""
    for place, name in enumerate(names):
        if not (name in _FROM_FRONT or name in _FROM_BACK or name.isdecimal()):
            raise BraidError(
                f"option 'dims' names '{name}'",
                hint="expected N, C, D, H or W, or numbers of dims of results, such as dims=N,C",
            )
        if name in names[:place]:
            raise BraidError(f"option 'dims' names '{name}' twice")


def asked_first(
    op: Operation, dims: Sequence[SplitDim], names: Sequence[str]
) -> tuple[list[SplitDim], int]:
    """`dims` of `op`, those with these names first and in their order, and how many these are."""
    rank = len(shape_of(op.results[0]))
    order = [_number(name, rank) for name in names]
    asked = [dim for number in order for dim in dims if dim.dim == number and not dim.combine]
    return [*asked, *(dim for dim in dims if dim not in asked)], len(asked)


def _number(name: str, rank: int) -> int | None:
    """The dim that `name` means for a result of this rank: images have N and C, then others."""
    if name.isdecimal():
        return int(name)
    if name in _FROM_FRONT:
        return _FROM_FRONT[name]
    number = rank - _FROM_BACK[name]
    return number if number >= 2 else None
