"""Handlers of braid's tensor ops and of the `tensor` ops between tensors and scalars."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.interpreter.machine import Handler, Machine, Value
from braid.dialects.braid.base import TensorOp, fits
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.relayout import Array
from braid.support.errors import BraidError


def _evaluate(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    try:
        with np.errstate(all="ignore"):
            values = cast(TensorOp, op).evaluate(*cast(Sequence[Array], operands))
    except (AttributeError, TypeError, AssertionError) as error:
        if type(op).__module__.startswith("braid."):
            raise
        raise _wrong(op, f"raised {type(error).__name__}: {error}") from error
    _check_values(op, values)
    return values


def _check_values(op: Operation, values: object) -> None:
    """Raise BraidError unless `evaluate` gave an array for each result, of its type."""
    is_sequence = isinstance(values, tuple | list)
    arrays = cast(Sequence[Any], values) if is_sequence else ()
    if len(arrays) != len(op.results):
        what = f"{len(arrays)} arrays" if is_sequence else values.__class__.__name__
        raise _wrong(op, f"gave {what}, expected a tuple of {len(op.results)}")
    for result, value in zip(op.results, arrays, strict=True):
        _check_value(op, cast(TensorType[Any], result.type), value)


def _check_value(op: Operation, expected: TensorType[Any], value: Any) -> None:
    if not hasattr(value, "dtype"):
        raise _wrong(op, f"gave {type(value).__name__}, expected an array")
    if value.dtype != to_numpy(expected.element_type) or not fits(
        value.shape, expected.get_shape()
    ):
        raise _wrong(op, f"gave {value.dtype}{list(value.shape)}, expected {expected}")


def _wrong(op: Operation, what: str) -> BraidError:
    return BraidError(f"'evaluate' of '{op.name}' {what}", location=source_location(op))


def _parameter(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    parameter = cast(ParameterOp, op)
    key, expected = parameter.key.data, parameter.result_type()
    if key not in machine.parameters:
        return parameter.evaluate()
    value = machine.parameters[key]
    dtype = to_numpy(expected.element_type)
    if value.dtype != dtype or not fits(value.shape, expected.get_shape()):
        raise BraidError(
            f"parameter '{key}' is {value.dtype}{list(value.shape)}, expected {expected}"
        )
    return (value,)


def _extract(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    """Look up elements; in the body of a nest, indices are arrays over several iterations."""
    array, *indices = operands
    position = tuple(np.asarray(index, np.int64) for index in indices)
    for dim, (index, extent) in enumerate(zip(position, array.shape, strict=True)):
        outside = index[(index < 0) | (index >= extent)]
        if outside.size:
            raise BraidError(
                f"index {outside.reshape(-1)[0]} of dim {dim} is outside of "
                f"shape {list(array.shape)}"
            )
    return (array[position],)


def _from_elements(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    result = cast(TensorType[Any], op.results[0].type)
    values = np.array(operands, to_numpy(result.element_type))
    return (values.reshape(result.get_shape()),)


def _splat(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    result = cast(TensorType[Any], op.results[0].type)
    return (np.full(result.get_shape(), operands[0], to_numpy(result.element_type)),)


def _dim(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    return (np.int64(operands[0].shape[int(operands[1])]),)


def _cast(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    result = cast(TensorType[Any], op.results[0].type)
    shape = operands[0].shape
    if not fits(result.get_shape(), shape):
        raise BraidError(f"a tensor of shape {list(shape)} was cast to {result}")
    return operands


HANDLERS: dict[type[Operation], Handler] = {
    TensorOp: _evaluate,
    ParameterOp: _parameter,
    tensor.ExtractOp: _extract,
    tensor.FromElementsOp: _from_elements,
    tensor.SplatOp: _splat,
    tensor.DimOp: _dim,
    tensor.CastOp: _cast,
}
"""Handlers by op class."""
