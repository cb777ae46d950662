"""Softmax and layer normalization along contiguous rows, each row by one grid iteration."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects import math as math_ops
from xdsl.dialects.builtin import Float32Type
from xdsl.dialects.vector import CombiningKindFlag
from xdsl.ir import BlockArgument, Operation

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.emit.buffer import Buffer
from braid.lowering.cpu.kernels.emit.compare import choose
from braid.lowering.cpu.kernels.emit.elementary_functions import Functions
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Index, Value
from braid.lowering.cpu.kernels.emit.kernel_function import grid_kernel
from braid.lowering.cpu.kernels.emit.rows import each, fold
from braid.lowering.cpu.kernels.groups.layout_choices import row_major_choice
from braid.lowering.cpu.kernels.groups.traffic import moving_seconds, stored_bytes
from braid.lowering.cpu.kernels.groups.vector_family import VectorCandidate, VectorFamily
from braid.targets.kernels.kernel_family import Kernel, Schedule

_FLOPS = {"braid.softmax": 16, "braid.layer_norm": 8}
"""Vector operations per element, to rank against other families."""


@dataclass(frozen=True)
class NormalizationFamily(VectorFamily):
    """`braid.softmax` along the last dim and `braid.layer_norm`, of f32, alone in their group.

    Layout: row-major.
    """

    name: str = "normalization"
    version: int = 1

    def match(self, group: FusedOp) -> "_Rows | None":
        """One op along contiguous rows."""
        op = _match(group)
        return None if op is None else _Rows(group, self.unit, op)


@dataclass(frozen=True, eq=False)
class _Rows(VectorCandidate):
    op: SoftmaxOp | LayerNormOp

    def choices(self) -> Sequence[LayoutChoice]:
        """The one choice."""
        return [row_major_choice(self.group)]

    def seconds(self, choice: LayoutChoice) -> float:
        """The larger of arithmetic and memory traffic; passes after the first hit the cache."""
        elements = math.prod(shape_of(self.op.results[0]))
        arithmetic = elements * _FLOPS[self.op.name] / (self.unit.flops / 2)
        return max(arithmetic, moving_seconds(stored_bytes(self.group, choice), self.unit))

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """One row per grid iteration."""
        op = self.op
        operands = [value.index for value in op.operands if isinstance(value, BlockArgument)]
        length = _row_length(op)

        def iteration(e: Emitter, buffers: Sequence[Buffer], row: Index) -> None:
            base = e.mul(row, length)
            inputs = [buffers[index] for index in operands]
            if isinstance(op, LayerNormOp):
                _layer_norm(e, inputs, buffers[-1], base, length, op.epsilon.value.data)
            else:
                _softmax(e, inputs[0], buffers[-1], base, length)

        rows = math.prod(shape_of(op.results[0])) // length
        # Every element of the row is read for the last time right before it is written.
        return grid_kernel(self.group, symbol, self.unit, rows, iteration, ((operands[0], 0),))


def _match(group: FusedOp) -> SoftmaxOp | LayerNormOp | None:
    """The only op of the group, if its rows are contiguous."""
    ops = [op for op in group.body.block.ops if op is not group.terminator]
    if len(ops) != 1 or tuple(group.terminator.arguments) != tuple(ops[0].results):
        return None
    op = ops[0]
    if not isinstance(op, SoftmaxOp | LayerNormOp) or element_type_of(op.input) != Float32Type():
        return None
    shape = shape_of(op.input)
    if min(shape) < 1 or not all(isinstance(value, BlockArgument) for value in op.operands):
        return None
    if isinstance(op, SoftmaxOp):
        return op if op.dim.value.data == len(shape) - 1 else None
    outer = len(shape) - len(op.dims)
    row = (1,) * outer + tuple(shape[outer:])
    return op if shape_of(op.scale) == shape_of(op.bias) == row else None


def _row_length(op: Operation) -> int:
    shape = shape_of(op.results[0])
    dims = op.dims if isinstance(op, LayerNormOp) else (len(shape) - 1,)
    return math.prod(shape[dim] for dim in dims)


def _softmax(e: Emitter, x: Buffer, y: Buffer, base: Index, length: int) -> None:
    """Maximum, then powers and their sum, then the quotients."""
    lowest = e.constant(-math.inf, e.vector_type(Float32Type()))
    functions = Functions(e)

    def largest(position: Index, mask: Value | None, found: Value) -> Value:
        value = x.load(e, e.add(base, position), mask)
        if mask is not None:
            value = choose(e, mask, value, lowest)
        return e.insert(arith.MaximumfOp(found, value))

    maximum = fold(e, length, -math.inf, largest, arith.MaximumfOp, CombiningKindFlag.MAXIMUMF)

    def power(position: Index, mask: Value | None, sum: Value) -> Value:
        offset = e.add(base, position)
        difference = e.insert(arith.SubfOp(x.load(e, offset, mask), maximum))
        value = functions.exp(difference)
        if mask is not None:
            value = choose(e, mask, value, e.constant(0.0, value.type))
        y.store(e, value, offset, mask)
        return e.insert(arith.AddfOp(sum, value))

    total = fold(e, length, 0.0, power, arith.AddfOp, CombiningKindFlag.ADD)
    factor = e.insert(arith.DivfOp(e.constant(1.0, total.type), total))

    def scale(position: Index, mask: Value | None) -> None:
        offset = e.add(base, position)
        y.store(e, e.insert(arith.MulfOp(y.load(e, offset, mask), factor)), offset, mask)

    each(e, length, scale)


def _layer_norm(
    e: Emitter, inputs: Sequence[Buffer], y: Buffer, base: Index, length: int, epsilon: float
) -> None:
    """Mean, then the mean square of the differences, then the result."""
    x, weight, bias = inputs
    count = e.constant(1.0 / length, e.vector_type(Float32Type()))

    def add(position: Index, mask: Value | None, sum: Value) -> Value:
        return e.insert(arith.AddfOp(sum, x.load(e, e.add(base, position), mask)))

    def average(total: Value) -> Value:
        return e.insert(arith.MulfOp(total, count))

    mean = average(fold(e, length, 0.0, add, arith.AddfOp, CombiningKindFlag.ADD))

    def add_square(position: Index, mask: Value | None, sum: Value) -> Value:
        value = x.load(e, e.add(base, position), mask)
        difference = e.insert(arith.SubfOp(value, mean))
        if mask is not None:
            difference = choose(e, mask, difference, e.constant(0.0, difference.type))
        return e.fma(difference, difference, sum)

    variance = average(fold(e, length, 0.0, add_square, arith.AddfOp, CombiningKindFlag.ADD))
    shifted = e.insert(arith.AddfOp(variance, e.constant(epsilon, variance.type)))
    root = e.insert(math_ops.SqrtOp(shifted))
    factor = e.insert(arith.DivfOp(e.constant(1.0, root.type), root))

    def normalize(position: Index, mask: Value | None) -> None:
        offset = e.add(base, position)
        difference = e.insert(arith.SubfOp(x.load(e, offset, mask), mean))
        scale = e.insert(arith.MulfOp(weight.load(e, position, mask), factor))
        y.store(e, e.fma(difference, scale, bias.load(e, position, mask)), offset, mask)

    each(e, length, normalize)
