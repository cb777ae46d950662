"""Handlers of `linalg`, `tensor` and `math`, for models in upstream's dialects."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from typing import Any, cast

import numpy as np
from xdsl.dialects import math, tensor
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, UnregisteredOp
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.ops import BroadcastOp, IndexOp, ReduceOp
from xdsl.ir import Operation
from xdsl.ir.affine import AffineDimExpr, AffineMap

from braid.analysis.interpreter.machine import Handler, Machine, Value
from braid.analysis.structure.loop_nests import op_name, tensor_nests
from braid.dialects.braid import numpy_functions as fn
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.relayout import Array
from braid.support.errors import UnsupportedError


def _structured(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    """Run the iterations in order, except that those that write different elements run all at
    once."""
    op = cast(LinalgStructuredOperation, op)
    maps = [attribute.data for attribute in op.get_indexing_maps()]
    extents = op.get_static_loop_ranges()
    arrays = [np.asarray(value) for value in operands]
    first_result = len(operands) - len(op.results)
    for index in range(first_result, len(operands)):
        arrays[index] = arrays[index].copy()
    parallel = _parallel(maps[first_result:])
    reduced = [dim for dim in range(len(extents)) if dim not in parallel]
    shape = [extents[dim] for dim in parallel]
    grid = dict(zip(parallel, np.ogrid[tuple(slice(n) for n in shape)], strict=True))
    if 0 in shape:
        return arrays[first_result:]
    for point in product(*(range(extents[dim]) for dim in reduced)):
        place = grid | dict(zip(reduced, map(np.int64, point), strict=True))
        at = [_places(map, place) for map in maps]
        reads = [np.broadcast_to(a[p], shape) for a, p in zip(arrays, at, strict=True)]
        indices = {dim: np.broadcast_to(index, shape) for dim, index in place.items()}
        values = machine.run_kernel(op.regions[0].block, reads, indices)
        for number, value in enumerate(values, first_result):
            arrays[number][at[number]] = value
    return arrays[first_result:]


def _parallel(written: Sequence[AffineMap]) -> list[int]:
    """Return the loops that appear in the map of every result, whatever iterator types the op
    declares."""
    dims = range(written[0].num_dims)
    return [dim for dim in dims if all(AffineDimExpr(dim) in map.results for map in written)]


def _index(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    return (machine.indices[cast(IndexOp, op).dim.value.data],)


def _generalized(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    """Return a named op as the `linalg.generic` into which upstream turns it.

    Ops of `arith` and `math` on tensors that upstream read are not registered.
    """
    if (elementwise := _elementwise_ops().get(op_name(op))) is not None:
        made = elementwise.create(
            operands=op.operands, result_types=op.result_types, properties=dict(op.properties)
        )
        results = machine.results_of(made, operands)
        made.drop_all_references()
        return results
    generic = _generic_of(op)
    if generic is None:
        return machine.unknown(op)
    return _structured(machine, generic, operands)


@cache
def _elementwise_ops() -> dict[str, type[Operation]]:
    return {op.name: op for dialect in (Arith, math.Math) for op in dialect.operations}


@cache
def _generic_of(op: Operation) -> LinalgStructuredOperation | None:
    """Return the generic form of an op; None for another dialect, or if its region reads values
    around it.
    """
    inside = {inner for region in op.regions for inner in region.walk()}
    around = (
        operand.owner
        for inner in inside
        for operand in inner.operands
        if isinstance(operand.owner, Operation)
    )
    if not inside.issuperset(around):
        return None
    nest = tensor_nests([op]).get(op)
    return None if nest is None else nest.op


def _places(map: AffineMap, place: dict[int, Any]) -> tuple[Any, ...]:
    """Return the indices of a map's results for loops at `place`, arrays for those taken at
    once.
    """
    return tuple(map.eval([place[dim] for dim in range(map.num_dims)], []))


def _empty(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    result = op.results[0]
    return (np.zeros(shape_of(result), to_numpy(cast(Any, result.type).element_type)),)


def _box(op: tensor.ExtractSliceOp | tensor.InsertSliceOp) -> tuple[slice, ...]:
    lists = [field.get_values() for field in _fields(op)]
    if any(number == DYNAMIC_INDEX for numbers in lists for number in numbers):
        raise UnsupportedError(f"'{op.name}' op with extents known at run time is not interpreted")
    return tuple(slice(o, o + n * s, s) for o, n, s in zip(*lists, strict=True))


def _fields(op: tensor.ExtractSliceOp | tensor.InsertSliceOp) -> tuple[Any, Any, Any]:
    return op.static_offsets, op.static_sizes, op.static_strides


def _extract(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    part = operands[0][_box(cast(tensor.ExtractSliceOp, op))]
    return (part.reshape(shape_of(op.results[0])),)


def _insert(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    whole, box = operands[1].copy(), _box(cast(tensor.InsertSliceOp, op))
    whole[box] = operands[0].reshape(whole[box].shape)
    return (whole,)


def _reshape(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    return (operands[0].reshape(shape_of(op.results[0])),)


def _function(function: Callable[..., Array]) -> Handler:
    def handle(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
        with np.errstate(all="ignore"):
            return (np.asarray(function(*operands)).astype(np.asarray(operands[0]).dtype),)

    return handle


def _multiply_add(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


_FUNCTIONS: dict[type[Operation], Callable[..., Any]] = {
    math.AbsFOp: np.abs,
    math.AbsIOp: np.abs,
    math.AcosOp: np.arccos,
    math.AcoshOp: np.arccosh,
    math.AsinOp: np.arcsin,
    math.AsinhOp: np.arcsinh,
    math.Atan2Op: np.arctan2,
    math.AtanOp: np.arctan,
    math.AtanhOp: np.arctanh,
    math.CbrtOp: np.cbrt,
    math.CeilOp: np.ceil,
    math.CopySignOp: np.copysign,
    math.CosOp: np.cos,
    math.CoshOp: np.cosh,
    math.ErfOp: fn.erf,
    math.Exp2Op: np.exp2,
    math.ExpM1Op: np.expm1,
    math.ExpOp: np.exp,
    math.FloorOp: np.floor,
    math.FmaOp: _multiply_add,
    math.Log10Op: np.log10,
    math.Log1pOp: np.log1p,
    math.Log2Op: np.log2,
    math.LogOp: np.log,
    math.PowFOp: fn.power,
    math.RoundEvenOp: np.round,
    math.RsqrtOp: fn.reciprocal_sqrt,
    math.SinOp: np.sin,
    math.SinhOp: np.sinh,
    math.SqrtOp: np.sqrt,
    math.TanOp: np.tan,
    math.TanhOp: np.tanh,
    math.TruncOp: np.trunc,
}

HANDLERS: dict[type[Operation], Handler] = {
    LinalgStructuredOperation: _structured,
    IndexOp: _index,
    ReduceOp: _generalized,
    BroadcastOp: _generalized,
    UnregisteredOp: _generalized,
    tensor.EmptyOp: _empty,
    tensor.ExtractSliceOp: _extract,
    tensor.InsertSliceOp: _insert,
    tensor.ExpandShapeOp: _reshape,
    tensor.CollapseShapeOp: _reshape,
    **{op: _function(function) for op, function in _FUNCTIONS.items()},
}
"""Handlers by op class."""
