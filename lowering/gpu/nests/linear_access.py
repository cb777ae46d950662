"""Describe which element of a buffer a nest uses at a point, where that is a sum of strides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import MemRefType, NoneAttr, StridedLayoutAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineMap

from braid.lowering.common.tensor_loops import index_constant

_LINEAR = (AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul)


@dataclass(frozen=True)
class LinearAccess:
    """Element `offset` and `steps` times the indices of the dims, from where the memory begins."""

    steps: tuple[int, ...]
    offset: int

    @staticmethod
    def of(buffer: SSAValue, map: AffineMap) -> "LinearAccess | None":
        """Return the access; None where the map is not linear, or the strides or the offset are
        unknown.
        """
        type = cast(MemRefType[Any], buffer.type)
        strides, start = type.get_strides(), type.get_offset()
        if strides is None or start is None or any(stride is None for stride in strides):
            return None
        known = [int(stride or 0) for stride in strides]
        kinds = {
            inner.kind
            for expr in map.results
            for inner in expr.dfs()
            if isinstance(inner, AffineBinaryOpExpr)
        }
        if not kinds.issubset(_LINEAR):
            return None

        def place(dim: int | None) -> int:
            point = [int(own == dim) for own in range(map.num_dims)]
            return sum(i * s for i, s in zip(map.eval(point, []), known, strict=True))

        first = place(None)
        steps = tuple(place(dim) - first for dim in range(map.num_dims))
        return LinearAccess(steps, start + first)

    def merged(self, dims: Sequence[Sequence[int]]) -> "LinearAccess":
        """Return the access in a nest whose dims are these groups of dims, each group merged to
        one.
        """
        return LinearAccess(tuple(self.steps[own[-1]] for own in dims), self.offset)

    def whole(self, width: int, lane: int, extents: Sequence[int]) -> bool:
        """Return whether it is a multiple of `width` wherever the index of `lane` is."""
        others = [step for dim, step in enumerate(self.steps) if dim != lane and extents[dim] > 1]
        return all(number % width == 0 for number in (*others, self.offset))

    def width(self, most: int, lane: int, extents: Sequence[int]) -> int:
        """Return how many neighbours along `lane` are aligned together: a power of 2 up to
        `most`.
        """
        width = most if self.steps[lane] == 1 else 1
        while width > 1 and not self.whole(width, lane, extents):
            width //= 2
        return width

    def index(self, builder: Builder, point: Sequence[SSAValue]) -> SSAValue:
        """Return the place in `flat_view` of the buffer, from its beginning in memory on."""
        total: SSAValue | None = None
        for step, index in zip(self.steps, point, strict=True):
            if step == 0:
                continue
            term = index
            if step != 1:
                term = builder.insert(arith.MuliOp(index, index_constant(builder, step))).result
            total = term if total is None else builder.insert(arith.AddiOp(total, term)).result
        if total is None:
            return index_constant(builder, self.offset)
        if self.offset == 0:
            return total
        return builder.insert(arith.AddiOp(total, index_constant(builder, self.offset))).result


def flat_view(builder: Builder, buffer: SSAValue) -> SSAValue:
    """Return the memory that a buffer of known strides lies in, from its beginning on, with one
    dim.
    """
    type = cast(MemRefType[Any], buffer.type)
    extents = type.get_shape()
    if len(extents) == 1 and isinstance(type.layout, NoneAttr):
        return buffer
    strides = [int(stride or 0) for stride in type.get_strides() or ()]
    last = sum((extent - 1) * step for extent, step in zip(extents, strides, strict=True))
    span = (type.get_offset() or 0) + last + 1
    flat = MemRefType(type.element_type, [span], StridedLayoutAttr([1], 0))
    view = memref.ReinterpretCastOp(buffer, [], [], [], [0], [span], [1], flat)
    return builder.insert(view).result


def memory_size(buffer: SSAValue) -> int:
    """Return how many elements there surely are from the beginning of a buffer's memory on."""
    while isinstance(view := buffer.owner, memref.SubviewOp | memref.ReinterpretCastOp):
        buffer = view.source
    type = cast(MemRefType[Any], buffer.type)
    strides = [int(stride or 0) for stride in type.get_strides() or ()]
    parts = zip(type.get_shape(), strides, strict=True)
    return (type.get_offset() or 0) + 1 + sum((extent - 1) * step for extent, step in parts)


def merged_dims(
    extents: Sequence[int], accesses: Sequence[LinearAccess]
) -> tuple[tuple[int, ...], ...]:
    """Return groups of dims that act as one dim in all accesses; each continues the dim inside of
    it.

    Dims of extent 1 are left out, except for dim 0 if all of them are.
    """
    merged: list[list[int]] = []
    for dim, extent in enumerate(extents):
        if extent == 1:
            continue
        if merged and all(a.steps[merged[-1][-1]] == a.steps[dim] * extent for a in accesses):
            merged[-1].append(dim)
        else:
            merged.append([dim])
    return tuple(map(tuple, merged)) or ((0,),)
