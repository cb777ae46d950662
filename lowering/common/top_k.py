"""`braid.top_k` by repeated selection: k passes over the elements, without memory of its own.

Elements of at most 32 bits are compared as one integer each, value first, then index, so that a
pass is a maximum, which upstream computes in vectors; others by value and index.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, cast

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, TensorType, i64
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.dtypes import i1, is_float
from braid.dialects.braid.sorting import TopKOp
from braid.lowering.common.element_types import signless_tensor
from braid.lowering.common.linalg_builders import empty
from braid.lowering.common.ranks import LARGEST, SMALLEST, can_rank, index_of, rank_of
from braid.lowering.common.scalar_casts import constant, widen
from braid.lowering.common.scalar_ops import emit_operation
from braid.lowering.common.tensor_loops import delinearized, element, for_loop, with_element

Ranked: TypeAlias = tuple[SSAValue, SSAValue]
"""An element as stored and its index along the dim, as i64; the index is -1 for none."""


class _Order:
    """Which of two elements comes first: by value, then by index. NaN is above every number."""

    def __init__(self, builder: Builder, element_type: Attribute, largest: bool) -> None:
        self._builder = builder
        self._type = element_type
        self._greater = "gt" if largest else "lt"
        self._nan_first = largest

    def is_before(self, a: Ranked, b: Ranked) -> SSAValue:
        """Whether `a` comes before `b`, as i1."""
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
    """What the op selects from: a row-major tensor, with its type in braid."""

    op: TopKOp
    tensor: SSAValue
    type: AnyTensor

    @property
    def dim(self) -> int:
        """The dim along which elements are compared."""
        return self.op.dim.value.data

    @property
    def extent(self) -> int:
        """How many elements are compared."""
        return self.type.get_shape()[self.dim]

    @property
    def element_type(self) -> Attribute:
        """The type of an element in braid."""
        return self.type.element_type

    def at(self, point: Sequence[SSAValue], index: SSAValue) -> list[SSAValue]:
        """The indices of an element, by a point of the other dims."""
        return [*point[: self.dim], index, *point[self.dim :]]


def top_k(
    builder: Builder, op: TopKOp, operand: SSAValue, operand_type: AnyTensor
) -> Sequence[SSAValue]:
    """Values and indices of the first k elements of a row-major tensor, `operand_type` in braid."""
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
    """The k largest ranks at a point of the other dims, each the largest below the one before."""
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
    """The first k elements at a point of the other dims, each the first after the one before."""
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
    """The first element after `last` in the order."""

    def step(b: Builder, index: SSAValue, best: Sequence[SSAValue]) -> Sequence[SSAValue]:
        order = _Order(b, source.element_type, bool(source.op.largest.value.data))
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
    """`condition`, or true where `index` is that of no element."""
    is_nothing = builder.insert(arith.CmpiOp(index, constant(builder, 0, i64), "slt")).result
    return builder.insert(arith.OrIOp(is_nothing, condition)).result
