"""Integer arithmetic with scales and zero points."""

import ml_dtypes
import numpy as np
from onnx import TensorProto
from xdsl.dialects.builtin import i8, i32
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import f32, from_numpy, is_float, is_stored_only, to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.narrow_numbers import decoded, encoded
from braid.dialects.braid.quantization import DequantizeOp, QuantizeOp, is_quantized
from braid.dialects.braid.size_evaluation import fixed_shape
from braid.dialects.braid.size_facts import may_equal
from braid.dialects.braid.size_limits import require_table
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    cast,
    matmul,
    normalized,
    reduce,
    reshape,
    scalar,
    with_rank,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.convolution import convolve, with_channel_bias
from braid.support.sizes.operators import product_of


@importer("QuantizeLinear")
def quantize_linear(b: Builder, node: Node) -> SSAValue:
    """Import round(x / scale) + zero point, kept in the range of the type."""
    x, scale, zero = node.input(0), node.input(1), node.optional(2)
    wanted = _wanted_type(node)
    kind = wanted or (from_numpy(np.uint8) if zero is None else element_type_of(zero))
    if zero is not None and kind != element_type_of(zero):
        node.fail(f"output_dtype is {kind}, but the zero point is {element_type_of(zero)}")
    if node.integer("precision", 0) not in (TensorProto.UNDEFINED, TensorProto.FLOAT):
        node.unsupported("precision is not FLOAT, in which braid divides")
    saturate = bool(node.integer("saturate", 1))
    wide = cast(b, x, f32)
    scale = _along_axis(b, node, cast(b, scale, f32), x)
    if not is_quantized(kind):
        offset = None if zero is None else _along_axis(b, node, decoded(b, zero), x)
        return quantized(b, apply(b, "div", wide, scale), offset, kind, saturate=saturate)
    offset = no_zero(b, kind, x) if zero is None else _along_axis(b, node, zero, x)
    return b.emit(QuantizeOp.on(wide, scale, offset))


@importer("DequantizeLinear")
def dequantize_linear(b: Builder, node: Node) -> SSAValue:
    """Import (x - zero point) · scale."""
    x, scale, zero = node.input(0), node.input(1), node.optional(2)
    kind, result = element_type_of(x), _wanted_type(node) or element_type_of(scale)
    wide = cast(b, _along_axis(b, node, scale, x), f32)
    if is_quantized(kind) or kind == i32:
        offset = no_zero(b, kind, x) if zero is None else _along_axis(b, node, zero, x)
        real = DequantizeOp.on(x, wide, offset)
        # Quantized weights keep their form, however small they are.
        emit = b.insert_one if product_of(extents_of(x)) != 1 else b.emit
        return cast(b, emit(real), result)
    offset = None if zero is None else _along_axis(b, node, decoded(b, zero), x)
    value = centered(b, decoded(b, x), offset)
    if not is_float(element_type_of(value)):
        # 8 bits have room for differences of 4-bit numbers, which integer products take then.
        narrow = b.insert_one(elementwise("cast", value, element_type=i8))
        real = b.insert_one(DequantizeOp.on(narrow, wide, no_zero(b, i8, x)))
        return cast(b, real, result)
    return cast(b, apply(b, "mul", cast(b, value, f32), wide), result)


@importer("DynamicQuantizeLinear")
def dynamic_quantize_linear(b: Builder, node: Node) -> list[SSAValue]:
    """Quantize x to 8 bits by its range extended to 0, and return scale and zero point too.

    A range of no width has the scale that one of width 1 has, as in ONNX's reference evaluator:
    by the formulas of the standard the scale is 0, which divides 0 by 0.
    """
    return dynamically_quantized(b, node.input(0))


def dynamically_quantized(b: Builder, x: SSAValue) -> list[SSAValue]:
    """Return x in 8 bits, its scale and its zero point; see `dynamic_quantize_linear`."""
    dims, zero = list(range(len(extents_of(x)))), scalar(b, 0, x)
    low, high = (apply(b, kind, reduce(b, kind, x, dims), zero) for kind in ("minimum", "maximum"))
    width = apply(b, "sub", high, low)
    width = apply(b, "select", apply(b, "eq", high, low), scalar(b, 1, x), width)
    scale = apply(b, "div", width, scalar(b, 255, x))
    place = apply(b, "sub", zero, apply(b, "div", low, scale))
    offset = quantized(b, place, None, from_numpy(np.uint8))
    return [b.emit(QuantizeOp.on(x, scale, offset)), reshape(b, scale, []), reshape(b, offset, [])]


def _wanted_type(node: Node) -> Attribute | None:
    """Return the element type that the node's attributes specify, None if they do not."""
    wanted = node.integer("output_dtype", TensorProto.UNDEFINED)
    return from_numpy(node.dtype("output_dtype")) if wanted != TensorProto.UNDEFINED else None


def no_zero(b: Builder, kind: Attribute, like: SSAValue) -> SSAValue:
    """Return the zero point 0, of this type, for all of `like`."""
    return b.constant(np.zeros([1] * len(extents_of(like)), to_numpy(kind)))


def _along_axis(b: Builder, node: Node, value: SSAValue, x: SSAValue) -> SSAValue:
    """Return a scale or zero point in a shape that can be repeated to that of x.

    A scalar applies to all of x, a vector to the slices along `axis`, and a tensor with the rank of
    x to blocks of `block_size` along `axis`.
    """
    shape, target = extents_of(value), extents_of(x)
    axis, size = node.integer("axis", 1), node.integer("block_size", 0)
    if product_of(shape) == 1:
        return reshape(b, value, [1] * len(target))
    axis = normalized(axis, len(target))
    if len(shape) == 1:
        if not may_equal(shape[0], target[axis]):
            node.fail(f"a scale or zero point has shape {list(shape)}, expected [{target[axis]}]")
        return reshape(b, value, [shape[0] if dim == axis else 1 for dim in range(len(target))])
    shape, target = fixed_shape(value), fixed_shape(x)
    extent = target[axis]
    if len(shape) != len(target) or not shape[axis]:
        node.fail(f"a scale or zero point has shape {list(shape)}, the input {list(target)}")
    size = size or -(-extent // shape[axis])
    blocks = [-(-extent // size) if dim == axis else n for dim, n in enumerate(target)]
    if size < 0 or list(shape) != blocks:
        node.fail(
            f"a scale or zero point has shape {list(shape)}, expected {blocks} for blocks of {size}"
        )
    require_table(extent, "the block of each element")
    return b.emit(GatherOp.get(value, b.constant(np.arange(extent) // size), axis))


def centered(b: Builder, x: SSAValue, zero: SSAValue | None) -> SSAValue:
    """Return x - zero point, in i32, or in the type of x if that is a float type."""
    if is_float(element_type := element_type_of(x)):
        return x if zero is None else apply(b, "sub", x, cast(b, zero, element_type))
    # These ops are inserted, not folded: quantized weights keep their form.
    wide = b.insert_one(elementwise("cast", x, element_type=i32))
    if zero is None:
        return wide
    aligned = with_rank(b, zero, len(extents_of(x)))
    return b.insert_one(elementwise("sub", wide, cast(b, aligned, i32)))


def quantized(
    b: Builder, x: SSAValue, zero: SSAValue | None, kind: Attribute, *, saturate: bool = True
) -> SSAValue:
    """Return round(x) + zero point, kept in the range of `kind`; for floats, with `saturate`."""
    if is_float(kind):
        value = x if zero is None else apply(b, "add", x, cast(b, zero, f32))
        return encoded(b, value, kind, saturate=saturate)
    limits = ml_dtypes.iinfo(to_numpy(kind))
    value = apply(b, "round", x)
    if zero is not None:
        value = apply(b, "add", value, cast(b, zero, f32))
    value = apply(b, "maximum", value, scalar(b, limits.min, value))
    value = apply(b, "minimum", value, scalar(b, limits.max, value))
    whole = cast(b, value, i32)
    return encoded(b, whole, kind) if is_stored_only(kind) else cast(b, whole, kind)


@importer("MatMulInteger")
def integer_matmul(b: Builder, node: Node) -> SSAValue:
    """Import a product of centered operands, in i32; zero points may be per row and column."""
    rows, columns = node.optional(2), node.optional(3)
    lhs = centered(b, node.input(0), per_row(b, rows))
    return matmul(b, lhs, centered(b, node.input(1), columns))


def per_row(b: Builder, zero: SSAValue | None) -> SSAValue | None:
    """Return a vector of zero points, one for each row, as a column; return other shapes
    unchanged."""
    if zero is None or len(extents_of(zero)) != 1:
        return zero
    return reshape(b, zero, [*extents_of(zero), 1])


@importer("QLinearMatMul")
def quantized_matmul(b: Builder, node: Node) -> SSAValue:
    """Import a product of quantized matrices.

    The inputs are a with its scale and zero point, b with its own, and the scale and zero point of
    the result.
    """
    lhs = centered(b, node.input(0), per_row(b, node.input(2)))
    product = matmul(b, lhs, centered(b, node.input(3), node.input(5)))
    scale = apply(b, "mul", *(cast(b, node.input(i), f32) for i in (1, 4)))
    return _requantized(b, node, product, scale, 6)


@importer("ConvInteger")
def integer_convolution(b: Builder, node: Node) -> SSAValue:
    """Import a convolution of centered operands, in i32."""
    x = centered(b, node.input(0), node.optional(2))
    return convolve(b, node, x, centered(b, node.input(1), _per_filter(b, node, 3, 1)))


@importer("QLinearConv")
def quantized_convolution(b: Builder, node: Node) -> SSAValue:
    """Import a quantized convolution.

    The inputs are x with its scale and zero point, w with its own, those of the result, and a bias
    in i32.
    """
    x = centered(b, node.input(0), node.input(2))
    product = convolve(b, node, x, centered(b, node.input(3), _per_filter(b, node, 5, 3)))
    rank = len(extents_of(product))
    product = with_channel_bias(b, product, node.optional(8))
    scales = [cast(b, node.input(i), f32) for i in (1, 4)]
    count = product_of(extents_of(scales[1]))
    scales[1] = reshape(b, scales[1], [1, count, *[1] * (rank - 2)])
    return _requantized(b, node, product, apply(b, "mul", *scales), 6)


def _per_filter(b: Builder, node: Node, index: int, weight: int) -> SSAValue | None:
    """Return a zero point, or one per filter, in a shape that repeats to the weight's."""
    zero = node.optional(index)
    if zero is None:
        return None
    rank = len(extents_of(node.input(weight)))
    return reshape(b, zero, [product_of(extents_of(zero)), *[1] * (rank - 1)])


def _requantized(
    b: Builder, node: Node, product: SSAValue, scale: SSAValue, first: int
) -> SSAValue:
    """Return an i32 product of scale `scale` in the scale and zero point of the result.

    These are input `first` and the next.

    The quotient of the scales is that of the product, as the standard rounds it.
    """
    rank = len(extents_of(product))
    zero = with_rank(b, node.input(first + 1), rank)
    factor = with_rank(b, apply(b, "div", scale, cast(b, node.input(first), f32)), rank)
    value = b.emit(DequantizeOp.on(product, factor, no_zero(b, i32, product)))
    if not is_quantized(element_type_of(zero)):
        return quantized(b, value, zero, element_type_of(zero))
    return b.emit(QuantizeOp.on(value, scalar(b, 1, value), zero))
