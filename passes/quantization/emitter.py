"""Builds ops before the one that is rewritten; results computed from small constants are folded."""

import math
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from braid.dialects.braid.base import TensorOp, element_type_of, extents_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import f32, numpy_from_dense, to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.movement import ReshapeOp
from braid.dialects.braid.names import union_names
from braid.dialects.braid.quantization import DequantizeOp
from braid.dialects.braid.relayout import Array
from braid.support.sizes.expression import Extent

_FOLDED_ELEMENTS = 4096


@dataclass(frozen=True)
class Emitter:
    """Inserts before `op`."""

    op: Operation
    rewriter: PatternRewriter

    def insert(self, op: TensorOp) -> SSAValue:
        """Return the first result of `op`, as a constant where its operands are.

        Constants among the operands that are in no block yet are inserted, too.
        """
        operands = [constant_of(operand) for operand in op.operands]
        known = [operand for operand in operands if operand is not None]
        shape = shape_of(op.results[0])
        small = DYNAMIC not in shape and math.prod(shape) <= _FOLDED_ELEMENTS
        kept = isinstance(op, DequantizeOp) and not is_single(op.output)
        if op.operands and small and not kept and len(known) == len(operands):
            folded = ConstantOp.of(np.asarray(op.evaluate(*known)[0]))
            op.erase()
            op = folded
        for operand in op.operands:
            if isinstance(operand.owner, ConstantOp) and operand.owner.parent is None:
                self.rewriter.insert(operand.owner, InsertPoint.before(self.op))
        self.rewriter.insert(op, InsertPoint.before(self.op))
        return op.results[0]

    def name(self, value: SSAValue, *ops: Operation) -> SSAValue:
        """Return `value`; its op replaces `ops`."""
        assert isinstance(value.owner, Operation), "what was inserted is not an argument"
        union_names(value.owner, *ops)
        return value

    def apply(self, name: str, *operands: SSAValue) -> SSAValue:
        """Return an elementwise op of the table."""
        return self.insert(elementwise(name, *operands))

    def cast(self, value: SSAValue, element_type: Attribute) -> SSAValue:
        """Return `value` in another element type; itself if it has that."""
        if element_type_of(value) == element_type:
            return value
        return self.insert(elementwise("cast", value, element_type=element_type))

    def bitcast(self, value: SSAValue, element_type: Attribute) -> SSAValue:
        """Return the bits of `value` as another element type of the same size; itself if it has
        that.
        """
        if element_type_of(value) == element_type:
            return value
        return self.insert(elementwise("bitcast", value, element_type=element_type))

    def number(self, value: float, like: SSAValue) -> SSAValue:
        """Return a number in the element type of `like`, with its rank and extents of 1."""
        dtype = to_numpy(element_type_of(like))
        return self.insert(ConstantOp.of(np.full([1] * len(shape_of(like)), value, dtype)))

    def reshape(self, value: SSAValue, shape: tuple[Extent, ...]) -> SSAValue:
        """Return `value` in another shape; itself if it has that."""
        return value if extents_of(value) == shape else self.insert(ReshapeOp.get(value, shape))

    def rounded(self, value: SSAValue, limit: float) -> SSAValue:
        """Round f32 numbers to the nearest i32, no further from 0 than `limit`."""
        whole = self.apply("round", value)
        above = self.apply("maximum", whole, self.number(-limit, whole))
        return self.cast(self.apply("minimum", above, self.number(limit, whole)), i32)


def constant_of(value: SSAValue) -> Array | None:
    """Return the array of a `braid.constant`, None for other values."""
    owner = value.owner
    return numpy_from_dense(owner.value) if isinstance(owner, ConstantOp) else None


def number_of(value: SSAValue) -> float | int | None:
    """Return the number that all elements of a `braid.constant` are, None for other values."""
    array = constant_of(value)
    if array is None or array.size == 0 or (array != array.reshape(-1)[0]).any():
        return None
    return array.reshape(-1)[0].item()


def is_single(value: SSAValue) -> bool:
    """Return whether this is a single number for the whole of a tensor."""
    return all(extent == 1 for extent in shape_of(value))


def equal(left: SSAValue, right: SSAValue) -> bool:
    """Return whether two values are the same, or constants of the same elements and shape."""
    if left is right:
        return True
    a, b = constant_of(left), constant_of(right)
    return a is not None and b is not None and a.dtype == b.dtype and np.array_equal(a, b)


_MANTISSA_BITS, _BIAS = 23, 127
_MOST_SHIFT = 62


def fixed_point(emit: Emitter, scale: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Return a multiplier and shift of `braid.requantize` that are an f32 scale without error.

    They are the scale's own 24 bits and its exponent. Scales below 2^-39 are taken for 0, to
    which they round every i32; from 2^23 on every number but 0 is out of range anyway.
    """
    bits = emit.bitcast(scale, i32)

    def number(value: int) -> SSAValue:
        return emit.number(value, bits)

    mask = number((1 << _MANTISSA_BITS) - 1)
    exponent = emit.apply("shift_right", bits, number(_MANTISSA_BITS))
    exponent = emit.apply("and", exponent, number(255))
    mantissa = emit.apply("or", emit.apply("and", bits, mask), number(1 << _MANTISSA_BITS))
    shift = emit.apply("sub", number(_BIAS + _MANTISSA_BITS), exponent)
    is_large = emit.apply("lt", shift, number(1))
    size = emit.apply("select", is_large, number((1 << 31) - 1), mantissa)
    is_negative = emit.apply("lt", bits, number(0))
    multiplier = emit.apply("select", is_negative, emit.apply("neg", size), size)
    shift = emit.apply("minimum", emit.apply("maximum", shift, number(1)), number(_MOST_SHIFT))
    return multiplier, shift


def quotient(emit: Emitter, scale: SSAValue, other: SSAValue) -> SSAValue:
    """Return the f32 scale that converts numbers of one scale into another."""
    assert element_type_of(scale) == f32, "scales are f32"
    return emit.apply("div", scale, other)
