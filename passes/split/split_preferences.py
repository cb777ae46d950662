"""Dims and counts that are tried first: requested ones, those of readers and of operands."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from braid.analysis.storage.tensor_storage import is_addressing
from braid.dialects.braid.base import TensorOp, shape_of
from braid.dialects.braid.boxes import shared_dims
from braid.dialects.braid.movement import ConcatOp, ReshapeOp, SliceOp, TransposeOp
from braid.passes.split.split_dims import IN_ORDER, Part, SplitDim, op_bytes, split_dims
from braid.support.errors import BraidError

_FROM_FRONT = {"N": 0, "C": 1}
_FROM_BACK = {"W": 1, "H": 2, "D": 3}
_DIGITS = 9
"""The most digits of a dim's number: Python refuses to read very long ones."""


def check_dim_names(names: Sequence[str]) -> None:
    """Raise BraidError for a name that is neither a letter of an image's dims nor a number."""
    for place, name in enumerate(names):
        is_number = name.isdecimal() and len(name) <= _DIGITS
        if not (name in _FROM_FRONT or name in _FROM_BACK or is_number):
            raise BraidError(
                f"option 'dims' names '{name}'",
                hint="expected N, C, D, H or W, or numbers of dims of results, such as dims=N,C",
            )
        if name in names[:place]:
            raise BraidError(f"option 'dims' names '{name}' twice")


def asked_first(
    op: Operation, dims: Sequence[SplitDim], names: Sequence[str]
) -> tuple[list[SplitDim], int]:
    """Return `dims` of `op`, those with these names first and in their order, and how many these
    are.
    """
    rank = len(shape_of(op.results[0]))
    order = [_number(name, rank) for name in names]
    asked = [dim for number in order for dim in dims if dim.dim == number and not dim.combine]
    return [*asked, *(dim for dim in dims if dim not in asked)], len(asked)


def _number(name: str, rank: int) -> int | None:
    """Return the dim that `name` means for a result of this rank: images have N and C, then
    others.
    """
    if name.isdecimal():
        return int(name)
    if name in _FROM_FRONT:
        return _FROM_FRONT[name]
    number = rank - _FROM_BACK[name]
    return number if number >= 2 else None


Chosen = dict[SSAValue, dict[int, int]]
"""The parts per dim of the results that are split; entries beyond the rank: reduced dims."""


def aligned_counts(
    op: Operation,
    dims: Sequence[SplitDim],
    chosen: Mapping[SSAValue, dict[int, int]],
    partly: bool,
) -> Iterator[dict[int, int]]:
    """Yield the splits of the ops that make the operands, where they make the same parts here.

    First those that cut an operand along no other dim; then, where `partly` the same parts are
    enough, those that do, and those that the pieces of a concatenation have in common.
    """
    others: list[dict[int, int]] = []
    for index, operand in enumerate(op.operands):
        counts = _counts_of(operand, chosen, partly)
        start: dict[int, int] = {}
        for dim in dims:
            needed = operand_dim(dim, index)
            if needed in counts:
                start[dim.dim] = counts[needed]
        if counts and len(start) == len(counts):
            yield start
        elif start:
            others.append(start)
    if partly:
        yield from others


def operand_dim(dim: SplitDim, index: int) -> int | None:
    """Return the dim along which operand `index` is cut where the result is cut along `dim`."""
    tile = dim.tile(Part(dim.dim, 0, dim.unit)) if dim.combine is None else None
    needed = tile.operands.get(index) if tile is not None else None
    return None if needed is None else needed.dim


def _counts_of(
    value: SSAValue, chosen: Mapping[SSAValue, dict[int, int]], partly: bool
) -> dict[int, int]:
    """Return the parts per dim in which `value` is made: as itself, in another shape, cut or
    joined.
    """
    if isinstance(value.owner, ReshapeOp):
        counts = _counts_of(value.owner.input, chosen, partly)
        return _reshaped_counts(counts, shape_of(value.owner.input), shape_of(value))
    if isinstance(value.owner, SliceOp):
        counts = _counts_of(value.owner.input, chosen, partly)
        whole = shape_of(value.owner.input)
        return counts if all(shape_of(value)[dim] == whole[dim] for dim in counts) else {}
    if isinstance(value.owner, ConcatOp) and partly:
        first, *others = (_counts_of(piece, chosen, partly) for piece in value.owner.inputs)
        dim = value.owner.dim.value.data
        return {d: n for d, n in first.items() if d != dim and all(o.get(d) == n for o in others)}
    return {d: n for d, n in chosen.get(value, {}).items() if d < len(shape_of(value))}


def _reshaped_counts(
    counts: Mapping[int, int], source: Sequence[int], target: Sequence[int]
) -> dict[int, int]:
    """Return `counts` for the dims of `target`; none if parts of `source` are not parts of it."""
    found: dict[int, int] = {}
    for own, others in shared_dims(source, target):
        cut = [dim for dim in own if counts.get(dim, 1) > 1]
        if not cut:
            continue
        outer = [
            next((d for d in dims if shape[d] > 1), -1)
            for dims, shape in ((own, source), (others, target))
        ]
        extents = source[outer[0]], target[outer[1]]
        count = counts[cut[0]]
        same = extents[0] == extents[1] or min(extents) % count == 0
        if cut != outer[:1] or not same:
            return {}
        found[outer[1]] = count
    return found


def readable_first(
    op: Operation, dims: Sequence[SplitDim], limit_of: Callable[[Operation], int]
) -> list[SplitDim]:
    """Return `dims` of `op`, first those along which all readers that must be split can be cut.

    A convolution needs all channels: an op before it is better split along its rows, so that
    parts flow from one to the other.
    """
    if isinstance(op, IN_ORDER | TransposeOp):
        return list(dims)
    wanted = [
        {operand_dim(dim, use.index) for dim in split_dims(use.operation)}
        for use in op.results[0].uses
        if isinstance(use.operation, TensorOp)
        and not is_addressing(use.operation)
        and op_bytes(use.operation) > limit_of(use.operation)
    ]
    return sorted(dims, key=lambda dim: not all(dim.dim in cut for cut in wanted))
