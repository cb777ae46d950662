"""Handlers of braid's tensor ops and of the `tensor` ops between tensors and scalars."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from braid.analysis.interpreter.machine import Handler, Machine, Value
from braid.dialects.braid.base import TensorOp, fits
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.relayout import Array
from braid.errors import BraidError


def _evaluate(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    with np.errstate(all="ignore"):
        return cast(TensorOp, op).evaluate(*cast(Sequence[Array], operands))


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
    array, *indices = operands
    position = tuple(int(index) for index in indices)
    outside = any(i < 0 or i >= n for i, n in zip(position, array.shape, strict=True))
    if outside:
        raise BraidError(f"index {list(position)} is outside of shape {list(array.shape)}")
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
