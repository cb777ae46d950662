"""Forms of ops before opset 7, where an attribute said how the second operand is repeated."""

from xdsl.ir import SSAValue

from braid.dialects.braid.base import shape_of
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.expressions import normalized, reshape
from braid.frontends.onnx.node import Node
from braid.frontends.onnx.registry import find_importer, importer

_ALIGNED_SINCE = 7


@importer("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")
def aligned_by_attribute(b: Builder, node: Node) -> SSAValue:
    """The dims of the second operand are those of the first from `axis` on."""
    first, second = node.input(0), node.input(1)
    if node.integer("broadcast", 0) and node.has("axis"):
        axis, shape = normalized(node.integer("axis"), len(shape_of(first))), shape_of(second)
        behind = len(shape_of(first)) - axis - len(shape)
        node.inputs = (first, reshape(b, second, [*shape, *[1] * behind]))
    return _in_new_form(b, node)


@importer("PRelu")
def slopes_by_channel(b: Builder, node: Node) -> SSAValue:
    """A vector of slopes is one per channel."""
    x, slopes = node.input(0), node.input(1)
    if len(shape_of(slopes)) == 1 and len(shape_of(x)) > 1:
        behind = len(shape_of(x)) - 2
        node.inputs = (x, reshape(b, slopes, [*shape_of(slopes), *[1] * behind]))
    return _in_new_form(b, node)


def _in_new_form(b: Builder, node: Node) -> SSAValue:
    build = find_importer(node.op_type, _ALIGNED_SINCE)
    assert build is not None
    result = build(b, node)
    assert isinstance(result, SSAValue)
    return result
