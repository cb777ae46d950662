"""Find results that may differ by the order of sums: those of ops that make steps of floats.

A sum of floats is another one in another order, by a few units in the last place. A value that is
rounded to an integer, compared or searched may then be the next integer, the other answer or
another index. This may concern few elements of many, and each must be within the op's results for
sums slightly below and above.
"""

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation, SSAValue

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import TensorOp, element_type_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import is_float
from braid.dialects.braid.elementwise import ELEMENTWISE
from braid.dialects.braid.movement import (
    BroadcastOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from braid.dialects.braid.quantization import DequantizeOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array
from braid.tuning.reference_operands import Values, ops_of

_TO_WHOLE = {"braid.floor", "braid.ceil", "braid.round", "braid.sign"}
_BASIC = {f"braid.{name}" for name in ("add", "sub", "mul", "div", "sqrt", "reciprocal")}
"""The ops whose results are, by IEEE 754, next to the exact ones."""
_KEEPING = (
    *(ConstantOp, ELEMENTWISE["cast"], BroadcastOp, ConcatOp, PadOp, ReshapeOp, SliceOp),
    TransposeOp,
)
_ULPS = 2
"""The difference, in units in the last place, that a number of a narrow type may have."""


def stepped(group: FusedOp, values: Values, tolerance: float, direction: int) -> Values:
    """Return the results of a group's ops if the sums before steps are slightly off.

    `values` are the results for exact operands, `direction` is 1 or -1. Sums are off by units in
    the last place of the narrowest type after them, and by `tolerance` of the largest one.
    """
    found, changed, units = dict(values), set[SSAValue](), _units(group, values)
    for op in ops_of(group):
        operands = {operand: found[operand] for operand in op.operands}
        off = {
            operand: _ULPS * units[operand] * np.abs(wide) + tolerance * _largest(wide)
            for operand, array in operands.items()
            if operand in units and _makes_steps(op)
            for wide in (array.astype(np.float64),)
        }
        if off or not changed.isdisjoint(operands):
            with np.errstate(all="ignore"):
                results = _results(op, operands, off, direction)
            found.update(zip(op.results, results, strict=True))
            changed.update(op.results)
    return found


def _results(op: Operation, operands: Values, off: Values, direction: int) -> Sequence[Array]:
    """Return the results of an op whose first operands are larger by `off`, others smaller."""
    assert isinstance(op, TensorOp)
    if isinstance(op, ArgReduceOp) and off:
        return [_place(op, operands[op.input], off[op.input], direction)]
    moved = dict(operands)
    for operand, by in off.items():
        sign = direction if operand is op.operands[0] else -direction
        moved[operand] = (operands[operand] + sign * by).astype(operands[operand].dtype)
    return op.evaluate(*(moved[operand] for operand in op.operands))


def _makes_steps(op: Operation) -> bool:
    of_floats = any(is_float(element_type_of(operand)) for operand in op.operands)
    makes_floats = all(is_float(element_type_of(result)) for result in op.results)
    return of_floats and (not makes_floats or op.name in {*_TO_WHOLE, "braid.rem"})


def _units(group: FusedOp, values: Values) -> dict[SSAValue, float]:
    """Return a unit in the last place of the floats that kernels may compute otherwise.

    It is that of the narrowest type after them. Integer multiples of steps are exact, and so is a
    single sum or product of exact numbers: there is one right way to round it.
    """
    units: dict[SSAValue, float] = {}
    once: list[SSAValue] = []
    for op in ops_of(group):
        before = [units[operand] for operand in op.operands if operand in units]
        is_kept = isinstance(op, _KEEPING) and not before
        if op.name in _TO_WHOLE or is_kept:
            continue
        for result in op.results:
            if is_float(element_type_of(result)):
                units[result] = max([*before, _unit(values[result])])
        if not before and (op.name in _BASIC or isinstance(op, DequantizeOp)):
            once += op.results
    return {value: unit for value, unit in units.items() if value not in once}


def _unit(array: Array) -> float:
    """Return a unit in the last place of a number next to 1."""
    return float(np.spacing(np.ones(1, array.dtype))[0])


def _largest(array: Array) -> float:
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0))


def _place(op: ArgReduceOp, x: Array, off: Array, direction: int) -> Array:
    """Return the first index that may be the extreme, or the last one."""
    dim, wide = op.dim.value.data, x.astype(np.float64)
    near = wide + off >= (wide - off).max(dim, keepdims=True)
    if op.kind.data == "min":
        near = wide - off <= (wide + off).min(dim, keepdims=True)
    near |= np.isnan(wide)
    first = near.argmax(dim, keepdims=True)
    last = x.shape[dim] - 1 - np.flip(near, dim).argmax(dim, keepdims=True)
    return (first if direction < 0 else last).astype(np.int64)
