"""What a module computes about its own shapes, while it is converted."""

import math

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import TensorOp, element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import i1, numpy_from_dense
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import as_array, evaluate_sizes, is_integral, is_sized
from braid.dialects.braid.sized_ops import SizeValuesOp
from braid.support.sizes.assumptions import Assumptions

_MOST_ELEMENTS = 4096
"""Values of more elements are no shapes."""

_DEEPEST = 64
"""So many ops are looked through; what is computed of sizes is rarely more than one op away."""


def known_values(value: SSAValue, known: Assumptions, depth: int = _DEEPEST) -> Array | None:
    """Return the elements of `value` where they are constants, or numbers and sizes, else None.

    Sizes are in an array of objects, and bools among them are sizes of 0 and 1: see
    `dialects.braid.size_evaluation`. `known` is what is assumed of the symbols.
    """
    owner = value.owner
    if isinstance(owner, ConstantOp):
        return numpy_from_dense(owner.value)
    if isinstance(owner, SizeValuesOp):
        return as_array(owner.values.get_values(), shape_of(value))
    if not isinstance(owner, TensorOp) or len(owner.results) != 1 or not depth:
        return None
    operands = _operands(owner, known, depth - 1)
    if operands is None:
        return None
    if any(map(is_sized, operands)):
        return _of_sizes(owner, operands, known)
    return np.asarray(owner.evaluate(*operands)[0])


def sizes_computed(op: TensorOp, known: Assumptions) -> Array | None:
    """Return the numbers and sizes that an op of one result makes of sizes, None for another op.

    A bool is such where it is decided.
    """
    if len(op.results) != 1 or not any(_is_sized_value(value) for value in op.operands):
        return None
    if isinstance(op, ElementwiseOp) and op.ROW.name == "cast":
        return None  # it stands behind `braid.size_values`, which gives i64
    operands = _operands(op, known, _DEEPEST)
    array = None if operands is None else _of_sizes(op, operands, known)
    is_undecided = array is not None and is_sized(array) and element_type_of(op.results[0]) == i1
    return None if is_undecided else array


def _is_sized_value(value: SSAValue) -> bool:
    """Return whether a value is made of sizes, or is decided by such."""
    owner = value.owner
    for _ in range(_DEEPEST):
        if isinstance(owner, SizeValuesOp):
            return True
        is_scalar = isinstance(owner, ElementwiseOp) and math.prod(shape_of(value)) == 1
        if not is_scalar or not isinstance(owner, ElementwiseOp):
            return False
        owner = owner.operands[0].owner
    return False


def _operands(op: TensorOp, known: Assumptions, depth: int) -> list[Array] | None:
    """Return the elements of all operands, None where one is unknown or large."""
    shapes = [shape_of(value) for value in (*op.operands, *op.results)]
    if any(DYNAMIC in shape or math.prod(shape) > _MOST_ELEMENTS for shape in shapes):
        return None
    operands: list[Array] = []
    for value in op.operands:
        elements = known_values(value, known, depth)
        if elements is None:
            return None
        operands.append(elements)
    return operands


def _of_sizes(op: TensorOp, operands: list[Array], known: Assumptions) -> Array | None:
    values = evaluate_sizes(op, operands, known)
    return np.asarray(values[0]) if values is not None and is_integral(values[0]) else None
