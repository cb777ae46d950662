"""Along which dims each kind of op may be split, in order of preference, and into which tiles."""

from functools import partial
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from braid.analysis.storage.strided_storage import has_storage
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import AnyTensor, StructuredOp, TensorOp, integer, integers, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.indexing import GatherBase
from braid.dialects.braid.movement import TransposeOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.resize import ResizeOp
from braid.dialects.braid.scan import ScanOp
from braid.dialects.braid.scattering import ScatterOp
from braid.dialects.braid.sorting import TopKOp
from braid.dialects.braid.structure import IteratorKind
from braid.dialects.braid.transposed_convolution import ConvTransposeOp
from braid.passes.split.access_maps import operand_dims
from braid.passes.split.fused_rules import fused_tile
from braid.passes.split.indexing_rules import indexing_tile
from braid.passes.split.resize_rules import ResizedDim
from braid.passes.split.split_dim import SplitDim
from braid.passes.split.tile import Part, Tile


def split_dims(op: Operation, reductions: bool = False) -> list[SplitDim]:
    """The dims along which `op` may be split, the most preferred first; empty if it cannot be.

    Convolutions and pooling: batch, channels, then spatial dims with a halo. Transposes: first
    the dims that stay in place. Gathers: any, of the data or of the indices. Scatters: those
    along which nothing is moved. Scans and top-k: all but their own. Groups: those along which
    every member can be cut. Others: outermost in storage first. Reduced dims come last and
    only with `reductions`, since their parts must be accumulated. None where it is decided where
    tensors of `op` lie.
    """
    if has_storage(op):
        return []
    if isinstance(op, FusedOp):
        return _fused_dims(op)
    if not isinstance(op, TensorOp) or (len(op.results) != 1 and not isinstance(op, TopKOp)):
        return []
    dims = [
        found for dim in _preference(op) if (found := _result_dim(op, dim)) and found.extent > 1
    ]
    return [*dims, *_reduced_dims(op)] if reductions else dims


def _fused_dims(op: FusedOp) -> list[SplitDim]:
    if len(op.results) != 1:
        return []
    dims = [
        SplitDim(dim, extent, partial(fused_tile, op), has_halo=True)
        for dim, extent in enumerate(shape_of(op.results[0]))
        if extent > 1
    ]
    return [dim for dim in dims if dim.tile(Part(dim.dim, 0, 1)) is not None]


def _preference(op: TensorOp) -> list[int]:
    rank = len(shape_of(op.results[0]))
    if isinstance(op, ConvOp | ConvTransposeOp | PoolOp | ResizeOp):
        return list(range(rank))
    layout = layout_of(op.results[0].type)
    outermost = list(range(rank)) if layout.is_abstract else list(layout.permutation)
    if isinstance(op, TransposeOp):
        permutation = op.permutation.get_values()
        return sorted(outermost, key=lambda dim: permutation[dim] != dim)
    return outermost


def _result_dim(op: TensorOp, dim: int) -> SplitDim | None:
    extent = shape_of(op.results[0])[dim]
    if isinstance(op, ConvOp | PoolOp) and dim >= 2:
        return SplitDim(dim, extent, partial(_window_tile, op), has_halo=True)
    if isinstance(op, ConvOp) and dim == 1 and op.groups.value.data > 1:
        unit = extent // op.groups.value.data
        return SplitDim(dim, extent, partial(_group_tile, op), unit)
    if isinstance(op, ConvTransposeOp):
        return _transposed_dim(op, dim, extent)
    if isinstance(op, ResizeOp):
        return _resize_dim(op, dim, extent)
    if isinstance(op, ScanOp | TopKOp):
        return SplitDim(dim, extent, _same_dim) if dim != op.dim.value.data else None
    if isinstance(op, GatherBase | ScatterOp):
        split = SplitDim(dim, extent, partial(indexing_tile, op))
        return split if split.tile(Part(dim, 0, 1)) is not None else None
    if not isinstance(op, StructuredOp):
        return None
    cut = operand_dims(op, dim)
    return None if cut is None else SplitDim(dim, extent, partial(_cut_tile, cut))


def _transposed_dim(op: ConvTransposeOp, dim: int, extent: int) -> SplitDim | None:
    """Batch, output channels in whole groups, or spatial dims whose windows only touch."""
    groups = op.groups.value.data
    if dim == 0:
        return SplitDim(dim, extent, _same_dim)
    if dim == 1 and groups == 1:
        return SplitDim(dim, extent, partial(_cut_tile, {1: 1}))
    if dim == 1:
        return SplitDim(dim, extent, partial(_transposed_group_tile, op), extent // groups)
    stride = op.strides.get_values()[dim - 2]
    reach = op.dilations.get_values()[dim - 2] * (shape_of(op.weight)[dim] - 1) + 1
    touches = reach == stride and extent == stride * shape_of(op.input)[dim]
    return SplitDim(dim, extent, partial(_strided_tile, stride), stride) if touches else None


def _reduced_dims(op: TensorOp) -> list[SplitDim]:
    if not isinstance(op, StructuredOp) or len(op.structure().stages) != 1:
        return []
    stage = op.structure().stages[0]
    found: list[SplitDim] = []
    for dim, (kind, extent) in enumerate(zip(stage.kinds, stage.extents, strict=True)):
        cut = operand_dims(op, dim) if kind is IteratorKind.REDUCTION and extent > 1 else None
        if cut:
            found.append(SplitDim(dim, extent, partial(_cut_tile, cut), combine=stage.combine))
    return found


def _cut_tile(cut: dict[int, int], part: Part) -> Tile:
    return Tile({index: Part(dim, part.start, part.size) for index, dim in cut.items()})


def _same_dim(part: Part) -> Tile:
    return Tile({0: part})


def _resize_dim(op: ResizeOp, dim: int, extent: int) -> SplitDim | None:
    """A dim that stays, or one whose parts are smaller resizes."""
    if op.region.get_values():
        return None
    taps = op.taps().get(dim)
    if taps is None:
        return SplitDim(dim, extent, _same_dim)
    resized = SplitDim(dim, extent, ResizedDim(op, dim, taps), has_halo=True)
    return resized if extent > 1 and None not in map(resized.tile, resized.parts(2)) else None


def _group_tile(op: ConvOp, part: Part) -> Tile:
    """Whole groups: their input channels, their filters."""
    groups, weight = op.groups.value.data, shape_of(op.weight)
    per_group = weight[0] // groups
    first, count = part.start // per_group, part.size // per_group
    channels = Part(1, first * weight[1], count * weight[1])
    return Tile({0: channels, 1: Part(0, part.start, part.size)}, {"groups": integer(count)})


def _strided_tile(stride: int, part: Part) -> Tile:
    return Tile({0: Part(part.dim, part.start // stride, part.size // stride)})


def _transposed_group_tile(op: ConvTransposeOp, part: Part) -> Tile:
    """Whole groups: their input channels, which are the filters' first dim."""
    weight = shape_of(op.weight)
    inputs = weight[0] // op.groups.value.data
    first, count = part.start // weight[1], part.size // weight[1]
    start, size = first * inputs, count * inputs
    attributes = {"groups": integer(count)}
    return Tile({0: Part(1, start, size), 1: Part(0, start, size)}, attributes)


def _window_tile(op: ConvOp | PoolOp, part: Part) -> Tile | None:
    """The input under the windows of a part of a spatial dim: a halo, less what is padding.

    None where some window would lie in the padding alone.
    """
    win, spatial = op.windows, part.dim - 2
    stride, low = win.strides[spatial], win.pad_low[spatial]
    reach = win.dilations[spatial] * (win.size[spatial] - 1) + 1
    begin = part.start * stride - low
    end = begin + (part.size - 1) * stride + reach
    extent = shape_of(op.input)[part.dim]
    first, last = max(begin, 0), min(end, extent)
    if first >= last:
        return None
    pads = [list(win.pad_low), list(win.pad_high)]
    pads[0][spatial], pads[1][spatial] = first - begin, end - last
    attributes = {"pad_low": integers(pads[0]), "pad_high": integers(pads[1])}
    return Tile({0: Part(part.dim, first, last - first)}, attributes)


def part_types(op: Operation, part: Part) -> list[AnyTensor]:
    """The types of the results for a part of them; the whole for a part of a reduced dim."""
    types: list[AnyTensor] = []
    for result in op.results:
        whole = cast(AnyTensor, result.type)
        shape = list(whole.get_shape())
        if part.dim < len(shape):
            shape[part.dim] = part.size
        types.append(TensorType(whole.element_type, shape, whole.encoding))
    return types
