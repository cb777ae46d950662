"""Normalization of `linalg.generic` on buffers into the form that emitters assume.

Emitters distribute the parallel loops of a nest over threads. They assume that the map of every
result has each parallel loop once and no reduction loop, and that all operands are buffers. The
nests of braid's own ops fulfil this; those of upstream ops in a model need not, and become
sequential loops where they do not.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineConstantExpr, AffineDimExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from braid.lowering.common.loop_nest import counting_loop, index_at, loops_of
from braid.support.errors import UnsupportedError


def check_nests(function: FuncOp) -> None:
    """Bring each nest of a function on buffers into the form that emitters assume.

    Raises:
        UnsupportedError: a nest accesses an operand out of bounds, or too much to check it.

    """
    for nest in [op for op in function.walk() if isinstance(op, linalg.GenericOp)]:
        nest = _without_scalars(nest)
        _check_bounds(nest)
        written = [_dims(map.data) for map in list(nest.indexing_maps)[len(nest.inputs) :]]
        if any(dims is None or dims != written[0] for dims in written):
            _as_loops(nest)
        else:
            _set_kinds(nest, written[0] or frozenset())


_MOST_VALUES = 1 << 22
"""The largest number of values of an index expression that is checked, else it is rejected."""


def _check_bounds(nest: linalg.GenericOp) -> None:
    """Raise UnsupportedError where a nest accesses an operand out of bounds.

    Upstream checks the first and the last iteration only, which do not bound floordiv and mod.
    """
    loops = loops_of(nest)
    for map, operand in zip(loops.maps, nest.operands, strict=True):
        shape = cast(MemRefType[Any], operand.type).get_shape()
        for expr, extent in zip(map.results, shape, strict=True):
            if not isinstance(expr, AffineBinaryOpExpr):
                continue
            used = sorted(expr.used_dims())
            counts = [loops.extents[dim] for dim in used]
            if prod(counts) > _MOST_VALUES:
                raise UnsupportedError(f"{expr} has {prod(counts)} values to check")
            grid = dict(zip(used, np.ogrid[tuple(slice(count) for count in counts)], strict=True))
            dims = [grid.get(dim, 0) for dim in range(map.num_dims)]
            places = np.asarray(expr.eval(cast("list[int]", dims), []))
            if places.size and not (places.min() >= 0 and places.max() < extent):
                raise UnsupportedError(
                    f"'linalg.generic' reads or writes at {places.min()} to {places.max()} "
                    f"({expr}), expected 0 to {extent - 1}"
                )


def _dims(map: AffineMap) -> frozenset[int] | None:
    """Return the loops in the map of a result; None if a loop repeats or an index is computed."""
    dims = [expr.position for expr in map.results if isinstance(expr, AffineDimExpr)]
    others = [expr for expr in map.results if not isinstance(expr, AffineDimExpr)]
    is_plain = all(isinstance(expr, AffineConstantExpr) for expr in others)
    return frozenset(dims) if is_plain and len(set(dims)) == len(dims) else None


def _set_kinds(nest: linalg.GenericOp, written: frozenset[int]) -> None:
    """Mark exactly the loops in `written` as parallel, whatever the model declares."""
    count = len(nest.iterator_types)
    parallel, reduction = IteratorTypeAttr.parallel(), IteratorTypeAttr.reduction()
    kinds = [parallel if dim in written else reduction for dim in range(count)]
    nest.properties["iterator_types"] = ArrayAttr(kinds)


def _without_scalars(nest: linalg.GenericOp) -> linalg.GenericOp:
    """Return the nest with a body that uses scalar operands directly, and buffers as operands."""
    scalars = [i for i, v in enumerate(nest.inputs) if not isinstance(v.type, MemRefType)]
    if not scalars:
        return nest
    block = nest.body.block
    for index in reversed(scalars):
        argument = block.args[index]
        argument.replace_all_uses_with(nest.inputs[index])
        block.erase_arg(argument)
    kept = [index for index in range(len(nest.inputs)) if index not in scalars]
    maps = list(nest.indexing_maps)
    made = linalg.GenericOp(
        [nest.inputs[index] for index in kept],
        list(nest.outputs),
        nest.detach_region(nest.body),
        [maps[index] for index in kept] + maps[len(nest.inputs) :],
        list(nest.iterator_types),
    )
    Rewriter.replace_op(nest, made, [])
    return made


def _as_loops(nest: linalg.GenericOp) -> None:
    """Replace a nest by sequential loops, in the order of its iteration space."""
    loops = loops_of(nest)
    builder = Builder(InsertPoint.before(nest))
    point: list[SSAValue] = []
    for extent in loops.extents:
        builder, index = counting_loop(builder, 0, extent)
        point.append(index)
    places = [index_at(builder, map, point) for map in loops.maps]
    values: dict[SSAValue, SSAValue] = {}
    for argument, operand, place in zip(nest.body.block.args, nest.operands, places, strict=True):
        if argument.uses:
            values[argument] = builder.insert(memref.LoadOp.get(operand, place)).res
    for inner in nest.body.block.ops:
        if isinstance(inner, linalg.IndexOp):
            values[inner.result] = point[inner.dim.value.data]
        elif isinstance(inner, linalg.YieldOp):
            _store(builder, nest, [values.get(v, v) for v in inner.arguments], places)
        else:
            builder.insert(inner.clone(values))
    Rewriter.erase_op(nest)


def _store(
    builder: Builder,
    nest: linalg.GenericOp,
    results: Sequence[SSAValue],
    places: Sequence[Sequence[SSAValue]],
) -> None:
    for value, output, place in zip(results, nest.outputs, places[len(nest.inputs) :], strict=True):
        builder.insert(memref.StoreOp.get(value, output, place))
