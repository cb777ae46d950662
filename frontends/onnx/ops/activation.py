"""Activation functions."""

import math
from collections.abc import Callable

from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import bytes_of, f32, is_float
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import apply, cast, scalar, widened
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import Importer, importer


def computed_in_f32(build: Callable[[Builder, Node], SSAValue]) -> Importer:
    """Return an importer that computes in f32.

    It is for functions of several steps, or of attributes that 16 bits would round: of 16-bit
    floats only the result is rounded.
    """

    def build_wide(b: Builder, node: Node) -> SSAValue:
        element_type = element_type_of(node.input(0))
        if not is_float(element_type) or bytes_of(element_type) >= bytes_of(f32):
            return build(b, node)
        node.inputs = (cast(b, node.input(0), f32), *node.inputs[1:])
        return cast(b, build(b, node), element_type)

    return build_wide


@importer("Relu")
def relu(b: Builder, node: Node) -> SSAValue:
    """Import `Relu` as max(x, 0)."""
    x = node.input(0)
    return apply(b, "maximum", x, scalar(b, 0, x))


@importer("LeakyRelu")
@computed_in_f32
def leaky_relu(b: Builder, node: Node) -> SSAValue:
    """Import `LeakyRelu` as x where it is positive, alpha · x elsewhere."""
    x = node.input(0)
    return where_negative(b, x, apply(b, "mul", x, scalar(b, node.number("alpha", 0.01), x)), x)


@importer("PRelu", since=7)
def parametric_relu(b: Builder, node: Node) -> SSAValue:
    """Import LeakyRelu with a tensor of slopes."""
    x = node.input(0)
    return where_negative(b, x, apply(b, "mul", x, node.input(1)), x)


@importer("ThresholdedRelu")
@computed_in_f32
def thresholded_relu(b: Builder, node: Node) -> SSAValue:
    """Import `ThresholdedRelu` as x where it is above alpha, 0 elsewhere."""
    x = node.input(0)
    above = apply(b, "gt", x, scalar(b, node.number("alpha", 1.0), x))
    return apply(b, "select", above, x, scalar(b, 0, x))


@importer("Elu")
@computed_in_f32
def elu(b: Builder, node: Node) -> SSAValue:
    """Import `Elu` as x where it is positive, alpha · (exp(x) - 1) elsewhere."""
    x = node.input(0)
    return where_negative(b, x, scaled_exp(b, x, node.number("alpha", 1.0)), x)


@importer("Selu", since=6)
@computed_in_f32
def selu(b: Builder, node: Node) -> SSAValue:
    """Import `Selu` as gamma · Elu; the defaults are those of Klambauer et al. (2017)."""
    x = node.input(0)
    alpha, gamma = (
        node.number("alpha", 1.67326319217681884765625),
        node.number("gamma", 1.05070102214813232421875),
    )
    value = where_negative(b, x, scaled_exp(b, x, alpha), x)
    return apply(b, "mul", value, scalar(b, gamma, x))


@importer("Celu")
@computed_in_f32
def celu(b: Builder, node: Node) -> SSAValue:
    """Import `Celu` as x where it is positive, alpha · (exp(x / alpha) - 1) elsewhere."""
    x, alpha = node.input(0), node.number("alpha", 1.0)
    scaled = apply(b, "div", x, scalar(b, alpha, x))
    return where_negative(b, x, scaled_exp(b, scaled, alpha), x)


@importer("Sigmoid")
@computed_in_f32
def sigmoid_node(b: Builder, node: Node) -> SSAValue:
    """Import `Sigmoid` as 1 / (1 + exp(-x))."""
    return sigmoid(b, node.input(0))


@importer("Swish")
@computed_in_f32
def swish(b: Builder, node: Node) -> SSAValue:
    """Import `Swish` as x · sigmoid(alpha · x)."""
    x, alpha = node.input(0), node.number("alpha", 1.0)
    gate = x if alpha == 1 else apply(b, "mul", x, scalar(b, alpha, x))
    return apply(b, "mul", x, sigmoid(b, gate))


@importer("HardSigmoid")
def hard_sigmoid_node(b: Builder, node: Node) -> SSAValue:
    """Import `HardSigmoid` as alpha · x + beta, kept in [0, 1]."""
    return hard_sigmoid(b, node.input(0), node.number("alpha", 0.2), node.number("beta", 0.5))


@importer("HardSwish")
@computed_in_f32
def hard_swish(b: Builder, node: Node) -> SSAValue:
    """Import `HardSwish` as x · HardSigmoid(x) with alpha 1/6, beta 1/2."""
    x = node.input(0)
    return apply(b, "mul", x, hard_sigmoid(b, x, 1 / 6, 0.5))


@importer("Softplus")
@computed_in_f32
def softplus_node(b: Builder, node: Node) -> SSAValue:
    """Import `Softplus` as log(exp(x) + 1)."""
    return softplus(b, node.input(0))


@importer("Mish")
@computed_in_f32
def mish(b: Builder, node: Node) -> SSAValue:
    """Import `Mish` as x · tanh(softplus(x))."""
    x = node.input(0)
    return apply(b, "mul", x, apply(b, "tanh", softplus(b, x)))


@importer("Softsign")
def softsign(b: Builder, node: Node) -> SSAValue:
    """Import `Softsign` as x / (1 + |x|)."""
    x = node.input(0)
    return apply(b, "div", x, apply(b, "add", apply(b, "abs", x), scalar(b, 1, x)))


@importer("Shrink")
@computed_in_f32
def shrink(b: Builder, node: Node) -> SSAValue:
    """Import `Shrink` as x moved towards 0 by bias outside [-lambd, lambd], 0 inside."""
    x, lambd, bias = node.input(0), node.number("lambd", 0.5), node.number("bias", 0.0)
    zero = scalar(b, 0, x)
    below = apply(b, "lt", x, scalar(b, -lambd, x))
    above = apply(b, "gt", x, scalar(b, lambd, x))
    low, high = apply(b, "add", x, scalar(b, bias, x)), apply(b, "sub", x, scalar(b, bias, x))
    return apply(b, "select", below, low, apply(b, "select", above, high, zero))


@importer("Gelu")
@computed_in_f32
def gelu(b: Builder, node: Node) -> SSAValue:
    """Import `Gelu` as x · Phi(x), by erf or by the tanh approximation."""
    x = node.input(0)
    if node.text("approximate", "none") == "tanh":
        cube = apply(b, "mul", apply(b, "mul", x, x), x)
        inner = apply(b, "add", x, apply(b, "mul", cube, scalar(b, 0.044715, x)))
        curve = apply(b, "tanh", apply(b, "mul", inner, scalar(b, math.sqrt(2 / math.pi), x)))
    else:
        curve = apply(b, "erf", apply(b, "mul", x, scalar(b, math.sqrt(0.5), x)))
    half = apply(b, "mul", x, scalar(b, 0.5, x))
    return apply(b, "mul", half, apply(b, "add", curve, scalar(b, 1, x)))


def sigmoid(b: Builder, x: SSAValue) -> SSAValue:
    """Return 1 / (1 + exp(-x))."""
    denominator = apply(b, "add", apply(b, "exp", apply(b, "neg", x)), scalar(b, 1, x))
    return apply(b, "reciprocal", denominator)


def hard_sigmoid(b: Builder, x: SSAValue, alpha: float, beta: float) -> SSAValue:
    """Return alpha · x + beta, kept in [0, 1].

    For 16-bit floats it is computed in f32, so that alpha need not be rounded.
    """
    wide = widened(b, x)
    line = apply(b, "add", apply(b, "mul", wide, scalar(b, alpha, wide)), scalar(b, beta, wide))
    kept = apply(b, "minimum", apply(b, "maximum", line, scalar(b, 0, wide)), scalar(b, 1, wide))
    return cast(b, kept, element_type_of(x))


def softplus(b: Builder, x: SSAValue) -> SSAValue:
    """Return log(exp(x) + 1), as max(x, 0) + log(1 + exp(-|x|)), which cannot overflow."""
    decay = apply(b, "exp", apply(b, "neg", apply(b, "abs", x)))
    return apply(b, "add", apply(b, "maximum", x, scalar(b, 0, x)), _log_of_one_and(b, decay))


def _log_of_one_and(b: Builder, decay: SSAValue) -> SSAValue:
    """Return log(1 + decay) for 0 ≤ decay ≤ 1, to few units in the last place of small ones too.

    The sum is rounded to u, and log(1 + decay) = log(u) + log(1 + (decay - (u - 1)) / u), whose
    second part is decay - (u - 1) where it matters. Both differences are exact.
    """
    one = scalar(b, 1, decay)
    rounded = apply(b, "add", decay, one)
    lost = apply(b, "sub", decay, apply(b, "sub", rounded, one))
    return apply(b, "add", apply(b, "log", rounded), lost)


def where_negative(b: Builder, x: SSAValue, below: SSAValue, above: SSAValue) -> SSAValue:
    """Return `below` where x is negative, `above` elsewhere."""
    return apply(b, "select", apply(b, "lt", x, scalar(b, 0, x)), below, above)


def scaled_exp(b: Builder, x: SSAValue, alpha: float) -> SSAValue:
    """Return alpha · (exp(x) - 1)."""
    shifted = apply(b, "sub", apply(b, "exp", x), scalar(b, 1, x))
    return shifted if alpha == 1 else apply(b, "mul", shifted, scalar(b, alpha, x))
