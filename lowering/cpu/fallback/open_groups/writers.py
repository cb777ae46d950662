"""Ops that write their results in steps of their own: joins, scatters, scans and selections."""

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64

from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.dtypes import is_unsigned
from braid.dialects.braid.movement import ConcatOp
from braid.dialects.braid.reduction import neutral_of
from braid.dialects.braid.scan import ScanOp
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterOp
from braid.dialects.braid.sized_ops import SizedTopKOp
from braid.dialects.braid.sorting import TopKOp
from braid.lowering.common.element_types import compute_type, constant
from braid.lowering.common.scalar_ops import emit_operation
from braid.lowering.common.top_k import Order
from braid.lowering.cpu.fallback.open_groups.steps import Step, filling, loops
from braid.lowering.cpu.fallback.open_groups.tensors import (
    ComputedTensor,
    Point,
    StoredTensor,
    Tensor,
    number,
)
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.positions import position_of
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of

WRITING = (ConcatOp, ScatterOp, ScanOp, TopKOp, SizedTopKOp)
"""The ops of this file."""


def written_by(
    e: Emitter, op: TensorOp, operands: Sequence[Tensor], targets: Sequence[StoredTensor]
) -> list[Step]:
    """Return the steps that write the results of an op of `WRITING`."""
    match op:
        case ConcatOp():
            steps = [_joined(e, op.dim.value.data, operands, targets[0])]
        case ScatterOp():
            return [filling(e, targets[0], operands[0]), _scattered(e, op, operands, targets[0])]
        case ScanOp():
            steps = [_scanned(e, op, operands[0], targets[0])]
        case TopKOp() | SizedTopKOp():
            steps = [_selected(e, op, operands[0], targets)]
        case _:
            raise AssertionError(op.name)
    zeros = [_zeros(e, target) for target in targets if target.written != target.extents]
    return [*zeros, *steps]


def _zeros(e: Emitter, target: StoredTensor) -> Step:
    """Return the step that writes zeros everywhere."""
    type = target.element_type

    def zero(e: Emitter, point: Point) -> Value:
        return constant(e.builder, 0, compute_type(type))

    return filling(e, target, ComputedTensor(target.extents, type, zero))


def _joined(e: Emitter, dim: int, operands: Sequence[Tensor], target: StoredTensor) -> Step:
    """Write the operands in turn, for each index of the dims outside of `dim` in memory."""
    order = target.order
    outside, inside = order[: order.index(dim)], order[order.index(dim) :]
    outer = [target.extents[each] for each in outside]

    def run(iteration: Index) -> None:
        before = e.coordinates(iteration, outer)
        first: Index = 0
        for operand in operands:
            start = first

            def copy(inner: Point, operand: Tensor = operand, start: Index = start) -> None:
                at = dict(zip(order, [*before, *inner], strict=True))
                point = [at[each] for each in range(len(order))]
                value = operand.at(e, point)
                point[dim] = e.add(start, point[dim])
                target.store(e, value, point)

            loops(e, [operand.extents[each] for each in inside], copy)
            first = e.add(first, operand.extents[dim])

    return Step(product_of(outer), run)


def _scattered(e: Emitter, op: ScatterOp, operands: Sequence[Tensor], target: StoredTensor) -> Step:
    """Apply the updates in order, since several may address one element."""
    _, indices, updates = operands
    type, reduction = target.element_type, op.reduction.data

    def place(index: Point, extent: Extent) -> Index:
        value = indices.at(e, index)
        return position_of(e, value, extent, is_unsigned(indices.element_type))

    def update(point: Point) -> None:
        if isinstance(op, ScatterElementsOp):
            dim = op.dim.value.data
            at = list(point)
            at[dim] = place(point, target.extents[dim])
        else:
            *batch, length = indices.extents
            assert isinstance(length, int), "the verifier wants a known length of tuples"
            outer = point[: len(batch)]
            at = [place([*outer, entry], target.extents[entry]) for entry in range(length)]
            at += point[len(batch) :]
        value = updates.at(e, point)
        if reduction != "none":
            value = emit_operation(e.builder, reduction, [target.at(e, at), value], type)
        target.store(e, value, at)

    return Step(1, lambda _: loops(e, updates.extents, update))


def _scanned(e: Emitter, op: ScanOp, source: Tensor, target: StoredTensor) -> Step:
    """Return a loop along the dim for each index of the others; it carries the combined values."""
    dim, kind, type = op.dim.value.data, op.kind.data, source.element_type
    extent, exclusive = source.extents[dim], bool(op.exclusive.value.data)
    others = (*source.extents[:dim], *source.extents[dim + 1 :])

    def run(iteration: Index) -> None:
        before = e.coordinates(iteration, others)
        first = constant(e.builder, neutral_of(kind, type), compute_type(type))

        def step(index: Index, carried: Sequence[Value]) -> Sequence[Value]:
            if op.reverse.value.data:
                index = e.sub(e.sub(extent, 1), index)
            point = [*before[:dim], index, *before[dim:]]
            # Read first: the result may lie where the operand does.
            element = source.at(e, point)
            total = emit_operation(e.builder, kind, [carried[0], element], type)
            target.store(e, carried[0] if exclusive else total, point)
            return [total]

        e.carry(0, extent, 1, [first], step)

    return Step(product_of(others), run)


def _selected(
    e: Emitter, op: TopKOp | SizedTopKOp, source: Tensor, targets: Sequence[StoredTensor]
) -> Step:
    """Select k elements for each index of the other dims, each the first after the previous one."""
    dim, k, type = op.dim.value.data, op.count, source.element_type
    others = (*source.extents[:dim], *source.extents[dim + 1 :])
    largest = bool(op.largest.value.data)

    def run(iteration: Index) -> None:
        before = e.coordinates(iteration, others)

        def at(index: Index) -> Point:
            return [*before[:dim], index, *before[dim:]]

        nothing = [constant(e.builder, 0, compute_type(type)), constant(e.builder, -1, i64)]

        def select(place: Index, last: Sequence[Value]) -> Sequence[Value]:
            def compare(index: Index, best: Sequence[Value]) -> Sequence[Value]:
                element = [source.at(e, at(index)), number(e, index)]
                is_next = _or_none(e, last, _before(e, op, last, element, largest))
                is_better = _or_none(e, best, _before(e, op, element, best, largest))
                taken = e.insert(arith.AndIOp(is_next, is_better))
                return [
                    e.insert(arith.SelectOp(taken, new, old))
                    for new, old in zip(element, best, strict=True)
                ]

            found = e.carry(0, source.extents[dim], 1, nothing, compare)
            for target, value in zip(targets, found, strict=True):
                target.store(e, value, at(place))
            return found

        e.carry(0, k, 1, nothing, select)

    return Step(product_of(others), run)


def _before(
    e: Emitter,
    op: TopKOp | SizedTopKOp,
    a: Sequence[Value],
    b: Sequence[Value],
    largest: bool,
) -> Value:
    order = Order(e.builder, op.operand_type(0).element_type, largest)
    return order.is_before((a[0], a[1]), (b[0], b[1]))


def _or_none(e: Emitter, element: Sequence[Value], condition: Value) -> Value:
    """Return whether the condition holds, or there is no element: its index is -1."""
    none = e.insert(arith.CmpiOp(element[1], constant(e.builder, -1, i64), "eq"))
    return e.insert(arith.OrIOp(none, condition))
