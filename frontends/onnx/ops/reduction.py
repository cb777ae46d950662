"""Reductions, searches for extremes, cumulative sums."""

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import f32, is_float
from braid.dialects.braid.scan import ScanOp
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    cast,
    drop_dims,
    mean,
    normalized,
    reduce,
    scalar,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer

_Reduction = Callable[[Builder, SSAValue, Sequence[int]], SSAValue]


def _log_sum(b: Builder, x: SSAValue, dims: Sequence[int]) -> SSAValue:
    return apply(b, "log", reduce(b, "add", x, dims))


def _log_sum_exp(b: Builder, x: SSAValue, dims: Sequence[int]) -> SSAValue:
    """Return the logarithm of the sum of powers.

    The maximum is taken out first; it counts as 0 where it is not finite.
    """
    peak = reduce(b, "maximum", x, dims)
    finite = apply(b, "lt", apply(b, "abs", peak), scalar(b, np.inf, peak))
    peak = apply(b, "select", finite, peak, scalar(b, 0, peak))
    powers = apply(b, "exp", apply(b, "sub", x, peak))
    return apply(b, "add", _log_sum(b, powers, dims), peak)


def _sum_square(b: Builder, x: SSAValue, dims: Sequence[int]) -> SSAValue:
    return reduce(b, "add", apply(b, "mul", x, x), dims)


def _in_floats(reduce_floats: _Reduction) -> _Reduction:
    """Return a reduction that computes integers in f64 and truncates the results."""

    def of_any(b: Builder, x: SSAValue, dims: Sequence[int]) -> SSAValue:
        if is_float(element_type_of(x)):
            return reduce_floats(b, x, dims)
        return cast(b, reduce_floats(b, cast(b, x, f64), dims), element_type_of(x))

    return of_any


def _combine(kind: str) -> _Reduction:
    return lambda b, x, dims: reduce(b, kind, x, dims)


def _norm(p: int) -> _Reduction:
    return lambda b, x, dims: p_norm(b, x, p, dims)


_REDUCTIONS: dict[str, _Reduction] = {
    "ReduceL1": _norm(1),
    "ReduceL2": _norm(2),
    "ReduceLogSum": _in_floats(_log_sum),
    "ReduceLogSumExp": _in_floats(_log_sum_exp),
    "ReduceMax": _combine("maximum"),
    "ReduceMean": mean,
    "ReduceMin": _combine("minimum"),
    "ReduceProd": _combine("mul"),
    "ReduceSum": _combine("add"),
    "ReduceSumSquare": _sum_square,
}


@importer(*_REDUCTIONS)
def reduction(b: Builder, node: Node) -> SSAValue:
    """Import a reduction; `axes` are an attribute before opset 18 (13 for ReduceSum).

    A tensor without dims may be reduced along its first or last, as PyTorch exports it.
    """
    x = node.input(0)
    rank = len(extents_of(x))
    # Both attributes are read whatever the axes are, since one without effect is valid.
    keeps_all, keeps_dims = node.integer("noop_with_empty_axes", 0), node.integer("keepdims", 1)
    axes = node.integers_of("axes", 1) or (() if keeps_all else range(rank))
    if not rank and set(axes) <= {0, -1}:
        axes = ()
    dims = sorted(normalized(axis, rank) for axis in axes)
    y = _REDUCTIONS[node.op_type](b, x, dims)
    return y if keeps_dims else drop_dims(b, y, dims)


def p_power(b: Builder, x: SSAValue, p: int) -> SSAValue:
    """Return |x| to the power p."""
    if p == 2:
        return apply(b, "mul", x, x)
    magnitude = apply(b, "abs", x)
    return magnitude if p == 1 else apply(b, "pow", magnitude, scalar(b, p, x))


def p_root(b: Builder, x: SSAValue, p: int) -> SSAValue:
    """Return the p-th root of x, which is not negative; computed in float."""
    if p == 1:
        return x
    element_type = element_type_of(x)
    wide = x if is_float(element_type) else cast(b, x, f32)
    root = apply(b, "sqrt", wide) if p == 2 else apply(b, "pow", wide, scalar(b, 1 / p, wide))
    return cast(b, root, element_type)


def p_norm(b: Builder, x: SSAValue, p: int, dims: Sequence[int]) -> SSAValue:
    """Return the p-norm over `dims`, which stay with size 1."""
    return p_root(b, reduce(b, "add", p_power(b, x, p), dims), p)


@importer("ArgMax", "ArgMin")
def arg_extreme(b: Builder, node: Node) -> SSAValue:
    """Import the index of the extreme element along a dim."""
    x = node.input(0)
    dim = normalized(node.integer("axis", 0), len(extents_of(x)))
    kind = "max" if node.op_type == "ArgMax" else "min"
    last = bool(node.integer("select_last_index", 0))
    index = b.emit(ArgReduceOp.get(x, kind, dim, select_last=last))
    return index if node.integer("keepdims", 1) else drop_dims(b, index, [dim])


@importer("CumSum", "CumProd")
def cumulative(b: Builder, node: Node) -> SSAValue:
    """Import a cumulative sum or product along a dim."""
    x, axis = node.input(0), node.known(1)
    dim = normalized(0 if axis is None else int(axis.item()), len(extents_of(x)))
    kind = "add" if node.op_type == "CumSum" else "mul"
    flags = {name: bool(node.integer(name, 0)) for name in ("exclusive", "reverse")}
    return b.emit(ScanOp.get(x, kind, dim, **flags))
