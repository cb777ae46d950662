"""Matrix products with an elementwise epilogue: which groups are one, and their loop nests."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import bf16, f16, f32, f64
from xdsl.ir import BlockArgument, Operation, SSAValue

from braid.analysis.nests.dims import LoopDim, merged
from braid.analysis.nests.pointwise import ExtentsOf, Pointwise, pointwise
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.elementwise import ELEMENTWISE
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction.problem import Contraction
from braid.lowering.cpu.kernels.contraction.slabs import SlabGather, Slabs, slab_gather
from braid.lowering.cpu.kernels.contraction.tiling import ContractionSize
from braid.lowering.cpu.kernels.groups.layout_choices import results_alike
from braid.lowering.emit.math.points import emittable
from braid.support.sizes.expression import Extent
from braid.targets.machines.machine import Machine


@dataclass(frozen=True)
class MatmulMatch:
    """A product of block arguments and its epilogue.

    With `slabs`, `rhs` is the table that the right operand is gathered from; if it is `widened`,
    that operand is `rhs` converted to f32.
    """

    op: MatmulOp
    lhs: BlockArgument
    rhs: BlockArgument
    points: Pointwise
    slabs: SlabGather | None = None
    widened: bool = False

    @property
    def has_one_rhs(self) -> bool:
        """Whether all batches have the same right operand."""
        return self.slabs is None and math.prod(shape_of(self.rhs)[:-2]) == 1


def match_matmul(
    group: FusedOp, narrow: bool = False, *, is_open: bool = False
) -> MatmulMatch | None:
    """The only product of the group: not empty, its right operand read by nothing else.

    Of f32 or f64; if `narrow`, of numbers that are added up in a type of their own. The right
    operand of one of f32 may be gathered from a table, or be converted from f16 or bf16.
    """
    products = [op for op in group.body.block.ops if isinstance(op, MatmulOp)]
    if len(products) != 1:
        return None
    op = products[0]
    lhs, rhs = op.lhs, op.rhs
    slabs = None if narrow else slab_gather(rhs)
    widening = None if narrow else _widening(rhs)
    apart = widening
    if slabs is not None:
        rhs, apart = slabs.table, slabs.op
    elif widening is not None:
        rhs = widening.operands[0]
    if not isinstance(lhs, BlockArgument) or not isinstance(rhs, BlockArgument) or lhs is rhs:
        return None
    if not has_types(op, narrow):
        return None
    points = emittable(pointwise(group, op, apart=apart, is_open=is_open))
    if points is None or rhs in points.leaves or (narrow and lhs in points.leaves):
        return None
    if slabs is not None and slabs.indices in points.leaves:
        return None
    extents = (*shape_of(lhs), *shape_of(rhs))
    found = MatmulMatch(op, lhs, rhs, points, slabs, widening is not None)
    return found if 0 not in extents and (is_open or DYNAMIC not in extents) else None


def widens_fast(match: MatmulMatch, machine: Machine) -> bool:
    """Whether the machine has instructions for what is converted as it is loaded, if anything is.

    bf16 is the upper half of an f32; f16 takes F16C on x86.
    """
    if not match.widened or element_type_of(match.rhs) == bf16:
        return True
    return not machine.architecture.startswith("x86") or "f16c" in machine.enabled_features


def _widening(value: SSAValue) -> Operation | None:
    """What converts `value` from f16 or bf16 for the product alone, if it is f32 and converted."""
    op = value.owner
    if not isinstance(op, ELEMENTWISE["cast"]) or not value.has_one_use():
        return None
    kinds = element_type_of(op.operands[0]), element_type_of(value)
    return op if kinds in ((f16, f32), (bf16, f32)) else None


def matmul_size(match: MatmulMatch, packed: bool, step: int = 1) -> ContractionSize:
    """How large the product is; batches that share B count as rows.

    The depth counts steps of so many numbers, which are as many bytes as a sum has.
    """
    *batch, m, n = match.points.shape
    count = math.prod(batch)
    depth = -(-shape_of(match.lhs)[-1] // step)
    batches, rows = (1, count * m) if match.has_one_rhs else (count, m)
    constants = match.points.constants
    row_bytes = bytes_of(element_type_of(match.op.output)) * depth
    fixed = (batches, rows, n, depth, row_bytes, packed, constants)
    return ContractionSize(*fixed, widened=match.widened)


def has_types(op: ConvOp | MatmulOp, narrow: bool) -> bool:
    """Whether the product is of f32 or f64; or, if `narrow`, is added up in a type of its own."""
    if narrow:
        return op.accumulator is not None
    return op.accumulator is None and element_type_of(op.operands[0]) in (f32, f64)


def matmul_contraction(
    match: MatmulMatch, choice: LayoutChoice, block: int, lanes: int, step: int = 1
) -> Contraction:
    """Return the nest of the group in these layouts, for column blocks of `block` columns.

    A step of the reduction is over `step` rows of B, which are neighbours in its blocks.
    """
    return cast(Contraction, open_contraction(match, choice, block, lanes, step, shape_of))


def open_contraction(
    match: MatmulMatch,
    choice: LayoutChoice,
    block: int,
    lanes: int,
    step: int,
    extents_of: ExtentsOf,
) -> Contraction[Extent]:
    """Return the nest as `matmul_contraction` does, with extents as `extents_of` gives them.

    Those of B, and the last ones of A and the results, are known.
    """
    points = match.points
    shape = extents_of(match.op.output)
    layout = choice.operands[match.rhs.index]
    a_shape, b_shape = shape_of(match.lhs), shape_of(match.rhs)

    def strides_of(argument: BlockArgument) -> tuple[Extent, ...]:
        own = extents_of(argument)
        return _repeated(own, choice.operands[argument.index].storage_strides(own))

    a_strides = strides_of(match.lhs)
    stored = layout.untransformed.storage_strides(b_shape)
    slabs = None
    if match.slabs is not None:
        slabs = Slabs.of(match.slabs, stored[0])
        b_strides = (*match.slabs.index_strides(choice), 0)
    else:
        b_strides = (*_repeated(b_shape, stored)[: len(shape) - 2], 0)
    leaves = [strides_of(leaf) for leaf in points.leaves]
    columns = (a_strides, b_strides, *leaves, choice.results[0].storage_strides(shape))
    dims = [
        LoopDim[Extent](extent, tuple(strides[dim] for strides in columns))
        for dim, extent in enumerate(shape[:-1])
    ]
    outer = merged(dims)
    row = LoopDim[Extent](1, (0,) * len(columns))
    if outer and outer[-1].strides[1] == 0:
        outer, row = outer[:-1], outer[-1]
    steps = -(-a_shape[-1] // step)
    column_stride, k_stride, block_stride = _weight_strides(layout, stored, block, step, steps)
    return Contraction(
        outer=outer,
        row=row,
        reduction=(LoopDim(steps, (step, k_stride)),),
        columns=points.shape[-1],
        columns_padded=not layout.is_permutation,
        block_stride=block_stride,
        a=match.lhs.index,
        b=match.rhs.index,
        anchor=match.op.output,
        points=points,
        vector_steps=(*(lanes * cast(int, leaf[-1]) for leaf in leaves), lanes),
        slabs=slabs,
        column_stride=column_stride,
    )


def _weight_strides(
    layout: Layout, stored: Sequence[int], block: int, step: int, steps: int
) -> tuple[int, int, int]:
    """Return the elements of B to the next column, step of the reduction and column block."""
    if layout.is_row_major:
        return 1, stored[-2], block
    if layout.is_permutation:
        column_stride, k_stride = stored[-2:]
        return column_stride, k_stride, block * column_stride
    return 1, block * step, block * step * steps


def takes_strides(group: FusedOp, choice: LayoutChoice) -> bool:
    """Whether results lie alike, and elements along the innermost stored dims are neighbours."""
    values = (*group.inputs, *group.outputs)
    layouts = (*choice.operands, *choice.results)
    return results_alike(choice) and all(
        layout.strides is None
        or layout.strides[-1] == 1
        or layout.storage_shape(shape_of(value))[-1] == 1
        for value, layout in zip(values, layouts, strict=True)
    )


def _repeated(shape: Sequence[Extent], strides: Sequence[Extent]) -> tuple[Extent, ...]:
    """Return the strides, with 0 for the dims that are repeated."""
    return tuple(0 if e == 1 else s for e, s in zip(shape, strides, strict=False))
