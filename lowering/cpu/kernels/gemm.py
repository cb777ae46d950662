"""Matrix products with an elementwise epilogue: row-major A and C, B packed or row-major."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import BlockArgument

from braid.analysis.kernel_family import (
    Kernel,
    KernelRequest,
    LayoutChoice,
    Overlap,
    Schedule,
)
from braid.analysis.strided_storage import overlap_of
from braid.analysis.tensor_storage import storage_bytes
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction import tiling
from braid.lowering.cpu.kernels.contraction.kernel import Contraction, ContractionKernel
from braid.lowering.cpu.kernels.contraction.overlapped import OverlappedGemm, can_overlap
from braid.lowering.cpu.kernels.emit.kernel_function import grid_kernel, overlapping_kernel
from braid.lowering.cpu.kernels.emit.machine import VectorUnit, host_vector_unit
from braid.lowering.cpu.kernels.groups.layout_choices import results_alike, typed_choice
from braid.lowering.cpu.kernels.groups.loop_dims import (
    LoopDim,
    merged,
)
from braid.lowering.cpu.kernels.groups.traffic import stored_bytes
from braid.lowering.cpu.kernels.pointwise.points import Pointwise, pointwise

_SCHEDULES = 64
"""Length of the schedule space: beyond it the model sees no chance."""


@dataclass(frozen=True)
class _Match:
    """A group as a product and its epilogue."""

    op: MatmulOp
    lhs: BlockArgument
    rhs: BlockArgument
    points: Pointwise


@dataclass(frozen=True)
class GemmFamily:
    """`braid.matmul` of f32 with an elementwise epilogue.

    Layouts: everything row-major but B, which is packed into column blocks (`Ba32b`, `abDc32d`:
    best for weights, which are packed at compile time) or row-major as well.
    """

    unit: VectorUnit = field(default_factory=host_vector_unit)
    name: str = "gemm"

    def accepts(self, group: FusedOp) -> bool:
        """One product of block arguments, the rest elementwise on its result."""
        return _match(group) is not None

    def layouts(self, group: FusedOp) -> Sequence[LayoutChoice]:
        """Packed B with the block sizes from best to worst, then row-major B."""
        match = _match(group)
        if match is None:
            return ()
        rank = len(match.points.shape)
        vectors = tiling.ranked_vectors(_size(match, packed=True), self.unit)
        blocks = [_packed(rank, count * self.unit.lanes) for count in vectors]
        return [_choice(group, match, layout) for layout in (*blocks, Layout.row_major(rank))]

    def takes_strides(self, group: FusedOp, choice: LayoutChoice) -> bool:
        """With neighbouring elements along the innermost dims; packed B is on its own."""
        match = _match(group)
        if match is None or not results_alike(choice):
            return False
        rhs = choice.operands[match.rhs.index]
        if not rhs.is_row_major and rhs.strides is not None:
            return False
        values = (*group.inputs, *group.outputs)
        layouts = (*choice.operands, *choice.results)
        return all(
            layout.strides is None or layout.strides[-1] == 1 or shape_of(value)[-1] == 1
            for value, layout in zip(values, layouts, strict=True)
        )

    def schedules(self, group: FusedOp) -> Iterator[Schedule]:
        """Tiles that fit the block of B, by predicted time."""
        match = _match(group)
        assert match is not None
        layout = layout_of(group.inputs[match.rhs.index].type)
        packed = not layout.is_row_major
        block = layout.block(layout.rank - 1) // self.unit.lanes
        vectors = [block] if packed else [1, 2, 3, 4]
        b_bytes = storage_bytes(match.rhs.type, layout)
        size = _size(match, packed)
        if overlap_of(group) is not None:
            # The rows of A are as far apart as those of the result.
            size = replace(size, row_bytes=4 * size.columns)
        space = tiling.schedules(size, vectors, self.unit, b_bytes)
        return islice(space, _SCHEDULES)

    def default_schedule(self, group: FusedOp) -> Schedule:
        """The first of the schedules."""
        return next(self.schedules(group))

    def seconds(self, group: FusedOp, choice: LayoutChoice) -> float:
        """Time of the best tile, or of memory where that is slower."""
        match = _match(group)
        assert match is not None
        layout = choice.operands[match.rhs.index]
        moved = stored_bytes(group, choice)
        size = _size(match, not layout.is_row_major)
        if layout.is_row_major:
            return min(tiling.seconds(size, v, self.unit, moved) for v in (1, 2, 3, 4))
        return tiling.seconds(
            size, layout.block(layout.rank - 1) // self.unit.lanes, self.unit, moved
        )

    def overlap(self, group: FusedOp) -> Overlap | None:
        """The left operand, if its rows are dense and no longer than those of the result."""
        match = _match(group)
        if match is None:
            return None
        kernel = self._kernel(group, match, self.default_schedule(group))
        if not can_overlap(kernel.problem):
            return None
        return Overlap(match.lhs.index, OverlappedGemm(kernel).scratch_bytes)

    def emit(self, request: KernelRequest) -> Kernel:
        """One tile per grid iteration."""
        group = request.group
        match = _match(group)
        assert match is not None
        schedule = {**self.default_schedule(group), **request.schedule}
        kernel = self._kernel(group, match, schedule)
        problem = kernel.problem
        if overlap_of(group) == match.lhs.index and can_overlap(problem):
            return overlapping_kernel(request, self.unit, OverlappedGemm(kernel))
        grid = math.prod(kernel.grid_extents)
        return grid_kernel(request, self.unit, grid, kernel.iteration, problem.in_place)

    def _kernel(self, group: FusedOp, match: _Match, schedule: Schedule) -> ContractionKernel:
        tile, lanes = tiling.tile_of(schedule), self.unit.lanes
        problem = _contraction(group, match, tile.vectors * lanes, lanes)
        return ContractionKernel(problem, tile, lanes, bool(schedule["columns_outside"]))


def _match(group: FusedOp) -> _Match | None:
    products = [op for op in group.body.block.ops if isinstance(op, MatmulOp)]
    if len(products) != 1:
        return None
    op = products[0]
    lhs, rhs = op.lhs, op.rhs
    if not isinstance(lhs, BlockArgument) or not isinstance(rhs, BlockArgument) or lhs is rhs:
        return None
    if element_type_of(op.lhs) != Float32Type():
        return None
    points = pointwise(group, op)
    if points is None or rhs in points.leaves:
        return None
    extents = (*shape_of(lhs), *shape_of(rhs))
    return _Match(op, lhs, rhs, points) if min(extents) > 0 else None


def _packed(rank: int, block: int) -> Layout:
    """Batch dims, column blocks, K, then the columns of a block."""
    letters = Layout.row_major(rank).tag
    batch, k, n = letters[:-2], letters[-2], letters[-1]
    return Layout.parse(f"{batch}{n.upper()}{k}{block}{n}")


def _choice(group: FusedOp, match: _Match, rhs: Layout) -> LayoutChoice:
    plain = Layout.row_major(rhs.rank)
    operands = tuple(
        rhs if index == match.rhs.index else plain for index in range(len(group.inputs))
    )
    return LayoutChoice(operands, (plain,) * len(group.outputs))


def _size(match: _Match, packed: bool) -> tiling.ContractionSize:
    """Batches that share B count as rows."""
    *batch, m, n = match.points.shape
    shared = math.prod(shape_of(match.rhs)[:-2]) == 1
    count = math.prod(batch)
    depth = shape_of(match.lhs)[-1]
    batches, rows = (1, count * m) if shared else (count, m)
    constants = match.points.constants
    return tiling.ContractionSize(batches, rows, n, depth, 4 * depth, packed, constants)


def _contraction(group: FusedOp, match: _Match, block: int, lanes: int) -> Contraction:
    """The loop dims and strides of the group, for column blocks of `block`."""
    points = match.points
    shape = points.shape
    choice = typed_choice(group)
    layout = choice.operands[match.rhs.index]
    a_shape, b_shape = shape_of(match.lhs), shape_of(match.rhs)
    a_strides = _strides(match.lhs, choice)
    stored = layout.storage_strides(b_shape)
    b_strides = (*_repeated(b_shape, stored)[: len(shape) - 2], 0)
    leaves = [_strides(leaf, choice) for leaf in points.leaves]
    columns = (a_strides, b_strides, *leaves, choice.results[0].storage_strides(shape))
    dims = [
        LoopDim(extent, tuple(strides[dim] for strides in columns))
        for dim, extent in enumerate(shape[:-1])
    ]
    outer = merged(dims)
    row = LoopDim(1, (0,) * len(columns))
    if outer and outer[-1].strides[1] == 0:
        outer, row = outer[:-1], outer[-1]
    if layout.is_row_major:
        k_stride, block_stride = stored[-2], block
    else:
        k_stride, block_stride = block, block * a_shape[-1]
    return Contraction(
        outer=outer,
        row=row,
        reduction=(LoopDim(a_shape[-1], (1, k_stride)),),
        columns=shape[-1],
        columns_padded=not layout.is_row_major,
        block_stride=block_stride,
        a=match.lhs.index,
        b=match.rhs.index,
        anchor=match.op.output,
        points=points,
        vector_steps=(*(lanes * leaf[-1] for leaf in leaves), lanes),
    )


def _strides(argument: BlockArgument, choice: LayoutChoice) -> tuple[int, ...]:
    shape = shape_of(argument)
    return _repeated(shape, choice.operands[argument.index].storage_strides(shape))


def _repeated(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Strides with 0 for the dims that are repeated."""
    return tuple(0 if e == 1 else s for e, s in zip(shape, strides, strict=False))
