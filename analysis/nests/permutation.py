"""A permutation of elements as a loop nest: which element of storage goes where.

Reorders, transposes, and transposes between reshapes (channel shuffles) are all described by
digits: a dim of the source is counted in one or more digits, and so is a dim of the target.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeAlias, cast

from xdsl.ir import BlockArgument, SSAValue

from braid.analysis.nests.dims import KnownOrOpen, LoopDim, Stored, has_elements, merged
from braid.analysis.nests.pointwise import ExtentsOf
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import is_number
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import ReshapeOp, TransposeOp
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.regions import FusedOp
from braid.support.sizes.expression import Extent
from braid.support.sizes.polynomials import exact_quotient


@dataclass(frozen=True)
class Digit(Generic[KnownOrOpen]):
    """`extent` values of an index of dim `dim`, in steps of `step`."""

    extent: KnownOrOpen
    dim: int
    step: KnownOrOpen


_Known: TypeAlias = tuple[Digit, Digit]


@dataclass(frozen=True)
class Movement:
    """A tensor of the shape `source` under a new index.

    It is digits of the source's dims, in row-major order of `shape`.
    """

    source: tuple[Extent, ...]
    shape: tuple[Extent, ...]
    digits: tuple[Digit[Extent], ...]

    @staticmethod
    def of(shape: Sequence[Extent]) -> "Movement":
        """Return the movement that leaves every element where it is."""
        digits = (Digit[Extent](extent, dim, 1) for dim, extent in enumerate(shape) if extent != 1)
        return Movement(tuple(shape), tuple(shape), tuple(digits))

    def reshaped(self, shape: Sequence[Extent]) -> "Movement":
        """Return the same order of elements under another shape."""
        return Movement(self.source, tuple(shape), self.digits)

    def transposed(self, permutation: Sequence[int]) -> "Movement | None":
        """Return the movement whose dim i was `permutation[i]`; None where a digit is cut."""
        groups = self.by_dim()
        if groups is None:
            return None
        digits = (digit for dim in permutation for digit in groups[dim])
        shape = tuple(self.shape[dim] for dim in permutation)
        return Movement(self.source, shape, tuple(digits))

    def by_dim(self) -> list[list[Digit[Extent]]] | None:
        """Return the digits of each dim of `shape`, outermost first, cut where a dim begins.

        The result is None if they may be only parts of dims.
        """
        left = list(self.digits)
        groups: list[list[Digit[Extent]]] = []
        for extent in reversed(self.shape):
            group: list[Digit[Extent]] = []
            while extent != 1:
                if not left:
                    return None
                digit = left.pop()
                if (outer := _quotient(extent, digit.extent)) is not None:
                    extent = outer
                elif (outer := _quotient(digit.extent, extent)) is not None:
                    left.append(Digit[Extent](outer, digit.dim, digit.step * extent))
                    digit, extent = Digit[Extent](extent, digit.dim, digit.step), 1
                else:
                    return None
                group.insert(0, digit)
            groups.insert(0, group)
        return None if left else groups


def movement(group: FusedOp, extents_of: ExtentsOf = shape_of) -> Movement | None:
    """Return the effect of the group's ops on the index, if they move a whole tensor.

    The dims form one chain from operand to result.
    """
    if len(group.inputs) != 1 or len(group.outputs) != 1:
        return None
    value: SSAValue = group.body.block.args[0]
    shape = extents_of(value)
    if not shape or not has_elements(shape) or not is_number(element_type_of(value)):
        return None
    moved: Movement | None = Movement.of(shape)
    for op in group.body.block.ops:
        if op is group.terminator:
            break
        if not isinstance(op, ReorderOp | TransposeOp | ReshapeOp) or op.input is not value:
            return None
        if isinstance(op, TransposeOp):
            moved = moved.transposed(op.permutation.get_values())
        elif isinstance(op, ReshapeOp):
            moved = moved.reshaped(extents_of(op.output))
        if moved is None:
            return None
        value = op.output
    is_chain = group.terminator.arguments[0] is value and not isinstance(value, BlockArgument)
    return moved if is_chain else None


def movement_nest(
    movement: Movement, source: Layout, target: Layout
) -> tuple[LoopDim[Extent], ...] | None:
    """Return merged loop dims with the strides of source and target, in the order of the target.

    The result is None if a tensor is padded to whole blocks, if digits and blocks do not divide one
    another, or if a tensor with open dims is blocked.
    """
    groups = movement.by_dim()
    if groups is None:
        return None
    tensors = ((movement.source, source), (movement.shape, target))
    is_open = any(not isinstance(extent, int) for shape, _ in tensors for extent in shape)
    for shape, layout in tensors:
        if any(extent % layout.block(dim) != 0 for dim, extent in enumerate(shape)):
            return None
        if is_open and not layout.is_permutation:
            return None
    before, after = (Stored[Extent](shape, layout) for shape, layout in tensors)
    dims: list[tuple[int, LoopDim[Extent]]] = []
    for dim, group in enumerate(groups):
        step: Extent = 1
        for digit in reversed(group):
            whole = digit, Digit(digit.extent, dim, step)
            pieces = [whole] if is_open else _cut(*cast(_Known, whole), source, target)
            if pieces is None:
                return None
            for from_digit, to_digit in pieces:
                strides = (
                    before.stride(from_digit.dim, from_digit.step),
                    after.stride(to_digit.dim, to_digit.step),
                )
                dims.append((dim, LoopDim(from_digit.extent, strides)))
            step = step * digit.extent
    if is_open:
        place = {stored.dim: number for number, stored in enumerate(target.dims)}
        dims.reverse()
        dims.sort(key=lambda each: place[each[0]])
    else:
        dims.sort(key=lambda each: cast(int, each[1].strides[1]), reverse=True)
    return merged([loop for _, loop in dims]) or (LoopDim(1, (1, 1)),)


def _quotient(a: Extent, b: Extent) -> Extent | None:
    """Return a / b where that is a whole number whatever sizes are."""
    if isinstance(a, int) and isinstance(b, int):
        return None if a % b else a // b
    return exact_quotient(a, b)


def _cut(
    source: Digit, target: Digit, source_layout: Layout, target_layout: Layout
) -> Sequence[tuple[Digit, Digit]] | None:
    """Return the pair of digits in pieces that begin where a block of either layout begins."""
    cuts = {1, source.extent}
    for digit, layout in ((source, source_layout), (target, target_layout)):
        for step in _steps_within(digit, layout):
            if step % digit.step:
                return None
            cuts.add(step // digit.step)
    pieces = list(pairwise(sorted(cuts)))
    if any(high % low for low, high in pieces):
        return None
    return [
        (
            Digit(high // low, source.dim, source.step * low),
            Digit(high // low, target.dim, target.step * low),
        )
        for low, high in pieces
    ]


def _steps_within(digit: Digit, layout: Layout) -> Iterator[int]:
    for stored in layout.dims:
        if stored.dim == digit.dim and digit.step < stored.step < digit.step * digit.extent:
            yield stored.step
