"""Kernels for `toy.rms_norm`: each row of contiguous f32 by one grid iteration."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects import math as math_ops
from xdsl.dialects.builtin import Float32Type
from xdsl.dialects.vector import CombiningKindFlag
from xdsl.ir import BlockArgument

from braid.extend import (
    Buffer,
    Emitter,
    FusedOp,
    Index,
    Kernel,
    KernelRequest,
    Layout,
    LayoutChoice,
    Schedule,
    Value,
    VectorUnit,
    each,
    element_type_of,
    fold,
    grid_kernel,
    host_vector_unit,
    shape_of,
    stored_bytes,
)
from braid_toy.dialect import RmsNormOp


@dataclass(frozen=True)
class RmsNormFamily:
    """`toy.rms_norm` of f32, alone in its group. Layout: row-major."""

    unit: VectorUnit = field(default_factory=host_vector_unit)
    name: str = "toy-rms-norm"

    def accepts(self, group: FusedOp) -> bool:
        """One op, on a block argument."""
        return _match(group) is not None

    def layouts(self, group: FusedOp) -> Sequence[LayoutChoice]:
        """The one choice."""
        op = _match(group)
        if op is None:
            return ()
        row_major = Layout.row_major(len(shape_of(op.input)))
        return [LayoutChoice((row_major,), (row_major,))]

    def schedules(self, group: FusedOp) -> Iterator[Schedule]:
        """Nothing to choose."""
        yield {}

    def default_schedule(self, group: FusedOp) -> Schedule:
        """Nothing to choose."""
        return {}

    def seconds(self, group: FusedOp, choice: LayoutChoice) -> float:
        """The larger of three operations an element and the memory traffic."""
        elements = math.prod(shape_of(group.outputs[0]))
        return max(
            3 * elements / self.unit.flops, stored_bytes(group, choice) / self.unit.memory_bytes
        )

    def emit(self, request: KernelRequest) -> Kernel:
        """One row per grid iteration."""
        op = _match(request.group)
        assert op is not None, "the family was asked for a group that it does not take"
        length, epsilon = shape_of(op.input)[-1], op.epsilon.value.data

        def iteration(e: Emitter, buffers: Sequence[Buffer], row: Index) -> None:
            x, y = buffers
            _normalize(e, x, y, e.mul(row, length), length, epsilon)

        # Operand 0 and result 0 may be one buffer: a row is read whole before it is written.
        return grid_kernel(request, self.unit, op.rows, iteration, in_place=((0, 0),))


def _match(group: FusedOp) -> RmsNormOp | None:
    """The only op of the group, if it is one for this family."""
    op = group.body.block.first_op
    if not isinstance(op, RmsNormOp) or op.next_op is not group.terminator:
        return None
    if tuple(group.terminator.arguments) != tuple(op.results):
        return None
    if min(shape_of(op.input)) < 1 or element_type_of(op.input) != Float32Type():
        return None
    return op if isinstance(op.input, BlockArgument) else None


def _normalize(e: Emitter, x: Buffer, y: Buffer, base: Index, length: int, epsilon: float) -> None:
    """Two passes over the row: the sum of squares, then the quotients."""

    def add_square(position: Index, mask: Value | None, sum: Value) -> Value:
        value = x.load(e, e.add(base, position), mask)  # Lanes beyond the row are 0.
        return e.fma(value, value, sum)

    total = fold(e, length, 0.0, add_square, arith.AddfOp, CombiningKindFlag.ADD)
    mean = e.insert(arith.MulfOp(total, e.constant(1.0 / length, total.type)))
    shifted = e.insert(arith.AddfOp(mean, e.constant(epsilon, total.type)))
    root = e.insert(math_ops.SqrtOp(shifted))
    factor = e.insert(arith.DivfOp(e.constant(1.0, root.type), root))

    def scale(position: Index, mask: Value | None) -> None:
        offset = e.add(base, position)
        y.store(e, e.insert(arith.MulfOp(x.load(e, offset, mask), factor)), offset, mask)

    each(e, length, scale)
