"""What a tile (a box of an op's result) needs of the operands, and the op that computes it."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.builder import Builder
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from braid.analysis.tiles.access_boxes import read_boxes
from braid.analysis.tiles.boxes import Box, Range, reshaped, sizes, whole
from braid.dialects.braid.base import StructuredOp, TensorOp, element_type_of, integers, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import is_float
from braid.dialects.braid.indexing import GatherElementsOp, GatherNdOp, GatherOp
from braid.dialects.braid.movement import BroadcastOp, ConcatOp, PadOp, ReshapeOp, SliceOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.resampling import Taps
from braid.dialects.braid.resize import ResizeOp, resample


@dataclass(frozen=True)
class OpTile:
    """A part of an op: the box of each operand (None: not read), and what changes in the op.

    `attributes` replace those of the op; `taps` are those of a resize, counted from the box.
    """

    operands: tuple[Box | None, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    taps: Mapping[int, Taps] = field(default_factory=dict[int, Taps])

    @property
    def key(self) -> Hashable:
        """Equal for tiles that are computed by the same op, but for where they lie."""
        taps = [
            (dim, t.indices.tobytes(), t.weights.tobytes(), t.offset.tobytes())
            for dim, t in self.taps.items()
        ]
        extents = [None if box is None else sizes(box) for box in self.operands]
        return (tuple(extents), tuple(self.attributes.items()), tuple(taps))


def op_tile(op: Operation, box: Box) -> OpTile | None:
    """The tile of `op` whose result is the elements `box`; None where `op` cannot be cut so."""
    if not isinstance(op, TensorOp) or len(op.results) != 1:
        return None
    for kind, rule in _RULES.items():
        if isinstance(op, kind):
            return rule(op, box)
    return _structured(op, box) if isinstance(op, StructuredOp) else None


def emit_tile(
    builder: Builder, op: TensorOp, tile: OpTile, box: Box, operands: Sequence[SSAValue]
) -> SSAValue:
    """Inserts the op that computes a tile; `operands` are the boxes of those that are read."""
    element_type, shape = element_type_of(op.results[0]), sizes(box)
    if isinstance(op, ResizeOp):
        value = operands[0]
        for dim, taps in tile.taps.items():
            value = resample(builder, value, dim, taps)
        return value
    if _is_whole_operand(op, operands, shape):
        return operands[0]
    attributes = {**op.attributes, **tile.attributes}
    result = TensorType(element_type, shape)
    new = type(op).create(operands=operands, result_types=[result], attributes=attributes)
    new.location = op.location
    return builder.insert(new).results[0]


def _is_whole_operand(op: TensorOp, operands: Sequence[SSAValue], shape: Sequence[int]) -> bool:
    """Whether the tile is its operand as it is: a piece, a part that is read without gaps."""
    moves = isinstance(op, BroadcastOp | ConcatOp | PadOp) or (
        isinstance(op, SliceOp) and set(op.strides.get_values()) <= {1}
    )
    return moves and len(operands) == 1 and shape_of(operands[0]) == tuple(shape)


def _structured(op: StructuredOp, box: Box) -> OpTile | None:
    shapes = [shape_of(operand) for operand in op.operands]
    reads = read_boxes(op.structure(), shapes, box)
    if reads is None or len(reads.operands) != len(op.operands):
        return None
    attributes: dict[str, Attribute] = {}
    if reads.pads:
        attributes = _pad_attributes(op, reads.pads[0])
    tile = OpTile(tuple(reads.operands[index] for index in range(len(op.operands))), attributes)
    return tile if _makes(op, tile, box) else None


def _pad_attributes(op: StructuredOp, pads: Sequence[tuple[int, int]]) -> dict[str, Attribute]:
    low, high = integers([a for a, _ in pads]), integers([b for _, b in pads])
    if isinstance(op, PadOp):
        return {"low": low, "high": high}
    assert isinstance(op, ConvOp | PoolOp), "no other op has padding"
    spatial = pads[2:]
    return {
        "pad_low": integers([a for a, _ in spatial]),
        "pad_high": integers([b for _, b in spatial]),
    }


def _makes(op: StructuredOp, tile: OpTile, box: Box) -> bool:
    """Whether the op on the operands' boxes has just the box as its result.

    It has more where a dim cannot be cut: the row of a softmax, channels of a grouped convolution.
    """
    boxes = [b for b in tile.operands if b is not None]
    types = [
        TensorType(element_type_of(operand), sizes(part))
        for operand, part in zip(op.operands, boxes, strict=True)
    ]
    probe = type(op).create(
        operands=Block(arg_types=types).args,
        result_types=[TensorType(element_type_of(op.results[0]), sizes(box))],
        attributes={**op.attributes, **tile.attributes},
    )
    try:
        (inferred,) = probe.infer_result_types()
    except VerifyException:
        return False
    finally:
        probe.drop_all_references()
    return inferred.get_shape() == sizes(box)


def _slice(op: SliceOp, box: Box) -> OpTile:
    """From the first to the last element that is read; the slice begins at one of these."""
    needed: list[Range] = []
    offsets: list[int] = []
    lows, steps = op.offsets.get_values(), op.strides.get_values()
    for (start, size), low, step in zip(box, lows, steps, strict=True):
        first, last = low + start * step, low + (start + size - 1) * step
        begin = min(first, last)
        needed.append((begin, max(first, last) - begin + 1))
        offsets.append(first - begin)
    return OpTile((tuple(needed),), {"offsets": integers(offsets), "sizes": integers(sizes(box))})


def _reshape(op: ReshapeOp, box: Box) -> OpTile | None:
    needed = reshaped(box, shape_of(op.output), shape_of(op.input))
    return None if needed is None else OpTile((needed,))


def _concat(op: ConcatOp, box: Box) -> OpTile:
    """Of every operand the elements that are in the box."""
    dim, begin = op.dim.value.data, 0
    start, size = box[dim]
    needed: list[Box | None] = []
    for operand in op.inputs:
        end = begin + shape_of(operand)[dim]
        first, last = max(begin, start), min(end, start + size)
        part = (first - begin, last - first)
        needed.append((*box[:dim], part, *box[dim + 1 :]) if first < last else None)
        begin = end
    return OpTile(tuple(needed))


def _gather(op: GatherOp, box: Box) -> OpTile:
    """The dim that is gathered along is needed whole."""
    dim, rank = op.dim.value.data, len(shape_of(op.indices))
    data = (*box[:dim], (0, shape_of(op.data)[dim]), *box[dim + rank :])
    return OpTile((data, box[dim : dim + rank]))


def _gather_elements(op: GatherElementsOp, box: Box) -> OpTile:
    dim = op.dim.value.data
    return OpTile(((*box[:dim], (0, shape_of(op.data)[dim]), *box[dim + 1 :]), box))


def _gather_nd(op: GatherNdOp, box: Box) -> OpTile:
    """Tuples of indices are needed whole, and so are the dims that they address."""
    batch, shape = op.batch_dims.value.data, shape_of(op.indices)
    outer, length = len(shape) - 1, shape[-1]
    addressed = whole(shape_of(op.data))[batch : batch + length]
    return OpTile(((*box[:batch], *addressed, *box[outer:]), (*box[:outer], (0, length))))


def _resize(op: ResizeOp, box: Box) -> OpTile | None:
    """The elements under the taps."""
    if op.mode.data != "nearest" and not is_float(element_type_of(op.input)):
        return None
    needed, taps = list(box), dict[int, Taps]()
    for dim, every in op.taps().items():
        start, size = box[dim]
        indices = every.indices[:, start : start + size]
        first, last = int(indices.min()), int(indices.max())
        needed[dim] = (first, last - first + 1)
        taps[dim] = Taps(
            indices - first,
            every.weights[:, start : start + size],
            every.offset[start : start + size],
        )
    return OpTile((tuple(needed),), {}, taps)


_RULES: dict[type[TensorOp], Callable[..., OpTile | None]] = {
    SliceOp: _slice,
    ReshapeOp: _reshape,
    ConcatOp: _concat,
    GatherOp: _gather,
    GatherElementsOp: _gather_elements,
    GatherNdOp: _gather_nd,
    ResizeOp: _resize,
}
