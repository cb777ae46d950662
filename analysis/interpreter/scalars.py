"""Handlers of `arith`, as far as control flow needs it."""

import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation

from braid.analysis.interpreter.machine import Handler, Machine, Value
from braid.dialects.braid import numpy_functions as fn
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.dtypes import numpy_from_dense, to_numpy
from braid.support.errors import BraidError

Function = Callable[..., Any]


def _dtype(type: Attribute) -> np.dtype[Any]:
    if isinstance(type, IndexType):
        return np.dtype(np.int64)
    is_tensor = isinstance(type, TensorType)
    return to_numpy(cast(AnyTensor, type).element_type if is_tensor else type)


def _in_result_type(function: Function) -> Handler:
    """Return the handler that computes `function` and converts to the type of the result."""

    def handle(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
        with np.errstate(all="ignore"):
            value = fn.convert(np.asarray(function(*operands)), _dtype(op.results[0].type))
        return (value if isinstance(op.results[0].type, TensorType) else value[()],)

    return handle


def _unsigned(value: Value) -> Any:
    """Return `value` with its bits read as an unsigned number."""
    array = np.asarray(value)
    return array if array.dtype == np.bool_ else array.view(f"u{array.dtype.itemsize}")


def _on_unsigned(function: Function) -> Function:
    return lambda *operands: function(*map(_unsigned, operands))


def _or_bits(function: Function, on_bools: Function) -> Function:
    """Return an operation on 1-bit numbers, which are 0 and -1 if signed, unlike numpy's bools."""

    def on_any(a: Value, b: Value) -> Any:
        return (on_bools if np.asarray(a).dtype == np.bool_ else function)(a, b)

    return on_any


def _divide(a: Value, b: Value) -> Any:
    if not np.all(b):
        raise BraidError("division by zero")
    return fn.divide(np.asarray(a), np.asarray(b))


def _remainder(a: Value, b: Value) -> Any:
    if not np.all(b):
        raise BraidError("division by zero")
    return np.fmod(a, b)


def _sign_extended(a: Value) -> Any:
    return -a.astype(np.int64) if a.dtype == np.bool_ else a


def _lowest_bit(a: Value) -> Any:
    return a & 1


def _truncated(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    """Return the low bits of a number, also for bool, for which numpy asks whether any bit
    is set.
    """
    to_bool = _dtype(op.results[0].type) == np.bool_
    return _in_result_type(_lowest_bit if to_bool else fn.identity)(machine, op, operands)


def _constant(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    value = cast(arith.ConstantOp, op).value
    if isinstance(value, DenseIntOrFPElementsAttr):
        return (numpy_from_dense(value),)
    number = cast(IntegerAttr | FloatAttr, value)
    return (_dtype(op.results[0].type).type(number.value.data),)


_SIGNED: tuple[Function, ...] = (
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
)
_INTEGER_PREDICATES: tuple[Function, ...] = (*_SIGNED, *map(_on_unsigned, _SIGNED[2:]))


def _always(a: Value, b: Value) -> Any:
    return np.ones_like(a == b)


def _never(a: Value, b: Value) -> Any:
    return np.zeros_like(a == b)


def _ordered(function: Function) -> Function:
    """Return False where one is NaN."""

    def compare(a: Value, b: Value) -> Any:
        return function(a, b) & ~(np.isnan(a) | np.isnan(b))

    return compare


def _unordered(function: Function) -> Function:
    """Return True where one is NaN."""

    def compare(a: Value, b: Value) -> Any:
        return function(a, b) | np.isnan(a) | np.isnan(b)

    return compare


_FLOAT: tuple[Function, ...] = (
    operator.eq,
    operator.gt,
    operator.ge,
    operator.lt,
    operator.le,
    operator.ne,
)
_FLOAT_PREDICATES: tuple[Function, ...] = (
    _never,
    *map(_ordered, (*_FLOAT, _always)),
    *map(_unordered, (*_FLOAT, _never)),
    _always,
)
"""The functions of predicates, in the order of MLIR's `arith::CmpFPredicate`."""


def _compare(predicates: Sequence[Function]) -> Handler:
    def handle(machine: Machine, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
        predicate = cast(arith.CmpiOp | arith.CmpfOp, op).predicate.value.data
        return _in_result_type(predicates[predicate])(machine, op, operands)

    return handle


_FUNCTIONS: dict[type[Operation], Function] = {
    arith.AddiOp: _or_bits(np.add, np.bitwise_xor),
    arith.SubiOp: _or_bits(np.subtract, np.bitwise_xor),
    arith.MuliOp: np.multiply,
    arith.DivSIOp: _divide,
    arith.RemSIOp: _remainder,
    arith.MinSIOp: _or_bits(np.minimum, np.bitwise_or),
    arith.MaxSIOp: _or_bits(np.maximum, np.bitwise_and),
    arith.MinUIOp: _on_unsigned(np.minimum),
    arith.MaxUIOp: _on_unsigned(np.maximum),
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
    arith.AddfOp: np.add,
    arith.SubfOp: np.subtract,
    arith.MulfOp: np.multiply,
    arith.DivfOp: np.divide,
    arith.NegfOp: np.negative,
    arith.MaximumfOp: fn.maximum,
    arith.MinimumfOp: fn.minimum,
    arith.SelectOp: np.where,
    arith.IndexCastOp: fn.identity,
    arith.ExtSIOp: _sign_extended,
    arith.ExtUIOp: _unsigned,
    arith.SIToFPOp: fn.identity,
    arith.UIToFPOp: _unsigned,
    arith.FPToSIOp: fn.identity,
    arith.ExtFOp: fn.identity,
    arith.TruncFOp: fn.identity,
}

HANDLERS: dict[type[Operation], Handler] = {
    arith.ConstantOp: _constant,
    arith.CmpiOp: _compare(_INTEGER_PREDICATES),
    arith.CmpfOp: _compare(_FLOAT_PREDICATES),
    arith.TruncIOp: _truncated,
    **{op: _in_result_type(function) for op, function in _FUNCTIONS.items()},
}
"""Handlers by op class."""
