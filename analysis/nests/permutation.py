"""A permutation of elements as a loop nest: which element of storage goes where. No IR.

Reorders, transposes, and transposes between reshapes (channel shuffles) are all described by
digits: a dim of the source is counted in one or more digits, and so is a dim of the target.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from braid.analysis.nests.dims import LoopDim, Stored, merged
from braid.dialects.braid.layout import Layout


@dataclass(frozen=True)
class Digit:
    """`extent` values of an index of dim `dim`, in steps of `step`."""

    extent: int
    dim: int
    step: int


@dataclass(frozen=True)
class Movement:
    """A tensor under a new index: digits of the source's dims, in row-major order of `shape`."""

    shape: tuple[int, ...]
    digits: tuple[Digit, ...]

    @staticmethod
    def of(shape: Sequence[int]) -> "Movement":
        """Return the movement that leaves every element where it is."""
        digits = (Digit(extent, dim, 1) for dim, extent in enumerate(shape) if extent != 1)
        return Movement(tuple(shape), tuple(digits))

    def reshaped(self, shape: Sequence[int]) -> "Movement":
        """Return the same order of elements under another shape."""
        return Movement(tuple(shape), self.digits)

    def transposed(self, permutation: Sequence[int]) -> "Movement | None":
        """Return the movement whose dim i was `permutation[i]`; None where a digit is cut."""
        groups = self.by_dim()
        if groups is None:
            return None
        digits = (digit for dim in permutation for digit in groups[dim])
        return Movement(tuple(self.shape[dim] for dim in permutation), tuple(digits))

    def by_dim(self) -> list[list[Digit]] | None:
        """Return the digits of each dim of `shape`, outermost first, cut where a dim begins."""
        left = list(self.digits)
        groups: list[list[Digit]] = []
        for extent in reversed(self.shape):
            group: list[Digit] = []
            while extent != 1:
                digit = left.pop()
                if extent % digit.extent == 0:
                    extent //= digit.extent
                elif digit.extent % extent == 0:
                    outer = Digit(digit.extent // extent, digit.dim, digit.step * extent)
                    left.append(outer)
                    digit, extent = Digit(extent, digit.dim, digit.step), 1
                else:
                    return None
                group.insert(0, digit)
            groups.insert(0, group)
        return groups


def movement_nest(
    movement: Movement, source_shape: Sequence[int], source: Layout, target: Layout
) -> tuple[LoopDim, ...] | None:
    """Return merged loop dims with the strides of source and target, in the order of the target.

    None where a tensor is padded to whole blocks, or digits and blocks do not divide one another.
    """
    groups = movement.by_dim()
    if groups is None:
        return None
    for shape, layout in ((source_shape, source), (movement.shape, target)):
        if any(extent % layout.block(dim) for dim, extent in enumerate(shape)):
            return None
    before, after = Stored(tuple(source_shape), source), Stored(movement.shape, target)
    dims: list[LoopDim] = []
    for dim, group in enumerate(groups):
        step = 1
        for digit in reversed(group):
            pieces = _cut(digit, source, Digit(digit.extent, dim, step), target)
            if pieces is None:
                return None
            for from_digit, to_digit in pieces:
                strides = (
                    before.stride(from_digit.dim, from_digit.step),
                    after.stride(to_digit.dim, to_digit.step),
                )
                dims.append(LoopDim(from_digit.extent, strides))
            step *= digit.extent
    dims.sort(key=lambda dim: dim.strides[1], reverse=True)
    return merged(dims) or (LoopDim(1, (1, 1)),)


def _cut(
    source: Digit, source_layout: Layout, target: Digit, target_layout: Layout
) -> list[tuple[Digit, Digit]] | None:
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
