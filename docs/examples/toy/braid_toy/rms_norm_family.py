"""Kernels for `toy.rms_norm`: each row of contiguous f32 by one grid iteration."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects import math as math_ops
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import BlockArgument

from braid.extend import (
    Buffer,
    Emitter,
    FusedOp,
    Index,
    Kernel,
    Layout,
    LayoutChoice,
    Machine,
    Overlap,
    Schedule,
    Value,
    VectorUnit,
    each,
    element_type_of,
    fold,
    grid_kernel,
    shape_of,
    stored_bytes,
)
from braid_toy.dialect import RmsNormOp


@dataclass(frozen=True)
class RmsNormFamily:
    """`toy.rms_norm` of f32, alone in its group. Layout: row-major."""

    machine: Machine
    name: str = "toy-rms-norm"
    version: int = 1

    def match(self, group: FusedOp) -> "RmsNorm | None":
        """Return a match for a group of one op, on a block argument."""
        op = _only_op(group)
        return None if op is None else RmsNorm(group, op, VectorUnit.of(self.machine))


@dataclass(frozen=True)
class RmsNorm:
    """The kernel of a group of one `toy.rms_norm`."""

    group: FusedOp
    op: RmsNormOp
    unit: VectorUnit

    @property
    def layouts(self) -> Sequence[LayoutChoice]:
        """The one choice."""
        row_major = Layout.row_major(len(shape_of(self.op.input)))
        return [LayoutChoice((row_major,), (row_major,))]

    def supports_strides(self, choice: LayoutChoice) -> bool:
        """Return False: rows must lie one after the other."""
        return False

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the larger of the times for three operations an element and for memory traffic."""
        elements, moved = math.prod(shape_of(self.op.input)), stored_bytes(self.group, choice)
        return max(3 * elements / self.unit.flops, moved / self.unit.memory_bytes)

    def space(self, level: int) -> Iterator[Schedule]:
        """Yield the only schedule: there is nothing to choose."""
        if level == 0:
            yield Schedule()

    def overlap(self) -> Overlap | None:
        """Return None: the result is as large as the operand, whose memory it takes whole."""
        return None

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit one row per grid iteration."""
        length, epsilon = shape_of(self.op.input)[-1], self.op.epsilon.value.data

        def iteration(e: Emitter, buffers: Sequence[Buffer], row: Index) -> None:
            x, y = buffers
            _normalize(e, x, y, e.mul(row, length), length, epsilon)

        # Operand 0 and result 0 may be one buffer: a row is read whole before it is written.
        grid, in_place = self.op.rows, ((0, 0),)
        return grid_kernel(self.group, symbol, self.unit, grid, iteration, in_place)


def _only_op(group: FusedOp) -> RmsNormOp | None:
    """Return the only op of the group, if it is one for this family."""
    op = group.body.block.first_op
    if not isinstance(op, RmsNormOp) or op.next_op is not group.terminator:
        return None
    if tuple(group.terminator.arguments) != tuple(op.results):
        return None
    if min(shape_of(op.input)) < 1 or element_type_of(op.input) != Float32Type():
        return None
    return op if isinstance(op.input, BlockArgument) else None


def _normalize(e: Emitter, x: Buffer, y: Buffer, base: Index, length: int, epsilon: float) -> None:
    """Emit two passes over the row: the sum of squares, then the quotients."""

    def add_square(position: Index, mask: Value | None, sum: Value) -> Value:
        value = x.load(e, e.add(base, position), mask)  # Lanes beyond the row are 0.
        return e.fma(value, value, sum)

    def add(e: Emitter, a: Value, b: Value) -> Value:
        return e.insert(arith.AddfOp(a, b))

    total = fold(e, length, 0.0, add_square, add)
    mean = e.insert(arith.MulfOp(total, e.constant(1.0 / length, total.type)))
    shifted = e.insert(arith.AddfOp(mean, e.constant(epsilon, total.type)))
    root = e.insert(math_ops.SqrtOp(shifted))
    factor = e.insert(arith.DivfOp(e.constant(1.0, root.type), root))

    def scale(position: Index, mask: Value | None) -> None:
        offset = e.add(base, position)
        y.store(e, e.insert(arith.MulfOp(x.load(e, offset, mask), factor)), offset, mask)

    each(e, length, scale)
