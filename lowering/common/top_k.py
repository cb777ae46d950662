"""`braid.top_k` by repeated selection: k passes over the elements, without memory of its own.

A rank is an i64 that is larger the earlier an element comes: its value, then its index reversed.
Elements of at most 32 bits are packed with their index into one integer, the value in the high
bits, so that a pass is a maximum, which upstream vectorizes. Other elements are compared by value
and index.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, cast

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, TensorType, f32, i32, i64
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.dtypes import bytes_of, i1, is_float, is_unsigned
from braid.dialects.braid.sorting import TopKOp
from braid.lowering.common.element_types import constant, signless_tensor, widen
from braid.lowering.common.linalg_builders import empty
from braid.lowering.common.scalar_ops import emit_operation
from braid.lowering.common.tensor_loops import delinearized, element, for_loop, with_element

SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1
"""Ranks below and above all ranks: no index is reversed to all zeros or all ones."""

_INDEX_BITS = 32
_LAST_INDEX = (1 << _INDEX_BITS) - 2


def can_rank(element_type: Attribute, extent: int) -> bool:
    """Return whether elements of this type and their indices below `extent` fit a rank."""
    bits = 8 * bytes_of(element_type)
    return bits <= _INDEX_BITS - is_unsigned(element_type) and 0 <= extent <= _LAST_INDEX


def rank_of(
    builder: Builder,
    value: SSAValue,
    element_type: Attribute,
    index: SSAValue,
    *,
    ascending: bool,
) -> SSAValue:
    """Return the rank of `value`, stored as `element_type`, at `index`."""
    if is_float(element_type):
        key = _integer_in_order(builder, widen(builder, value))
    else:
        extend = arith.ExtUIOp if is_unsigned(element_type) else arith.ExtSIOp
        key = builder.insert(extend(value, i64)).result
    if ascending:
        key = builder.insert(arith.XOrIOp(key, constant(builder, -1, i64))).result
    high = builder.insert(arith.ShLIOp(key, constant(builder, _INDEX_BITS, i64))).result
    number = builder.insert(arith.IndexCastOp(index, i64)).result
    return builder.insert(arith.OrIOp(high, _reversed(builder, number))).result


def index_of(builder: Builder, rank: SSAValue) -> SSAValue:
    """Return the index in a rank, as i64."""
    mask = constant(builder, (1 << _INDEX_BITS) - 1, i64)
    return _reversed(builder, builder.insert(arith.AndIOp(rank, mask)).result)


def _reversed(builder: Builder, index: SSAValue) -> SSAValue:
    last = constant(builder, _LAST_INDEX, i64)
    return builder.insert(arith.SubiOp(last, index)).result


def _integer_in_order(builder: Builder, value: SSAValue) -> SSAValue:
    """Return an i64 for an f32: of the same order, one for both zeros, the largest for every NaN.

    Floats order like their bits as integers, except that below zero the bits are in reverse.
    """
    positive = builder.insert(arith.AddfOp(value, constant(builder, 0.0, f32))).result
    bits = builder.insert(arith.BitcastOp(positive, i32)).result
    sign = builder.insert(arith.ShRSIOp(bits, constant(builder, 31, i32))).result
    largest = constant(builder, (1 << 31) - 1, i32)
    flip = builder.insert(arith.AndIOp(sign, largest)).result
    ordered = builder.insert(arith.XOrIOp(bits, flip)).result
    is_nan = builder.insert(arith.CmpfOp(value, value, "uno")).result
    key = builder.insert(arith.SelectOp(is_nan, largest, ordered)).result
    return builder.insert(arith.ExtSIOp(key, i64)).result


Ranked: TypeAlias = tuple[SSAValue, SSAValue]
"""An element as stored and its index along the dim, as i64; the index is -1 for none."""


class Order:
    """An order of elements, by value and then by index; NaN is above every number."""

    def __init__(self, builder: Builder, element_type: Attribute, largest: bool) -> None:
        self._builder = builder
        self._type = element_type
        self._greater = "gt" if largest else "lt"
        self._nan_first = largest

    def is_before(self, a: Ranked, b: Ranked) -> SSAValue:
        """Return whether `a` comes before `b`, as i1."""
        x, y = widen(self._builder, a[0]), widen(self._builder, b[0])
        greater = self._op(self._greater, [x, y], self._type)
        equal = self._op("eq", [x, y], self._type)
        if is_float(self._type):
            x_nan, y_nan = (self._op("isnan", [v], self._type) for v in (x, y))
            first, second = (x_nan, y_nan) if self._nan_first else (y_nan, x_nan)
            alone = self._op("and", [first, self._op("not", [second], i1)], i1)
            greater = self._op("or", [greater, alone], i1)
            equal = self._op("or", [equal, self._op("and", [x_nan, y_nan], i1)], i1)
        lower = self._op("lt", [a[1], b[1]], i64)
        return self._op("or", [greater, self._op("and", [equal, lower], i1)], i1)

    def _op(self, name: str, values: Sequence[SSAValue], element_type: Attribute) -> SSAValue:
        return emit_operation(self._builder, name, values, element_type)


@dataclass(frozen=True)
class _Source:
    """The tensor that the op selects from, row-major, with its type in braid."""

    op: TopKOp
    tensor: SSAValue
    type: AnyTensor

    @property
    def dim(self) -> int:
        """The dim along which elements are compared."""
        return self.op.dim.value.data

    @property
    def extent(self) -> int:
        """The number of elements that are compared."""
        return self.type.get_shape()[self.dim]

    @property
    def element_type(self) -> Attribute:
        """The type of an element in braid."""
        return self.type.element_type

    def at(self, point: Sequence[SSAValue], index: SSAValue) -> list[SSAValue]:
        """Return the indices of an element, by a point of the other dims."""
        return [*point[: self.dim], index, *point[self.dim :]]


def top_k(
    builder: Builder, op: TopKOp, operand: SSAValue, operand_type: AnyTensor
) -> Sequence[SSAValue]:
    """Return the values and indices of the first k elements of a row-major tensor, `operand_type`
    in braid.
    """
    source = _Source(op, operand, operand_type)
    dim, k = source.dim, op.k.value.data
    shape = operand_type.get_shape()
    outer = [extent for d, extent in enumerate(shape) if d != dim]
    selected = [*shape[:dim], k, *shape[dim + 1 :]]
    values_type = signless_tensor(TensorType(operand_type.element_type, selected))
    results = [empty(builder, values_type), empty(builder, TensorType(i64, selected))]
    if 0 in selected:
        return results
    select = _by_rank if can_rank(operand_type.element_type, shape[dim]) else _by_value

    def row(b: Builder, number: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return select(b, source, delinearized(b, number, outer), carried)

    return for_loop(builder, prod(outer), results, row)


def _by_rank(
    builder: Builder, source: _Source, point: Sequence[SSAValue], results: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """Return the k largest ranks at a point of the other dims, each the largest below the previous
    one.
    """
    ascending = not source.op.largest.value.data

    def select(b: Builder, number: SSAValue, state: Sequence[SSAValue]) -> Sequence[SSAValue]:
        values, indices, last = state
        none = constant(b, SMALLEST, i64)

        def step(b: Builder, index: SSAValue, best: Sequence[SSAValue]) -> Sequence[SSAValue]:
            value = element(b, source.tensor, source.at(point, index))
            rank = rank_of(b, value, source.element_type, index, ascending=ascending)
            is_left = b.insert(arith.CmpiOp(rank, last, "slt")).result
            rank = b.insert(arith.SelectOp(is_left, rank, none)).result
            return [b.insert(arith.MaxSIOp(best[0], rank)).result]

        (best,) = for_loop(b, source.extent, [none], step)
        index = index_of(b, best)
        place = b.insert(arith.IndexCastOp(index, IndexType())).result
        value = element(b, source.tensor, source.at(point, place))
        target = source.at(point, number)
        values = with_element(b, values, target, value)
        return [values, with_element(b, indices, target, index), best]

    largest = constant(builder, LARGEST, i64)
    return for_loop(builder, source.op.k.value.data, [*results, largest], select)[:2]


def _by_value(
    builder: Builder, source: _Source, point: Sequence[SSAValue], results: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """Return the first k elements at a point of the other dims, each the first after the previous
    one.
    """
    values_type = cast(AnyTensor, results[0].type)
    zero = constant(builder, 0, values_type.element_type)
    nothing = constant(builder, -1, i64)

    def select(b: Builder, rank: SSAValue, state: Sequence[SSAValue]) -> Sequence[SSAValue]:
        values, indices, *last = state
        best = _next(b, source, point, (last[0], last[1]), (zero, nothing))
        target = source.at(point, rank)
        values = with_element(b, values, target, best[0])
        return [values, with_element(b, indices, target, best[1]), *best]

    return for_loop(builder, source.op.k.value.data, [*results, zero, nothing], select)[:2]


def _next(
    builder: Builder, source: _Source, point: Sequence[SSAValue], last: Ranked, none: Ranked
) -> Sequence[SSAValue]:
    """Return the first element after `last` in the order."""

    def step(b: Builder, index: SSAValue, best: Sequence[SSAValue]) -> Sequence[SSAValue]:
        order = Order(b, source.element_type, bool(source.op.largest.value.data))
        value = element(b, source.tensor, source.at(point, index))
        candidate = (value, b.insert(arith.IndexCastOp(index, i64)).result)
        is_left = _or_is_nothing(b, last[1], order.is_before(last, candidate))
        is_better = _or_is_nothing(b, best[1], order.is_before(candidate, (best[0], best[1])))
        is_best = b.insert(arith.AndIOp(is_left, is_better)).result
        return [
            b.insert(arith.SelectOp(is_best, new, old)).result
            for new, old in zip(candidate, best, strict=True)
        ]

    return for_loop(builder, source.extent, none, step)


def _or_is_nothing(builder: Builder, index: SSAValue, condition: SSAValue) -> SSAValue:
    """Return `condition`, or true where `index` is that of no element."""
    is_nothing = builder.insert(arith.CmpiOp(index, constant(builder, 0, i64), "slt")).result
    return builder.insert(arith.OrIOp(is_nothing, condition)).result
