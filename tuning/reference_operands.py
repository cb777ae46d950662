"""Random operands of a group that its ops take, on which kernels are compared with the semantics.

With other operands even a right kernel has undefined results: a shift by more bits than the type
has, an index out of bounds, two updates of one element. Scales are such that quantized numbers fill
their range, since most errors do not show where all are cut off.
"""

import math
from collections.abc import Sequence
from contextlib import suppress

import ml_dtypes
import numpy as np
from xdsl.ir import Operation, SSAValue

from braid.dialects.braid.base import TensorOp, element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import is_float, numpy_from_dense, to_numpy
from braid.dialects.braid.indexing import (
    GatherBase,
    GatherElementsOp,
    GatherNdOp,
    GatherOp,
    element_index,
    tuple_index,
)
from braid.dialects.braid.movement import BroadcastOp, ReshapeOp, SliceOp, TransposeOp
from braid.dialects.braid.quantization import MOST_SHIFT, MULTIPLIER_BITS, QuantizeOp, RequantizeOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterNdOp, ScatterOp
from braid.targets.costs.op_amounts import amounts_of

Values = dict[SSAValue, Array]

_SMALL, _WIDE = 7, 1000
"""The largest divisors, exponents and counts of bits, and the largest other integers of more than 8
bits, so that products and sums stay within 32 bits."""
_SHIFTS, _DIVISIONS = {"braid.shift_left", "braid.shift_right"}, {"braid.div", "braid.rem"}
_OF_SMALL_INTEGERS = {*_SHIFTS, *_DIVISIONS, "braid.pow"}
_EQUALITIES = {"braid.eq", "braid.ne"}
_REACHES = {"braid.acosh": 4.0, "braid.ceil": 20.0, "braid.floor": 20.0, "braid.round": 20.0}
_MOVEMENTS = (BroadcastOp, ReshapeOp, SliceOp, TransposeOp)
_QUANTIZED = 100
"""The most that the largest number becomes, before the zero point is added."""


def random_values(group: FusedOp, seed: int) -> Values | None:
    """Return the arrays for the arguments of a group, and the results of its ops on them.

    None for a group with ops without numpy semantics, or with indices that no operands make valid.
    """
    ops = ops_of(group)
    if not all(isinstance(op, TensorOp) for op in ops):
        return None
    for is_plain in (False, True):
        generator = np.random.default_rng(seed)
        values = _arguments(group, generator, is_plain)
        with suppress(IndexError):
            taken = [_computed(op, values, generator) for op in ops]
            if all(taken) or is_plain:
                return values
    return None


def ops_of(group: FusedOp) -> list[Operation]:
    """Return the ops of a group in order, without its terminator."""
    return [op for op in group.body.block.ops if op is not group.terminator]


def _arguments(group: FusedOp, generator: np.random.Generator, is_plain: bool) -> Values:
    """Return random arguments; with `is_plain`, restricted integers are 0 or 1, which suit any
    shape and type.
    """
    scales, restricted = _scales(group), _restricted(group)
    values: Values = {}
    for value in group.body.block.args:
        op, dtype = restricted.get(value), np.dtype(to_numpy(element_type_of(value)))
        shape = shape_of(value)
        if isinstance(op, QuantizeOp):
            values[value] = generator.uniform(0.005, 0.02, shape).astype(dtype)
        elif isinstance(op, RequantizeOp) and not is_plain:
            least = 1 << (MULTIPLIER_BITS - 1)
            values[value] = generator.integers(least, 2 * least, shape).astype(dtype)
        elif op is None and is_float(element_type_of(value)):
            scale = scales.get(value, _reach(value))
            values[value] = generator.uniform(-scale, scale, shape).astype(dtype)
        elif op is None:
            values[value] = _integers(value, generator)
        elif isinstance(op, GatherBase | ScatterOp):
            is_moved = math.prod(shape) == math.prod(shape_of(op.indices))
            drawn = np.zeros(shape) if is_plain or not is_moved else _indices(op, generator)
            values[value] = drawn.reshape(shape).astype(dtype)
        elif is_plain:
            values[value] = np.ones(shape, dtype)
        else:
            drawn = generator.integers(1, _SMALL + 1, shape)
            if op.name in _DIVISIONS and dtype.kind == "i" and value in op.operands:
                # Not -1: of the least number of a type there is no quotient.
                drawn = np.where((drawn > 1) & (generator.random(shape) < 0.5), -drawn, drawn)
            values[value] = drawn.astype(dtype)
    _clear_zeros(group, values)
    return values


def _clear_zeros(group: FusedOp, values: Values) -> None:
    """Clear the elements that convolutions of `group` take for zeros."""
    for op in group.body.block.ops:
        if isinstance(op, ConvOp) and op.input in values:
            array, pairs = values[op.input], zip(*op.zeros, strict=True)
            for dim, (low, high) in enumerate(pairs, 2):
                along = np.moveaxis(array, dim, 0)
                along[:low] = 0
                along[max(len(along) - high, 0) :] = 0


def _restricted(group: FusedOp) -> dict[SSAValue, Operation]:
    """Return values from which operands are computed that accept only some numbers."""
    found: dict[SSAValue, Operation] = {}
    for op in reversed(ops_of(group)):
        reader = next((found[result] for result in op.results if result in found), None)
        if isinstance(reader, QuantizeOp | RequantizeOp) and not isinstance(op, _MOVEMENTS):
            reader = None  # the operand of a scale's computation may be any number
        wanted = op.operands if reader is not None else _restricted_operands(op)
        found.update(dict.fromkeys(wanted, op if reader is None else reader))
    return found


def _restricted_operands(op: Operation) -> Sequence[SSAValue]:
    if op.name in _OF_SMALL_INTEGERS:
        return [] if is_float(element_type_of(op.operands[1])) else [op.operands[1]]
    if isinstance(op, QuantizeOp):
        return [op.operands[1]]
    if isinstance(op, RequantizeOp):
        return op.operands[1:3]
    return [op.indices] if isinstance(op, GatherBase | ScatterOp) else []


def _scales(group: FusedOp) -> dict[SSAValue, float]:
    """Return the largest value of each operand of a product whose result is an operand of another
    product.

    Sums then stay as large as what they are of (He et al., "Delving deep into rectifiers", 2015),
    and do not leave the numbers of a type however many there are.
    """
    terms: dict[Operation, float] = {}
    for op in ops_of(group):
        if isinstance(op, TensorOp) and op.results:
            multiplied = amounts_of(op, static=True).by_resource.get("matrix", 0)
            terms[op] = multiplied / max(2 * math.prod(shape_of(op.results[0])), 1)
    products = [op for op, count in terms.items() if count > 0]
    if len(products) < 2:
        return {}
    return {value: (6 / terms[op]) ** 0.5 for op in products for value in op.operands}


def _reach(value: SSAValue) -> float:
    """Return what floats are at most, so that they become several integers, or anything."""
    reach = 1.0
    for use in value.uses:
        op = use.operation
        if isinstance(op, QuantizeOp) and isinstance(scale := op.operands[1].owner, ConstantOp):
            largest = numpy_from_dense(scale.value).max(initial=0.0)
            reach = max(reach, 1.5 * _QUANTIZED * float(largest))
        elif op.name == "braid.cast":
            to_floats = is_float(element_type_of(op.results[0]))
            reach = max(reach, _reach(op.results[0]) if to_floats else 2 * _QUANTIZED)
        elif op.name in _REACHES:
            reach = max(reach, _REACHES[op.name])
    return reach


def _integers(value: SSAValue, generator: np.random.Generator) -> Array:
    """Return all numbers of a type with up to 8 bits; for wider ones `_WIDE` on either side of 0.

    If they may be equal, so few that some are.
    """
    dtype, shape = np.dtype(to_numpy(element_type_of(value))), shape_of(value)
    if any(use.operation.name in _EQUALITIES for use in value.uses):
        return generator.integers(0, 2 if dtype == np.bool_ else _SMALL, shape).astype(dtype)
    if dtype == np.bool_:
        return generator.integers(0, 2, shape).astype(dtype)
    limits = ml_dtypes.iinfo(dtype)
    low, high = max(int(limits.min), -_WIDE), min(int(limits.max), _WIDE)
    return generator.integers(low, high, shape, endpoint=True).astype(dtype)


def _indices(op: GatherBase | ScatterOp, generator: np.random.Generator) -> Array:
    """Return valid indices for an op that reads or writes at them, half of them from the end.

    Where it writes, no element is addressed twice, if there are enough.
    """
    shape, data = shape_of(op.indices), [max(extent, 1) for extent in shape_of(op.data)]
    if isinstance(op, GatherNdOp | ScatterNdOp):
        first = op.batch_dims.value.data if isinstance(op, GatherNdOp) else 0
        extents = data[first : first + shape[-1]]
        count, most = math.prod(shape[:-1]), math.prod(extents)
        is_distinct = isinstance(op, ScatterNdOp) and count <= most
        drawn = generator.permutation(most) if is_distinct else generator.integers(0, most, count)
        found = np.stack(np.unravel_index(drawn[:count], extents), -1).reshape(shape)
    else:
        assert isinstance(op, GatherOp | GatherElementsOp | ScatterElementsOp)
        dim = op.dim.value.data
        extents = np.asarray(data[dim])
        found = generator.integers(0, data[dim], shape)
        if isinstance(op, ScatterElementsOp) and shape[dim] <= data[dim]:
            keys = generator.random([*shape[:dim], data[dim], *shape[dim + 1 :]])
            found = np.take(np.argsort(keys, dim), range(shape[dim]), dim)
    return found - np.where(generator.integers(0, 2, shape) == 1, extents, 0)


def _computed(op: Operation, values: Values, generator: np.random.Generator) -> bool:
    """Add what an op computes, and return whether it accepts its operands. Raises IndexError."""
    assert isinstance(op, TensorOp)
    _fit_scale(op, values, generator)
    operands = [values[operand] for operand in op.operands]
    values.update(zip(op.results, op.evaluate(*operands), strict=True))
    return _takes(op, operands)


def _fit_scale(op: Operation, values: Values, generator: np.random.Generator) -> None:
    """Choose the scale of quantized numbers by what it is applied to.

    If it is an argument that no earlier op has used.
    """
    if not isinstance(op, QuantizeOp | RequantizeOp):
        return
    x = values[op.operands[0]].astype(np.float64)
    most = np.abs(x[np.isfinite(x)]).max(initial=1e-6)
    scale = op.operands[2] if isinstance(op, RequantizeOp) else op.operands[1]
    users = {use.operation for use in scale.uses}
    is_used = any(result in values for user in users for result in user.results)
    if isinstance(scale.owner, Operation) or is_used:
        return
    shape, dtype = shape_of(scale), values[scale].dtype
    if isinstance(op, RequantizeOp):
        multiplied = most * np.abs(values[op.operands[1]]).max(initial=1)
        shift = math.ceil(math.log2(max(multiplied / _QUANTIZED, 2)))
        drawn = np.clip(shift + generator.integers(0, 2, shape), 1, MOST_SHIFT)
    else:
        drawn = most / _QUANTIZED * generator.uniform(1, 2, shape)
    values[scale] = drawn.astype(dtype)


def _takes(op: Operation, operands: Sequence[Array]) -> bool:
    """Return whether the semantics of an op are defined for these operands; indices are known to be
    inside.
    """
    if op.name in _SHIFTS:
        counts = operands[1]
        return bool(((counts >= 0) & (counts < 8 * counts.itemsize)).all())
    if isinstance(op, RequantizeOp):
        return bool(((operands[2] >= 1) & (operands[2] <= MOST_SHIFT)).all())
    return not isinstance(op, ScatterOp) or _writes_once(op, operands[0], operands[1])


def _writes_once(op: ScatterOp, data: Array, indices: Array) -> bool:
    """Return whether no element is updated twice; which update stays is undefined unless they are
    combined.
    """
    if op.reduction.data != "none":
        return True
    if isinstance(op, ScatterElementsOp):
        index = element_index(data, indices, op.dim.value.data)
    else:
        index = tuple_index(data, indices, 0)
    writes = np.zeros(data.shape, np.int64)
    np.add.at(writes, index, 1)
    return bool((writes <= 1).all())
