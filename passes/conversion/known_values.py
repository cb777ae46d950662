"""Evaluate what a module computes about its own shapes, while it is converted."""

import math
from dataclasses import dataclass, field

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
"""The number of ops that are looked through; values computed from sizes are rarely more than one op
away.
"""


def known_values(value: SSAValue, known: Assumptions) -> Array | None:
    """Return the elements of `value` where they are constants, or numbers and sizes, else None.

    Sizes are in an array of objects, and bools among them are sizes of 0 and 1: see
    `dialects.braid.size_evaluation`. `known` has the assumptions about the symbols.
    """
    return _Evaluation(known).values(value, _DEEPEST)


def sizes_computed(op: TensorOp, known: Assumptions) -> Array | None:
    """Return the results of an op on sizes as numbers and sizes, None for another op.

    A bool is such where it is decided.
    """
    if len(op.results) != 1 or not any(_is_sized_value(value) for value in op.operands):
        return None
    if isinstance(op, ElementwiseOp) and op.ROW.name == "cast":
        return None  # it follows `braid.size_values`, which gives i64
    array = _Evaluation(known).result(op, _DEEPEST)
    is_undecided = array is not None and is_sized(array) and element_type_of(op.results[0]) == i1
    return array if array is not None and not is_undecided else None


def _is_sized_value(value: SSAValue) -> bool:
    """Return whether a value is made of sizes, or is decided by such."""
    for _ in range(_DEEPEST):
        owner = value.owner
        if isinstance(owner, SizeValuesOp):
            return True
        if not isinstance(owner, ElementwiseOp) or math.prod(shape_of(value)) > _MOST_ELEMENTS:
            return False
        value = owner.operands[0]
    return False


@dataclass(frozen=True)
class _Evaluation:
    """An evaluation keeps the assumptions about symbols, and each value that it has computed."""

    known: Assumptions
    found: dict[SSAValue, Array | None] = field(default_factory=dict[SSAValue, "Array | None"])

    def values(self, value: SSAValue, depth: int) -> Array | None:
        """Return the elements of a value, looking through `depth` ops."""
        if value not in self.found:
            self.found[value] = self._values(value, depth)
        return self.found[value]

    def _values(self, value: SSAValue, depth: int) -> Array | None:
        owner = value.owner
        if isinstance(owner, ConstantOp):
            return numpy_from_dense(owner.value)
        if isinstance(owner, SizeValuesOp):
            return as_array(owner.values.get_values(), shape_of(value))
        if not isinstance(owner, TensorOp) or len(owner.results) != 1 or not depth:
            return None
        return self.result(owner, depth - 1)

    def result(self, op: TensorOp, depth: int) -> Array | None:
        """Return the elements of an op's result, None where an operand is unknown or large."""
        shapes = [shape_of(value) for value in (*op.operands, *op.results)]
        if any(DYNAMIC in shape or math.prod(shape) > _MOST_ELEMENTS for shape in shapes):
            return None
        operands = [self.values(value, depth) for value in op.operands]
        elements = [operand for operand in operands if operand is not None]
        if len(elements) != len(operands):
            return None
        if not any(map(is_sized, elements)):
            return np.asarray(op.evaluate(*elements)[0])
        values = evaluate_sizes(op, elements, self.known)
        return np.asarray(values[0]) if values is not None and is_integral(values[0]) else None
