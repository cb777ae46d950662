"""Ops without a structure whose results are computed element by element."""

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.base import TensorOp, extents_of, shape_of
from braid.dialects.braid.movement import ReshapeOp
from braid.dialects.braid.placement import CopyingOp
from braid.dialects.braid.resize import ResizeOp
from braid.dialects.braid.sized_ops import SizedPadOp, SizedSliceOp, SizeValuesOp
from braid.dialects.braid.transposed_convolution import ConvTransposeOp
from braid.lowering.common.element_types import compute_type, constant, narrow, widen
from braid.lowering.cpu.fallback.open_groups.resizing import resized
from braid.lowering.cpu.fallback.open_groups.tensors import (
    ComputedTensor,
    Point,
    ReshapedTensor,
    Tensor,
    all_of,
    below,
    bounded,
    number,
)
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.long_sums import carry_sums
from braid.support.errors import UnsupportedError


def computed(op: TensorOp, operands: Sequence[Tensor]) -> Tensor:
    """Return the result of an op. Raises UnsupportedError for an op without code."""
    match op:
        case CopyingOp():
            return operands[0]
        case ReshapeOp():
            return ReshapedTensor(extents_of(op.output), operands[0].element_type, operands[0])
        case SizeValuesOp():
            return _size_values(op)
        case SizedSliceOp():
            return _sliced(op, operands[0])
        case SizedPadOp():
            return _padded(op, operands[0])
        case ConvTransposeOp():
            return _spread(op, operands)
        case ResizeOp():
            return resized(op, operands[0])
        case _:
            raise UnsupportedError(
                f"no code for '{op.name}' with open dims",
                location=source_location(op),
                hint="give the shape",
            )


def _size_values(op: SizeValuesOp) -> Tensor:
    values, shape = op.values.get_values(), shape_of(op.output)
    type = op.result_type().element_type

    def element(e: Emitter, point: Point) -> Value:
        if not values:
            return constant(e.builder, 0, type)
        found = number(e, values[0])
        place = e.dot(point, _row_major_steps(shape))
        for index, value in enumerate(values[1:], 1):
            is_this = e.insert(arith.CmpiOp(e.index(place), e.index(index), "eq"))
            found = e.insert(arith.SelectOp(is_this, number(e, value), found))
        return found

    return ComputedTensor(shape, type, element)


def _row_major_steps(shape: Sequence[int]) -> list[int]:
    steps = [1]
    for extent in reversed(shape[1:]):
        steps.insert(0, steps[0] * extent)
    return steps if shape else []


def _sliced(op: SizedSliceOp, source: Tensor) -> Tensor:
    offsets, strides = op.offsets.get_values(), op.strides.get_values()

    def element(e: Emitter, point: Point) -> Value:
        steps = [e.mul(index, stride) for index, stride in zip(point, strides, strict=True)]
        return source.at(e, [e.add(a, b) for a, b in zip(offsets, steps, strict=True)])

    return ComputedTensor(extents_of(op.output), source.element_type, element)


def _padded(op: SizedPadOp, source: Tensor) -> Tensor:
    low, high, type = op.low.get_values(), op.high.get_values(), source.element_type
    checked = [dim for dim, pads in enumerate(zip(low, high, strict=True)) if pads != (0, 0)]

    def element(e: Emitter, point: Point) -> Value:
        place = [e.sub(index, before) for index, before in zip(point, low, strict=True)]
        value = constant(e.builder, op.value.value.data, compute_type(type))
        return bounded(e, source, place, checked, value)

    return ComputedTensor(extents_of(op.output), type, element)


def _spread(op: ConvTransposeOp, operands: Sequence[Tensor]) -> Tensor:
    """Return sums over the input channels of a group and the elements of the window."""
    source, weight = operands
    windows, groups = op.windows, op.groups.value.data
    channels, outputs = shape_of(op.weight)[0] // groups, shape_of(op.weight)[1]
    type = source.element_type

    def element(e: Emitter, point: Point) -> Value:
        batch, channel, *position = point
        group, output = e.divmod(channel, outputs)
        first = e.mul(group, channels)

        def product(chosen: Sequence[Index]) -> Value:
            input, window = e.add(first, chosen[0]), chosen[1:]
            places: list[Index] = []
            conditions: list[Value] = []
            for dim, (index, step) in enumerate(zip(position, window, strict=True)):
                reached = e.add(index, windows.cut_low[dim])
                reached = e.sub(reached, e.mul(step, windows.dilations[dim]))
                # Below 0 it is larger than any extent as an unsigned number, also divided.
                place, rest = e.divmod(reached, windows.strides[dim])
                conditions.append(below(e, place, source.extents[2 + dim]))
                if windows.strides[dim] > 1:
                    conditions.append(below(e, rest, 1))
                places.append(place)

            def multiplied() -> Sequence[Value]:
                a = source.at(e, [batch, input, *places])
                b = weight.at(e, [input, output, *window])
                kind = arith.MulfOp if is_float else arith.MuliOp
                return [e.apply(kind, a, b)]

            return e.replaced(all_of(e, conditions), [zero], multiplied)[0]

        def summed(extents: Sequence[int], chosen: Sequence[Index], total: Value) -> Value:
            if not extents:
                kind = arith.AddfOp if is_float else arith.AddiOp
                return e.apply(kind, total, product(chosen))

            def step(index: Index, carried: Sequence[Value]) -> Sequence[Value]:
                return [summed(extents[1:], [*chosen, index], carried[0])]

            return carry_sums(e, 0, extents[0], 1, [total], step)[0]

        zero = constant(e.builder, 0, compute_type(type))
        is_float = not isinstance(zero.type, IntegerType)
        total = summed([channels, *windows.size], [], zero)
        return widen(e.builder, narrow(e.builder, total, type))

    return ComputedTensor(extents_of(op.output), type, element)
