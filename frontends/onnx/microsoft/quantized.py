"""Ops on 8-bit integers with scales and zero points: `QLinearAdd` and others."""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, fits
from braid.dialects.braid.dtypes import f32, to_numpy
from braid.dialects.braid.quantization import DequantizeOp
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    cast,
    concat,
    matmul,
    reshape,
    scalar,
    swap_last,
    transpose,
    with_rank,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.opsets import MICROSOFT
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.microsoft.attributes import axis
from braid.frontends.onnx.ops.pooling import average_pool, pooled
from braid.frontends.onnx.ops.quantization import (
    centered,
    dynamically_quantized,
    no_zero,
    per_row,
    quantized,
)
from braid.support.sizes.operators import product_of


@importer("QuantizeLinear", "DequantizeLinear", domain=MICROSOFT)
def linear(b: Builder, node: Node) -> SSAValue:
    """Import an op as ONNX's of the same name, which has all its types."""
    rank = len(extents_of(node.input(0)))
    of_one = product_of(extents_of(node.input(1))) == 1
    if of_one:
        node.has("axis")  # one number is for all dims
    return node.call(
        node.op_type,
        node.input(0),
        node.input(1),
        node.optional(2),
        axis=None if of_one else axis(node, "axis", 1, rank),
    )


@importer("QLinearAdd", domain=MICROSOFT)
def quantized_sum(b: Builder, node: Node) -> SSAValue:
    """Import A + B; both operands are converted to the result's scale before they are added."""
    terms: list[SSAValue] = []
    for index in (0, 3):
        ratio = apply(b, "div", _one(b, node, index + 1), _one(b, node, 6))
        value = cast(b, _centered(b, node, index), f32)
        terms.append(apply(b, "mul", value, ratio))
    return _rounded(b, node, apply(b, "add", *terms), 7)


@importer("QLinearMul", domain=MICROSOFT)
def quantized_product(b: Builder, node: Node) -> SSAValue:
    """Import A · B, exact in i32 before it is scaled."""
    product = apply(b, "mul", _centered(b, node, 0), _centered(b, node, 3))
    scale = apply(b, "mul", _one(b, node, 1), _one(b, node, 4))
    ratio = apply(b, "div", scale, _one(b, node, 6))
    return _rounded(b, node, apply(b, "mul", cast(b, product, f32), ratio), 7)


@importer("QLinearLeakyRelu", domain=MICROSOFT)
def quantized_leaky_relu(b: Builder, node: Node) -> SSAValue:
    """Import LeakyRelu of the real numbers."""
    alpha = node.number("alpha", 0.01)
    return _quantized(b, node, node.call("LeakyRelu", _real(b, node, 0), alpha=alpha), 3)


@importer("QLinearSigmoid", domain=MICROSOFT)
def quantized_sigmoid(b: Builder, node: Node) -> SSAValue:
    """Import Sigmoid of the real numbers."""
    return _quantized(b, node, node.call("Sigmoid", _real(b, node, 0)), 3)


_SOFTMAX_OF_ONE_DIM = 13
"""The first opset with Softmax along one dim, not along all dims from `axis` on."""


@importer("QLinearSoftmax", domain=MICROSOFT)
def quantized_softmax(b: Builder, node: Node) -> SSAValue:
    """Import Softmax of the real numbers, as the opset `opset` defines it."""
    x = _real(b, node, 0)
    shape = extents_of(x)
    one_dim = node.integer("opset") >= _SOFTMAX_OF_ONE_DIM
    dim = axis(node, "axis", -1, len(shape))
    if one_dim:
        return _quantized(b, node, node.call("Softmax", x, axis=dim), 3)
    flat = reshape(b, x, [product_of(shape[:dim]), product_of(shape[dim:])])
    return _quantized(b, node, reshape(b, node.call("Softmax", flat), shape), 3)


@importer("QLinearConcat", domain=MICROSOFT)
def quantized_concat(b: Builder, node: Node) -> SSAValue:
    """Import a concatenation of tensors that have a scale and a zero point each."""
    if len(node.inputs) % 3 != 2:
        node.fail(
            f"it has {len(node.inputs)} inputs, expected a scale and a zero point, and three for "
            "each tensor"
        )
    reals = [_real(b, node, index) for index in range(2, len(node.inputs), 3)]
    dim = axis(node, "axis", None, len(extents_of(reals[0])))
    return _quantized(b, node, concat(b, reals, dim), 0)


@importer("QLinearGlobalAveragePool", domain=MICROSOFT)
def quantized_global_average(b: Builder, node: Node) -> SSAValue:
    """Import the mean over all spatial dims.

    Channels are second, or last with `channels_last`.
    """
    x = _channels_first(b, node, _real(b, node, 0))
    return _quantized(b, node, _channels_back(b, node, node.call("GlobalAveragePool", x)), 3)


@importer("QLinearAveragePool", domain=MICROSOFT)
def quantized_average(b: Builder, node: Node) -> SSAValue:
    """Import AveragePool of the real numbers.

    Padding that counts includes the padding that `ceil_mode` adds.
    """
    quantization = node.inputs[3:]
    node.inputs = (_channels_first(b, node, _real(b, node, 0)),)
    if node.integer("count_include_pad", 0):
        total, _, kernel = pooled(b, node, "add")
        mean = apply(b, "mul", total, scalar(b, 1 / math.prod(kernel), total))
    else:
        average = average_pool(b, node)
        assert isinstance(average, SSAValue)
        mean = average
    node.inputs = (node.inputs[0], None, None, *quantization)
    return _quantized(b, node, _channels_back(b, node, mean), 3)


@importer("QLinearWhere", domain=MICROSOFT)
def quantized_where(b: Builder, node: Node) -> SSAValue:
    """Import the elements of one of two tensors, each converted to the scale of the result."""
    chosen = apply(b, "select", node.input(0), _real(b, node, 1), _real(b, node, 4))
    return _quantized(b, node, chosen, 7)


@importer("MatMulIntegerToFloat", domain=MICROSOFT)
def integer_matmul_to_float(b: Builder, node: Node) -> SSAValue:
    """Import (A - zero point) · (B - zero point), scaled to real numbers, plus a bias."""
    _require_columns(node, 1, (3, 5))
    scale = apply(b, "mul", _one(b, node, 2), cast(b, node.input(3), f32))
    lhs = centered(b, node.input(0), per_row(b, node.optional(4)))
    product = matmul(b, lhs, centered(b, node.input(1), node.optional(5)))
    result = cast(b, as_real(b, product, scale), element_type_of(node.input(2)))
    return result if (bias := node.optional(6)) is None else apply(b, "add", result, bias)


@importer("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_matmul(b: Builder, node: Node) -> SSAValue:
    """Import A · B + bias in real numbers.

    A is quantized by its range, and B is given as quantized.
    """
    _require_columns(node, 1, (2, 3))
    lhs, scale, zero = dynamically_quantized(b, node.input(0))
    product = matmul(b, centered(b, lhs, zero), centered(b, node.input(1), node.optional(3)))
    result = as_real(b, product, apply(b, "mul", scale, node.input(2)))
    return result if (bias := node.optional(4)) is None else apply(b, "add", result, bias)


@importer("QGemm", domain=MICROSOFT)
def quantized_gemm(b: Builder, node: Node) -> SSAValue:
    """Import alpha · A · B + C, where C has the scale of the product; real without a scale of Y."""
    for index in (0, 3):
        if len(extents_of(node.input(index))) != 2:
            node.fail(
                f"input {index} has shape {list(extents_of(node.input(index)))}, expected 2 dims"
            )
    if (node.optional(7) is None) != (node.optional(8) is None):
        node.fail("of inputs 7 ('y_scale') and 8 ('y_zero_point') only one is given")
    lhs = centered(b, node.input(0), node.input(2))
    lhs = swap_last(b, lhs) if node.integer("transA", 0) else lhs
    if node.integer("transB", 0):  # zero points are per column of B as it is multiplied
        rhs = swap_last(b, centered(b, node.input(3), _column(b, node.input(5))))
    else:
        rhs = centered(b, node.input(3), node.input(5))
    product = matmul(b, lhs, rhs)
    if (bias := node.optional(6)) is not None:
        product = apply(b, "add", product, bias)
    scale = apply(b, "mul", _one(b, node, 1), node.input(4))
    scale = apply(b, "mul", scale, scalar(b, node.number("alpha", 1.0), scale))
    if node.optional(7) is None:
        return as_real(b, product, scale)
    return _rounded(b, node, as_real(b, product, apply(b, "div", scale, _one(b, node, 7))), 8)


def _require_columns(node: Node, weight: int, indices: Sequence[int]) -> None:
    """Raise BraidError unless inputs have one number, or one for each column of a weight."""
    shape = extents_of(node.input(weight))
    wanted = (
        [shape[-1:], (*shape[:-2], 1, shape[-1])]
        if len(shape) == 2
        else [(*shape[:-2], 1, shape[-1])]
    )
    for index in indices:
        value = node.optional(index)
        if value is None or extents_of(value) in ((), (1,)):
            continue
        if not any(fits(extents_of(value), each) for each in wanted):
            node.fail(
                f"input {index} has shape {list(extents_of(value))}, expected one number or "
                f"{' or '.join(str(list(each)) for each in wanted)}"
            )


def _column(b: Builder, value: SSAValue) -> SSAValue:
    """Return a number for each row, as a column."""
    return reshape(b, value, [product_of(extents_of(value)), 1])


def _one(b: Builder, node: Node, index: int) -> SSAValue:
    """Return input `index`, which must be one number, as f32 of rank 0."""
    value = node.input(index)
    node.require_scalar(index)
    return cast(b, reshape(b, value, []), f32)


def _zero(b: Builder, node: Node, index: int) -> SSAValue | None:
    """Return zero point `index` with rank 0, None without one.

    Raises BraidError if it is not one number.
    """
    node.require_scalar(index)
    value = node.optional(index)
    return None if value is None else reshape(b, value, [])


def _centered(b: Builder, node: Node, index: int) -> SSAValue:
    """Return input `index` minus its zero point, the input after the next, in i32."""
    return centered(b, node.input(index), _zero(b, node, index + 2))


def _real(b: Builder, node: Node, index: int) -> SSAValue:
    """Return the real numbers of input `index`.

    The next two inputs are its scale and its zero point.
    """
    scale, zero = _one(b, node, index + 1), _zero(b, node, index + 2)
    if zero is not None and element_type_of(zero) != element_type_of(node.input(index)):
        node.fail(f"inputs {index} and {index + 2} have different element types")
    return node.call("DequantizeLinear", node.input(index), scale, zero)


def _quantized(b: Builder, node: Node, value: SSAValue, index: int) -> SSAValue:
    """Return real numbers in the scale of input `index` and the zero point after it."""
    scale, zero = _one(b, node, index), _zero(b, node, index + 1)
    if zero is None:
        zero = b.constant(np.zeros([], to_numpy(node.bound_types["T"])))
    return node.call("QuantizeLinear", value, scale, zero)


def _rounded(b: Builder, node: Node, value: SSAValue, index: int) -> SSAValue:
    """Return `value`, scaled to the result, plus zero point `index`, rounded and in range.

    Halves are rounded to even after the zero point is added, as ONNX Runtime does.
    """
    zero = _zero(b, node, index)
    if zero is not None:
        value = apply(b, "add", value, cast(b, zero, f32))
    kind = element_type_of(node.input(0) if zero is None else zero)
    return quantized(b, value, None, kind)


def as_real(b: Builder, product: SSAValue, scale: SSAValue) -> SSAValue:
    """Return an i32 product of this scale as real numbers."""
    factor = with_rank(b, scale, len(extents_of(product)))
    return b.emit(DequantizeOp.on(product, factor, no_zero(b, i32, product)))


def _channels_first(b: Builder, node: Node, x: SSAValue) -> SSAValue:
    rank = len(extents_of(x))
    if rank < 3:
        node.fail(f"input 0 has shape {list(extents_of(x))}, expected at least 3 dims")
    if not node.integer("channels_last", 0):
        return x
    return transpose(b, x, [0, rank - 1, *range(1, rank - 1)])


def _channels_back(b: Builder, node: Node, x: SSAValue) -> SSAValue:
    if not node.integer("channels_last", 0):
        return x
    return transpose(b, x, [0, *range(2, len(extents_of(x))), 1])
