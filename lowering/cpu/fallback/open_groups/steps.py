"""Steps of a kernel: loops that write a tensor, cut into iterations that need no other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from braid.lowering.common.element_types import compute_type, constant
from braid.lowering.cpu.fallback.open_groups.row_sums import row_sums
from braid.lowering.cpu.fallback.open_groups.stages import StageTensor
from braid.lowering.cpu.fallback.open_groups.tensors import (
    Point,
    ReshapedTensor,
    StoredTensor,
    Tensor,
    all_of,
    below,
)
from braid.lowering.emit.emitter import Emitter, Index
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of

_ROW = 4096
"""Elements along the last dim that one iteration writes at most."""


@dataclass(frozen=True)
class Step:
    """A step of several iterations; `run` appends one. Iterations do not read the tensor that they
    write.
    """

    grid: Extent
    run: Callable[[Index], None]


def nest(e: Emitter, extents: Sequence[Extent], body: Callable[[Point], None]) -> Step:
    """Return a step that runs `body` at each index of a shape, along the last dim in a loop."""
    if not extents:
        return Step(1, lambda _: body([]))

    def along(point: Point, begin: Index, end: Index) -> None:
        e.loop(begin, end, 1, lambda last: body([*point, last]))

    return rows(e, extents, _ROW, along)


def rows(
    e: Emitter, extents: Sequence[Extent], most: int, body: Callable[[Point, Index, Index], None]
) -> Step:
    """Return a step that runs `body` for parts of at most this many elements along the last dim.

    It gets the index of the other dims, and the range along the last one.
    """
    *outer, row = extents
    parts = -(-row // most)

    def run(index: Index) -> None:
        index, part = e.divmod(index, parts)
        point = e.coordinates(index, outer)
        begin = e.mul(part, most)
        body(point, begin, e.minimum(e.add(begin, most), row))

    return Step(product_of(outer) * parts, run)


def loops(e: Emitter, extents: Sequence[Extent], body: Callable[[Point], None]) -> None:
    """Append loops that run `body` at each index of a shape in row-major order."""

    def inner(point: Point) -> None:
        if len(point) == len(extents):
            body(point)
        else:
            e.loop(0, extents[len(point)], 1, lambda index: inner([*point, index]))

    inner([])


def filling(e: Emitter, target: StoredTensor, source: Tensor) -> Step:
    """Return the step that writes the elements of `source`, and the zeros that fill up blocks."""
    if isinstance(source, ReshapedTensor):
        stored = source.source
        if isinstance(stored, StoredTensor) and stored.is_plain and target.is_plain:

            def copy(point: Point) -> None:
                target.write(e, stored.read(e, point[0]), point[0])

            return nest(e, [product_of(target.extents)], copy)
    if isinstance(source, StageTensor) and target.written == target.extents:
        sums = row_sums(source.nest)
        if sums is not None:
            return rows(e, target.extents, sums.most, partial(sums.emit, e, target))
    checked = [
        dim
        for dim, (written, extent) in enumerate(zip(target.written, target.extents, strict=True))
        if written != extent
    ]

    def write(point: Point) -> None:
        if not checked:
            target.store(e, source.at(e, point), point)
            return
        zero = constant(e.builder, 0, compute_type(target.element_type))
        inside = all_of(e, [below(e, point[dim], target.extents[dim]) for dim in checked])
        (value,) = e.replaced(inside, [zero], lambda: [source.at(e, point)])
        target.store(e, value, point)

    return _in_order_of(e, target, write)


def _in_order_of(e: Emitter, target: StoredTensor, body: Callable[[Point], None]) -> Step:
    """Return a step that runs `body` at each index, so that elements are written as they lie."""
    order = target.order

    def run(ordered: Point) -> None:
        body([ordered[order.index(dim)] for dim in range(len(order))])

    return nest(e, [target.written[dim] for dim in order], run)
