"""Sums of narrow numbers in a wider type: `accumulator` of products, windows and reductions."""

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, IntegerType
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, opt_attr_def
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.base import require, require_computed
from braid.dialects.braid.dtypes import bytes_of, is_computed_integer, to_numpy
from braid.dialects.braid.numpy_functions import wide
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scalar import Apply, Argument, Scalar


class AccumulatingOp(IRDLOperation):
    """An op whose sums may be in a wider type, `accumulator`, than its operands.

    Operands of an integer accumulator are integers narrower than that, and of a product one may be
    signed and the other not; sums wrap around. Ops that compute in f32 have f16 or bf16 elements;
    values between their parts stay in f32, and so are not rounded.
    """

    accumulator = opt_attr_def(IntegerType | Float32Type)

    def sum_type(self, *operands: Attribute) -> Attribute:
        """Return the element type of the result for operands of these types.

        Raises VerifyException if they differ in type, or are no narrower integers.
        """
        wider = self.accumulator
        require_computed(operands[0])
        if wider is None:
            for other in operands[1:]:
                require(
                    other == operands[0],
                    "operands have element types {} and {}; "
                    "only integers with an 'accumulator' may differ",
                    operands[0],
                    other,
                )
            return operands[0]
        if isinstance(wider, Float32Type):
            for type in operands:
                require(
                    isinstance(type, Float16Type | BFloat16Type),
                    "an operand has element type {}, expected f16 or bf16 for sums in f32",
                    type,
                )
            if len(set(operands)) != 1:
                types = " and ".join(map(str, operands))
                raise VerifyException(f"operands have element types {types}")
            return wider
        for type in operands:
            is_narrow = is_computed_integer(type) and bytes_of(type) < bytes_of(wider)
            message = "an operand has element type {}, expected narrower than {}"
            require(is_narrow, message, type, wider)
        return wider

    def addend(self, index: int) -> Scalar:
        """Return argument `index` in the type in which it is multiplied or added."""
        wider = self.accumulator
        return Argument(index) if wider is None else Apply("cast", (Argument(index),), wider)

    def widened(self, array: Array) -> Array:
        """Return an operand in the type in which numpy computes sums of it.

        Sums of products of up to 16 bits are exact in f64, which numpy multiplies faster.
        """
        if not isinstance(self.accumulator, IntegerType):
            return wide(array)
        return array.astype(np.float64 if array.dtype.itemsize <= 2 else np.int64)

    def narrowed(self, array: Array, operand: Array) -> Array:
        """Return a sum of values of `widened` in the element type of the result."""
        if self.accumulator is None:
            return np.asarray(array).astype(operand.dtype)
        if isinstance(self.accumulator, Float32Type):
            return np.asarray(array).astype(np.float32)
        return np.asarray(array).astype(np.int64).astype(to_numpy(self.accumulator))
