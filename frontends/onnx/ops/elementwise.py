"""Elementwise arithmetic, comparison, logic and conversion."""

from functools import reduce

from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import from_numpy, i1, is_float, is_stored_only
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.narrow_numbers import decoded, encoded
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    cast,
    normalized,
    reshape,
    scalar,
    widened,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import Importer, importer, registered_importer

_DIRECT = {
    "Abs": "abs",
    "Acos": "acos",
    "Acosh": "acosh",
    "Add": "add",
    "And": "and",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "BitwiseAnd": "and",
    "BitwiseNot": "not",
    "BitwiseOr": "or",
    "BitwiseXor": "xor",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Div": "div",
    "Equal": "eq",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "Greater": "gt",
    "GreaterOrEqual": "ge",
    "IsNaN": "isnan",
    "Less": "lt",
    "LessOrEqual": "le",
    "Log": "log",
    "Mul": "mul",
    "Neg": "neg",
    "Not": "not",
    "Or": "or",
    "Reciprocal": "reciprocal",
    "Round": "round",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Sub": "sub",
    "Tan": "tan",
    "Tanh": "tanh",
    "Where": "select",
    "Xor": "xor",
}
"""ONNX ops that are rows of the elementwise table."""


def _direct(name: str) -> Importer:
    def build(b: Builder, node: Node) -> SSAValue:
        return apply(b, name, *(node.input(i) for i in range(len(node.inputs))))

    return build


_ALIGNED_FROM_THE_END = {
    *("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Sub", "Xor"),
}
"""Ops whose operands were aligned otherwise before opset 7."""

for _op_type, _name in _DIRECT.items():
    importer(_op_type, since=7 if _op_type in _ALIGNED_FROM_THE_END else 1)(_direct(_name))


@importer("Sum", "Max", "Min")
def variadic(b: Builder, node: Node) -> SSAValue:
    """Import any number of operands, combined from the left."""
    name = {"Sum": "add", "Max": "maximum", "Min": "minimum"}[node.op_type]
    values = [node.input(i) for i in range(len(node.inputs))]
    return reduce(lambda left, right: apply(b, name, left, right), values)


@importer("Mean")
def mean_of_operands(b: Builder, node: Node) -> SSAValue:
    """Sum of the operands divided by their number."""
    values = [widened(b, node.input(i)) for i in range(len(node.inputs))]
    total = reduce(lambda left, right: apply(b, "add", left, right), values)
    average = apply(b, "mul", total, scalar(b, 1 / len(values), total))
    return cast(b, average, element_type_of(node.input(0)))


@importer("Pow", since=7)
def power(b: Builder, node: Node) -> SSAValue:
    """Import `Pow`, with the exponent in the type of the base; squares and cubes are products."""
    base, exponent = node.input(0), node.input(1)
    known = b.known(exponent)
    repeats = known is None or known.size != 1 or known.ndim > len(extents_of(base))
    if known is not None and not repeats and known.item() in (2, 3):
        square = apply(b, "mul", base, base)
        return square if known.item() == 2 else apply(b, "mul", square, base)
    element_type = element_type_of(base)
    if is_float(element_type_of(exponent)) and not is_float(element_type):
        wide = apply(b, "pow", cast(b, base, element_type_of(exponent)), exponent)
        return cast(b, wide, element_type)
    return apply(b, "pow", base, cast(b, exponent, element_type))


@importer("Mod")
def modulo(b: Builder, node: Node) -> SSAValue:
    """Import `Mod`: with `fmod` the sign is the dividend's, without it the divisor's."""
    dividend, divisor = node.input(0), node.input(1)
    rest = apply(b, "rem", dividend, divisor)
    if node.integer("fmod", 0):
        return rest
    zero = scalar(b, 0, rest)
    differs = apply(b, "ne", apply(b, "lt", rest, zero), apply(b, "lt", divisor, zero))
    wrong = apply(b, "and", differs, apply(b, "ne", rest, zero))
    return apply(b, "select", wrong, apply(b, "add", rest, divisor), rest)


@importer("BitShift")
def bit_shift(b: Builder, node: Node) -> SSAValue:
    """Import a shift to the left or right."""
    direction = {"LEFT": "shift_left", "RIGHT": "shift_right"}[node.text("direction")]
    return apply(b, direction, node.input(0), node.input(1))


@importer("IsInf")
def is_infinite(b: Builder, node: Node) -> SSAValue:
    """Import whether elements are infinities of the signs asked for."""
    x = node.input(0)
    zero, found = scalar(b, 0, x), apply(b, "isinf", x)
    if not node.integer("detect_negative", 1):
        found = apply(b, "and", found, apply(b, "gt", x, zero))
    if not node.integer("detect_positive", 1):
        found = apply(b, "and", found, apply(b, "lt", x, zero))
    return found


@importer("Cast", since=6)
def cast_to(b: Builder, node: Node) -> SSAValue:
    """Import a conversion; a number is true where it is not 0."""
    return _converted(b, node, from_numpy(node.dtype("to")))


@importer("CastLike")
def cast_like(b: Builder, node: Node) -> SSAValue:
    """Import a conversion to the element type of the second input."""
    return _converted(b, node, element_type_of(node.input(1)))


def _converted(b: Builder, node: Node, element_type: Attribute) -> SSAValue:
    """Return the input in another type, rounded by the node's attribute if that is narrow."""
    x = node.input(0)
    if element_type_of(x) == element_type:
        return x
    if not is_stored_only(element_type):
        return convert(b, decoded(b, x), element_type)
    return encoded(
        b,
        decoded(b, x),
        element_type,
        saturate=bool(node.integer("saturate", 1)),
        rounding=node.text("round_mode", "up"),
    )


@importer("BitCast")
def bit_cast(b: Builder, node: Node) -> SSAValue:
    """Import the same bits as another element type of the same size."""
    return b.emit(elementwise("bitcast", node.input(0), element_type=from_numpy(node.dtype("to"))))


def convert(b: Builder, x: SSAValue, element_type: Attribute) -> SSAValue:
    """Return ONNX's conversion between element types."""
    if element_type == i1 and element_type_of(x) != i1:
        return apply(b, "ne", x, scalar(b, 0, x))
    return cast(b, x, element_type)


@importer("Identity")
def identity(_: Builder, node: Node) -> SSAValue:
    """Return the input itself."""
    return node.input(0)


@importer("Clip")
def clip(b: Builder, node: Node) -> SSAValue:
    """Import `Clip`, whose bounds are attributes before opset 11, inputs since."""
    value = node.input(0)
    bounds = [node.optional(1), node.optional(2)]
    for index in range(1, len(node.inputs)):
        node.require_scalar(index)
    if node.opset < 11:
        bounds = [
            scalar(b, node.number(name), value) if node.has(name) else None
            for name in ("min", "max")
        ]
    for name, bound in zip(("maximum", "minimum"), bounds, strict=True):
        if bound is not None:
            value = apply(b, name, value, bound)
    return value


_ALIGNED_SINCE = 7


@importer("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")
def aligned_by_attribute(b: Builder, node: Node) -> SSAValue:
    """Import an op whose second operand has the dims of the first from `axis` on."""
    first, second = node.input(0), node.input(1)
    if node.integer("broadcast", 0) and node.has("axis"):
        axis, shape = normalized(node.integer("axis"), len(extents_of(first))), extents_of(second)
        behind = len(extents_of(first)) - axis - len(shape)
        node.inputs = (first, reshape(b, second, [*shape, *[1] * behind]))
    return _in_new_form(b, node)


@importer("PRelu")
def slopes_by_channel(b: Builder, node: Node) -> SSAValue:
    """Import `PRelu`, where a vector of slopes has one per channel."""
    x, slopes = node.input(0), node.input(1)
    if len(extents_of(slopes)) == 1 and len(extents_of(x)) > 1:
        behind = len(extents_of(x)) - 2
        node.inputs = (x, reshape(b, slopes, [*extents_of(slopes), *[1] * behind]))
    return _in_new_form(b, node)


def _in_new_form(b: Builder, node: Node) -> SSAValue:
    build = registered_importer(node.op_type, _ALIGNED_SINCE)
    assert build is not None
    result = build(b, node)
    assert isinstance(result, SSAValue)
    return result
