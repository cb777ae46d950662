"""Rows of several signals, transposed so that a vector has one position of each of them."""

from collections.abc import Callable, Sequence

from braid.lowering.cpu.kernels.fourier.complex_numbers import Complex
from braid.lowering.cpu.kernels.fourier.places import Places, Plane, filled
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.register_transpose import transposed


def load_rows(
    e: Emitter, source: Buffer, begins: Sequence[Index], count: int, plane: Plane
) -> None:
    """Copy `count` numbers of each row to a plane: real numbers, or pairs of them."""
    step = 1 if plane.imaginary is None else 2
    mask = None if count >= e.lanes else e.tail_mask(count)

    def block(place: Index) -> None:
        at = e.mul(place, step)
        rows = [source.load(e, e.add(begin, at), mask) for begin in begins]
        columns = transposed(e, rows)[:count]
        for first in range(0, len(columns), step):
            imaginary = columns[first + 1] if step == 2 else None
            plane.store(e, Complex(columns[first], imaginary), e.add(place, first // step))

    _each_block(e, count, step, block)


def store_rows(
    e: Emitter,
    target: Buffer,
    begins: Sequence[Index],
    count: int,
    result: Places,
    *,
    is_paired: bool,
) -> None:
    """Copy `count` numbers to each row: the real parts of places, or both parts in turn."""
    step = 2 if is_paired else 1
    mask = None if count >= e.lanes else e.tail_mask(count)

    def block(place: Index) -> None:
        columns: list[Value] = []
        for first in range(0, min(count, e.lanes), step):
            value = result.load(e, e.add(place, first // step))
            parts = [value.real, value.imaginary][:step]
            columns.extend(filled(e, part, target) for part in parts)
        for begin, row in zip(begins, transposed(e, columns), strict=True):
            target.store(e, row, e.add(begin, e.mul(place, step)), mask)

    _each_block(e, count, step, block)


def _each_block(e: Emitter, count: int, step: int, block: Callable[[Index], None]) -> None:
    """Run `block` from each place on at which a vector of numbers begins; the last one may repeat
    some before it.
    """
    places, size = count // step, e.lanes // step
    last = max(0, places - size)
    is_whole = places <= size or places % size == 0
    e.loop(0, places, size, lambda at: block(at if is_whole else e.minimum(at, last)))
