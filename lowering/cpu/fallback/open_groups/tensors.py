"""Tensors with open dims: where their elements lie, or how one is computed."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType, i1, i8, i64
from xdsl.ir import Attribute
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from braid.dialects.braid.layout import Layout
from braid.lowering.common.element_types import convert, narrow, widen
from braid.lowering.common.emitted_dialects import memref
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of

Point = Sequence[Index]
"""A logical index of an element: one number for each dim."""


@dataclass(frozen=True, eq=False)
class Tensor(ABC):
    """A tensor that gives the element at an index, in the type that upstream computes in."""

    extents: tuple[Extent, ...]
    element_type: Attribute

    @abstractmethod
    def at(self, e: Emitter, point: Point) -> Value:
        """Append the code that reads or computes the element at `point`."""


@dataclass(frozen=True, eq=False)
class StoredTensor(Tensor):
    """A tensor in memory; `ref` is a row of elements, bools are bytes."""

    ref: Value
    layout: Layout

    def at(self, e: Emitter, point: Point) -> Value:
        """Read the element."""
        return self.read(e, self._offset(e, point))

    def read(self, e: Emitter, offset: Index) -> Value:
        """Read the element that lies there."""
        type = cast("MemRefType[Any]", self.ref.type).element_type
        value = e.make(memref.LoadOp, [self.ref, e.index(offset)], type)
        if self.element_type == i1:
            return convert(e.builder, value, i8, i1)
        return widen(e.builder, value)

    def store(self, e: Emitter, value: Value, point: Point) -> None:
        """Write the element."""
        self.write(e, value, self._offset(e, point))

    def write(self, e: Emitter, value: Value, offset: Index) -> None:
        """Write the element that lies there."""
        if self.element_type == i1:
            value = e.make(arith.ExtUIOp, [value], i8)
        else:
            value = narrow(e.builder, value, self.element_type)
        e.effect(memref.StoreOp.create(operands=[value, self.ref, e.index(offset)]))

    @property
    def is_plain(self) -> bool:
        """Return whether elements lie in row-major order, one after the other."""
        return self.layout.is_row_major and self.layout.strides is None

    @property
    def order(self) -> Sequence[int]:
        """Return the dims in their order in memory, the contiguous one last."""
        finest = {stored.dim: place for place, stored in enumerate(self.layout.dims)}
        return sorted(range(len(self.extents)), key=lambda dim: finest.get(dim, -1))

    @property
    def written(self) -> tuple[Extent, ...]:
        """Return the extents with the zeros that fill up blocks."""
        blocks = map(self.layout.block, range(len(self.extents)))
        return tuple(
            extent if block == 1 else -(-extent // block) * block
            for extent, block in zip(self.extents, blocks, strict=True)
        )

    def _offset(self, e: Emitter, point: Point) -> Index:
        strides = self.layout.storage_strides(self.extents)
        total: Index = 0
        for dim, stride in zip(self.layout.dims, strides, strict=True):
            index = point[dim.dim]
            if dim.step != 1:
                index, _ = e.divmod(index, dim.step)
            if dim.extent is not None:
                _, index = e.divmod(index, dim.extent)
            total = e.add(total, e.mul(index, stride))
        return total


@dataclass(frozen=True, eq=False)
class ComputedTensor(Tensor):
    """A tensor whose elements are computed where they are read."""

    compute: Callable[[Emitter, Point], Value] = field(repr=False)

    def at(self, e: Emitter, point: Point) -> Value:
        """Append the code that computes the element, once for an index in a block."""
        return e.once((self, *point), lambda: self.compute(e, point))


@dataclass(frozen=True, eq=False)
class ReshapedTensor(Tensor):
    """The elements of `source` in row-major order under another shape."""

    source: Tensor

    def at(self, e: Emitter, point: Point) -> Value:
        """Append the code that reads the element with the same number."""
        rank = len(self.extents)
        steps = [product_of(self.extents[dim + 1 :]) for dim in range(rank)]
        return self.source.at(e, e.coordinates(e.dot(point, steps), self.source.extents))


def bounded(
    e: Emitter,
    source: Tensor,
    point: Point,
    checked: Sequence[int],
    otherwise: Value,
) -> Value:
    """Return the element of `source` at `point`, or `otherwise` where it is outside.

    Only the dims `checked` are looked at. An index below 0 is outside.
    """
    inside = [below(e, point[dim], source.extents[dim]) for dim in checked]
    if not inside:
        return source.at(e, point)
    (value,) = e.replaced(all_of(e, inside), [otherwise], lambda: [source.at(e, point)])
    return value


def below(e: Emitter, index: Index, extent: Extent) -> Value:
    """Return whether an index is 0 or more, and less than an extent."""
    return e.insert(arith.CmpiOp(e.index(index), e.index(extent), "ult"))


def all_of(e: Emitter, conditions: Sequence[Value]) -> Value:
    """Return whether all of the conditions hold."""
    result = conditions[0]
    for condition in conditions[1:]:
        result = e.insert(arith.AndIOp(result, condition))
    return result


def number(e: Emitter, index: Index) -> Value:
    """Return an index as i64."""
    return e.make(arith.IndexCastOp, [e.index(index)], i64)


def index_at(e: Emitter, expr: AffineExpr, point: Point) -> Index:
    """Return the value of an affine expression; dividends are not negative."""
    match expr:
        case AffineDimExpr():
            return point[expr.position]
        case AffineConstantExpr():
            return expr.value
        case AffineBinaryOpExpr():
            a, b = index_at(e, expr.lhs, point), index_at(e, expr.rhs, point)
            match expr.kind:
                case AffineBinaryOpKind.Add:
                    return e.add(a, b)
                case AffineBinaryOpKind.Mul:
                    return e.mul(a, b)
                case AffineBinaryOpKind.FloorDiv:
                    return e.divmod(a, b)[0]
                case AffineBinaryOpKind.Mod:
                    return e.divmod(a, b)[1]
                case _:
                    pass
        case _:
            pass
    raise AssertionError(f"no op of the dialect reads at {expr}")
