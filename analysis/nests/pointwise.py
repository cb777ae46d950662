"""Pointwise nests: elementwise ops on one set of points, and where each tensor lies along it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard, cast

from xdsl.dialects.builtin import i1
from xdsl.ir import BlockArgument, Operation, SSAValue

from braid.analysis.nests.dims import (
    LoopDim,
    Stored,
    has_elements,
    is_repeated,
    merged,
    strides_along,
)
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import bytes_of, dense_is_splat, is_number
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.movement import SliceOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.sized_ops import SizedSliceOp
from braid.support.sizes.expression import Extent, ExtentT

ExtentsOf = Callable[[SSAValue], tuple[Extent, ...]]
"""Returns the shape of a tensor, with sizes for open dims."""

AnySlice = SliceOp | SizedSliceOp
"""A slice at numbers, or at sizes."""

InPlace = tuple[int, int]
"""Numbers of an operand and of a result that may be one buffer."""


@dataclass(frozen=True)
class Pointwise:
    """Elementwise ops in order, the block arguments they read, and the group's results.

    `shape` is the logical shape of the results; `slices` are parts of block arguments that are
    read where they lie.
    """

    ops: tuple[Operation, ...]
    leaves: tuple[BlockArgument, ...]
    results: tuple[SSAValue, ...]
    shape: tuple[int, ...]
    slices: tuple[AnySlice, ...] = ()

    def stored(
        self, choice: LayoutChoice, shape_of: Callable[[SSAValue], tuple[ExtentT, ...]]
    ) -> list[Stored[ExtentT]]:
        """Return the leaves, then a result, as they are stored in these layouts."""
        leaves = (Stored(shape_of(leaf), choice.operands[leaf.index]) for leaf in self.leaves)
        return [*leaves, Stored(shape_of(self.results[0]), choice.results[0])]

    @property
    def flops(self) -> int:
        """Return the scalar operations at one point."""
        return sum(op.ROW.flops for op in self.ops if isinstance(op, ElementwiseOp))

    @property
    def constants(self) -> int:
        """Return the vectors of constants that stay in registers between tiles, 4 at most."""
        splats = {splat(op) for op in self.ops if isinstance(op, ConstantOp)}
        return min(4, len(splats))

    def in_place(
        self,
        leaves: Sequence[Sequence[Extent]],
        results: Sequence[Sequence[Extent]],
        read_elsewhere: Collection[SSAValue] = (),
    ) -> tuple[InPlace, ...]:
        """Return the pairs of a leaf and a result with the same storage, element by element.

        A result may overwrite such a leaf, which is read only where the result is written. `leaves`
        and `results` are the strides of each along all loops of the kernel; a leaf that is repeated
        along one of them differs. Values in `read_elsewhere` are also read at other points.
        """
        return tuple(
            (leaf.index, number)
            for leaf, leaf_strides in zip(self.leaves, leaves, strict=True)
            if leaf not in read_elsewhere
            for number, (result, strides) in enumerate(zip(self.results, results, strict=True))
            if tuple(leaf_strides) == tuple(strides) and _bytes(leaf) == _bytes(result)
        )


@dataclass(frozen=True)
class PointwiseNest:
    """The loops of a pointwise group in chosen layouts, as few as possible, outermost first.

    Extents and strides are sizes where dims are open. The strides of `dims`, and `starts` (the
    elements before the first that is read or written), list the leaves, then the slices, then the
    results. Innermost strides are 1 or 0.
    """

    points: Pointwise
    dims: tuple[LoopDim[Extent], ...]
    starts: tuple[Extent, ...]

    @property
    def reads(self) -> int:
        """Return the number of tensors that are read."""
        return len(self.points.leaves) + len(self.points.slices)

    @cached_property
    def arguments(self) -> tuple[int, ...]:
        """Return the number of the block argument that each read tensor is."""
        sliced = (cast(BlockArgument, op.input) for op in self.points.slices)
        return tuple(argument.index for argument in (*self.points.leaves, *sliced))

    @property
    def in_place(self) -> tuple[InPlace, ...]:
        """Return which result may overwrite which operand."""
        strides = [tuple(s) for s in zip(*(dim.strides for dim in self.dims), strict=True)]
        leaves = strides[: len(self.points.leaves)]
        sliced = [op.input for op in self.points.slices]
        return self.points.in_place(leaves, strides[self.reads :], sliced)


def pointwise(
    group: FusedOp,
    anchor: Operation | None = None,
    *,
    apart: Operation | None = None,
    with_slices: bool = False,
    is_open: bool = False,
) -> Pointwise | None:
    """Return the group without `anchor` and `apart`; None unless all ops are
    elementwise on one set of points.

    The points are those of the results: all results have one shape, the anchor's if there is one,
    and every value is repeated to it. The shape is static unless the group `is_open`. Slices of
    block arguments may be read `with_slices`.
    """
    members = tuple(
        op for op in group.body.block.ops if op not in (anchor, apart, group.terminator)
    )
    slices = tuple(op for op in members if with_slices and _is_stored_slice(op))
    ops = tuple(op for op in members if op not in slices)
    results = tuple(group.terminator.arguments)
    shapes = {shape_of(result) for result in results}
    if anchor is not None:
        shapes.add(shape_of(anchor.results[0]))
    if len(shapes) != 1 or any(_is_read(result) for result in results):
        return None
    return points_of(ops, results, shapes.pop(), slices, is_open=is_open)


def points_of(
    ops: Sequence[Operation],
    results: Sequence[SSAValue],
    shape: tuple[int, ...],
    slices: Sequence[AnySlice] = (),
    *,
    is_open: bool = False,
) -> Pointwise | None:
    """Return `ops` on points of this shape with `results` stored; None unless elementwise."""
    if not all(map(_is_pointwise, ops)):
        return None
    used = dict.fromkeys((*(operand for op in ops for operand in op.operands), *results))
    leaves = tuple(value for value in used if isinstance(value, BlockArgument))
    stored = (*results, *(op.input for op in slices))
    if any(shape_of(result) != shape for result in results):
        return None
    if any(extent < 1 and not (is_open and extent == DYNAMIC) for extent in shape):
        return None
    if not all(is_number(element_type_of(v)) for v in stored):
        return None
    if not all(is_number(kind) or kind == i1 for kind in map(element_type_of, leaves)):
        return None
    return Pointwise(tuple(ops), leaves, tuple(results), shape, tuple(slices))


def pointwise_nest(
    points: Pointwise, choice: LayoutChoice, extents_of: ExtentsOf = shape_of
) -> PointwiseNest | None:
    """Return the nest of `points` in these layouts; `extents_of` gives the shapes of its tensors.

    None if the layouts do not share their innermost dim, or have a padded tail, or a tensor is not
    known to be repeated or as long as the results along some dim.
    """
    order = choice.results[0]
    shape = extents_of(points.results[0])
    if any(result != order for result in choice.results):
        return None
    if any(tuple(extents_of(result)) != tuple(shape) for result in points.results):
        return None
    if any(shape[dim] % order.block(dim) != 0 for dim in range(order.rank)):
        return None
    tensors = [(extents_of(leaf), choice.operands[leaf.index]) for leaf in points.leaves]
    if not all(is_repeated(own, shape) for own, _ in tensors):
        return None
    if not all(is_repeated(tuple(extents_of(op.output)), shape) for op in points.slices):
        return None
    strides = [strides_along(s, layout, order) for s, layout in tensors]
    sliced = [(op, extents_of(op.input)) for op in points.slices]
    strides += [_slice_strides(op, own, choice.operands, order) for op, own in sliced]
    strides += [strides_along(shape, order, order)] * len(choice.results)
    if any(s is None for s in strides):
        return None
    columns = zip(*(s for s in strides if s is not None), strict=True)
    extents = order.storage_shape(shape)
    loops = [LoopDim[Extent](e, tuple(c)) for e, c in zip(extents, columns, strict=True)]
    dims = merged(loops) or (LoopDim[Extent](1, (1,) * len(strides)),)
    if any(stride not in (0, 1) for stride in dims[-1].strides):
        return None
    starts = [_start(op, own, choice.operands) for op, own in sliced]
    around = (0,) * len(points.leaves), (0,) * len(choice.results)
    return PointwiseNest(points, dims, (*around[0], *starts, *around[1]))


def splat(op: ConstantOp) -> float | int | None:
    """Return the one value of a constant of numbers, None if its elements differ."""
    if not dense_is_splat(op.value) or not is_number(element_type_of(op.output)):
        return None
    return cast(float | int, op.value.get_values()[0])


def _is_pointwise(op: Operation) -> bool:
    return splat(op) is not None if isinstance(op, ConstantOp) else isinstance(op, ElementwiseOp)


def _is_read(value: SSAValue) -> bool:
    return isinstance(value, BlockArgument) or isinstance(value.owner, AnySlice)


def _is_stored_slice(op: Operation) -> TypeGuard[AnySlice]:
    return isinstance(op, AnySlice) and isinstance(op.input, BlockArgument)


def _slice_strides(
    op: AnySlice, shape: Sequence[Extent], operands: Sequence[Layout], order: Layout
) -> tuple[Extent, ...] | None:
    """Return the elements of the sliced operand per step along each storage dim of `order`.

    The result is None if a step has no single stride: for a slice of a dim that is stored in
    blocks, or of a tensor with unknown extents.
    """
    layout = operands[cast(BlockArgument, op.input).index]
    sizes: Sequence[Extent] = op.sizes.get_values()
    steps = op.strides.get_values()
    if not has_elements(shape) or any(
        layout.block(d) != 1 and sizes[d] != shape[d] for d in range(layout.rank)
    ):
        return None
    strides = strides_along(shape, layout, order)
    if strides is None:
        return None
    return tuple(
        0 if sizes[target.dim] == 1 else stride * steps[target.dim]
        for stride, target in zip(strides, order.dims, strict=True)
    )


def _start(op: AnySlice, shape: Sequence[Extent], operands: Sequence[Layout]) -> Extent:
    """Return the elements of the operand of this shape before the first one of the slice."""
    layout = operands[cast(BlockArgument, op.input).index]
    strides = strides_along(shape, layout, layout)
    assert strides is not None
    low: Sequence[Extent] = op.offsets.get_values()  # 0 of dims that are stored in blocks
    return sum(low[dim.dim] * s for dim, s in zip(layout.dims, strides, strict=True))


def _bytes(value: SSAValue) -> int:
    return bytes_of(element_type_of(value))
