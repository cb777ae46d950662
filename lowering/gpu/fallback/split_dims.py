"""Operands of a nest after some dims are split into an outer dim and an inner one of known
extent."""

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, StridedLayoutAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)
from xdsl.rewriter import InsertPoint, Rewriter

Access: TypeAlias = tuple[SSAValue, AffineMap]


def narrowed(nest: linalg.GenericOp, access: Access, extents: Sequence[int]) -> Access:
    """Return the operand, whose dims are as long as the dims of the nest that index them."""
    value, map = access
    type = cast(MemRefType[Any], value.type)
    shape = [
        extents[expr.position] if isinstance(expr, AffineDimExpr) else extent
        for expr, extent in zip(map.results, type.get_shape(), strict=True)
    ]
    strides, offset = type.get_strides(), type.get_offset()
    if shape == list(type.get_shape()) or strides is None or offset is None or None in strides:
        return access
    steps = [int(stride or 0) for stride in strides]
    layout = StridedLayoutAttr(steps, offset)
    view_type = MemRefType(type.element_type, shape, layout, type.memory_space)
    view = memref.ReinterpretCastOp(value, [], [], [], [offset], shape, steps, view_type)
    Rewriter.insert_op(view, InsertPoint.before(nest))
    return view.result, map


def split_access(
    nest: linalg.GenericOp,
    value: SSAValue,
    map: AffineMap,
    steps: dict[int, int],
    place: dict[int, int],
    rank: int,
) -> Access | None:
    """Return an operand over the new dims: a view of it, if one of the split dims indexes it
    directly.
    """
    type = cast(MemRefType[Any], value.type)
    strides, offset = type.get_strides(), type.get_offset()
    if strides is None or offset is None or None in strides:
        return None
    shape, steps_of_view, exprs = list[int](), list[int](), list[AffineExpr]()
    for expr, extent, stride in zip(map.results, type.get_shape(), strides, strict=True):
        if isinstance(expr, AffineDimExpr) and expr.position in steps:
            dim, size = expr.position, steps[expr.position]
            shape += [extent // size, size]
            steps_of_view += [int(stride or 0) * size, int(stride or 0)]
            exprs += [AffineExpr.dimension(place[dim]), AffineExpr.dimension(place[dim] + 1)]
            continue
        moved = _moved(expr, steps, place)
        if moved is None:
            return None
        shape.append(extent)
        steps_of_view.append(int(stride or 0))
        exprs.append(moved)
    own = AffineMap(rank, 0, tuple(exprs))
    if len(shape) == type.get_num_dims():
        return value, own
    layout = StridedLayoutAttr(steps_of_view, offset)
    view_type = MemRefType(type.element_type, shape, layout, type.memory_space)
    view = memref.ReinterpretCastOp(value, [], [], [], [offset], shape, steps_of_view, view_type)
    Rewriter.insert_op(view, InsertPoint.before(nest))
    return view.result, own


def _moved(expr: AffineExpr, steps: dict[int, int], place: dict[int, int]) -> AffineExpr | None:
    """Return an expression over the new dims; None if it contains a split dim directly."""
    match expr:
        case AffineDimExpr(dim):
            return None if dim in steps else AffineExpr.dimension(place[dim])
        case AffineBinaryOpExpr(
            AffineBinaryOpKind.FloorDiv, AffineDimExpr(dim), AffineConstantExpr(size)
        ) if steps.get(dim) == size:
            return AffineExpr.dimension(place[dim])
        case AffineBinaryOpExpr(kind, left, right):
            one, two = _moved(left, steps, place), _moved(right, steps, place)
            return None if one is None or two is None else AffineBinaryOpExpr(kind, one, two)
        case _:
            return expr
