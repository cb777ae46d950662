"""A tile of a group: the box of every value that one box of the group's result needs.

Derived backward from the result, op by op, as halide's bounds inference does (Ragan-Kelley et
al., PLDI 2013).
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.structure.operation_counts import MATRIX_OPS, flops
from braid.dialects.braid.base import TensorOp, element_type_of, shape_of
from braid.dialects.braid.boxes import (
    Box,
    count,
    hull,
    is_contiguous,
    shared_dims,
    sizes,
    whole,
    within,
)
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import bytes_of, dense_is_splat
from braid.dialects.braid.movement import ReshapeOp
from braid.dialects.braid.tiling import Tile

_VECTOR_COST = 4
"""The cost of a scalar operation outside of products, in operations of products: it waits for the
first cache.

On Zen 3, weights of 577 keys that are computed for each half of 192 columns of values take 1.13 of
the time of their parts, for each fourth of 256 1.39; of 1,024 keys for each fourth of 192 1.46.
"""

Input = tuple[SSAValue, Box]
"""A part of a value from outside of the group."""


@dataclass(frozen=True)
class GroupTile:
    """One tile: boxes of the members' results, the members' tiles, and the values from outside.

    Members whose results are not needed are absent. A value from outside that is read at different
    boxes is several inputs. `constants` inside of the group are inputs too, unless they are splat.
    """

    result: SSAValue
    boxes: Mapping[SSAValue, Box]
    ops: Mapping[TensorOp, Tile]
    inputs: tuple[Input, ...]

    @property
    def key(self) -> Hashable:
        """Equal for tiles that the same code computes, given where the inputs and results lie."""
        extents = tuple(sizes(box) for box in self.boxes.values())
        ops = tuple(tile.key for tile in self.ops.values())
        offsets = tuple(
            within(box, self.boxes[operand])
            for op, tile in self.ops.items()
            for operand, box in zip(op.operands, tile.operands, strict=True)
            if box is not None and operand in self.boxes
        )
        inputs = tuple((id(value), sizes(box)) for value, box in self.inputs)
        return (extents, ops, offsets, inputs)

    @property
    def starts(self) -> tuple[int, ...]:
        """Return the starts of all inputs, dim by dim, and then those of the result."""
        boxes = [*(box for _, box in self.inputs), self.boxes[self.result]]
        return tuple(start for box in boxes for start, _ in box)


def is_splat(value: SSAValue) -> bool:
    """Return whether a value is a splat, of which every part is the same."""
    return isinstance(value.owner, ConstantOp) and dense_is_splat(value.owner.value)


def group_tile(members: Sequence[Operation], result: SSAValue, box: Box) -> GroupTile | None:
    """Return the tile of the ops `members`, in order, that computes the elements `box` of `result`.

    None where a member cannot be cut as its users need it.
    """
    inside = {op.results[0] for op in members if len(op.results) == 1}
    boxes: dict[SSAValue, Box] = {result: box}
    ops: dict[TensorOp, Tile] = {}
    inputs: dict[Input, None] = {}
    for op in reversed(members):
        if not isinstance(op, TensorOp) or len(op.results) != 1 or isinstance(op, ConstantOp):
            return None
        if op.results[0] not in boxes:
            continue
        tile = op.tile(boxes[op.results[0]])
        if tile is None:
            return None
        ops[op] = tile
        for operand, needed in zip(op.operands, tile.operands, strict=True):
            if needed is None:
                continue
            if operand in inside:
                known = boxes.get(operand)
                boxes[operand] = needed if known is None else hull(known, needed)
            elif not is_splat(operand):
                inputs[operand, needed] = None
    in_order = {op: ops[op] for op in members if isinstance(op, TensorOp) and op in ops}
    return GroupTile(result, boxes, in_order, tuple(reversed(inputs)))


def tiled_shape(members: Sequence[Operation], result: SSAValue) -> tuple[int, ...]:
    """Return the shape of `result` in whose dims tiles are counted.

    A dim that a reshape in the group merged from several counts as those dims: a part of a row of
    an image is a box of the image, even if later ops merge its dims.
    """
    factors: dict[int, list[int]] = {}
    for op in members:
        if isinstance(op, ReshapeOp):
            source, target = shape_of(op.input), shape_of(op.output)
            for many, one in shared_dims(source, target):
                split = [source[dim] for dim in many if source[dim] != 1]
                if len(one) == 1 and len(split) > 1:
                    factors[target[one[0]]] = split
    return tuple(n for extent in shape_of(result) for n in factors.get(extent, [extent]))


def scratch_bytes(tile: GroupTile) -> int:
    """Return the bytes of the values inside the tile that are live at once, at the worst moment.

    Parts of inputs that are not contiguous count as well, since they are copied. A result that
    overwrites its operand counts twice, so that a kernel needs less.
    """
    order = list(tile.ops)
    last = {_viewed(o): index for index, op in enumerate(order) for o in op.operands}
    live: dict[SSAValue, int] = {}
    worst = 0
    for index, op in enumerate(order):
        result = op.results[0]
        if result is not tile.result and not is_view(op):
            live[result] = box_bytes(result, tile.boxes[result])
            worst = max(worst, sum(live.values()))
        live = {value: size for value, size in live.items() if last.get(value, -1) > index}
    copied = (v for v in tile.inputs if not is_contiguous(v[1], shape_of(v[0])))
    return worst + sum(box_bytes(value, box) for value, box in copied)


def _viewed(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, Operation) and is_view(value.owner):
        value = value.owner.operands[0]
    return value


def box_bytes(value: SSAValue, box: Box) -> int:
    """Return the bytes of a part of a value."""
    return count(box) * bytes_of(element_type_of(value))


def work(op: TensorOp, box: Box) -> int:
    """Return the scalar operations, up to a factor of the op, in a part of its result."""
    structure = getattr(op, "structure", None)
    if structure is None:
        return count(box)
    stages = structure().stages
    reduced = math.prod(stages[-1].extents[len(box) :]) if len(stages) == 1 else len(stages)
    return count(box) * max(1, reduced)


def recomputation(members: Sequence[Operation], tile: GroupTile, tiles: float) -> float:
    """Return the time of `tiles` such tiles over that of computing all members once."""
    once = sum(
        _cost(op, whole(shape_of(op.results[0])))
        for op in members
        if isinstance(op, TensorOp) and not is_view(op)
    )
    each = sum(_cost(op, tile.boxes[op.results[0]]) for op in tile.ops if not is_view(op))
    return each * tiles / max(1, once)


def _cost(op: TensorOp, box: Box) -> float:
    """Return the cost of computing a part of the result, in operations of products."""
    if isinstance(op, MATRIX_OPS):
        return 2 * work(op, box)
    computed = _VECTOR_COST * flops(op) * count(box) / max(1, math.prod(shape_of(op.results[0])))
    return max(2 * count(box), computed)
