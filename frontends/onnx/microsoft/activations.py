"""Activation functions, fused with the ops before them: `FastGelu`, `BiasGelu` and others."""

from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.size_facts import may_equal
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import apply, cast, scalar, slice_dim, widened
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.opsets import MICROSOFT
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.activation import sigmoid


@importer("Gelu", "BiasGelu", domain=MICROSOFT)
def gelu(b: Builder, node: Node) -> SSAValue:
    """Import Gelu by erf, of A + B where there is a B."""
    x = _biased(b, node)
    return cast(b, node.call("Gelu", x), element_type_of(node.input(0)))


@importer("FastGelu", domain=MICROSOFT)
def fast_gelu(b: Builder, node: Node) -> SSAValue:
    """Import Gelu by the approximation with tanh, of X + bias where there is a bias."""
    x = _biased(b, node)
    return cast(b, node.call("Gelu", x, approximate="tanh"), element_type_of(node.input(0)))


@importer("QuickGelu", domain=MICROSOFT)
def quick_gelu(b: Builder, node: Node) -> SSAValue:
    """Import `QuickGelu` as x · sigmoid(alpha · x)."""
    x, alpha = widened(b, node.input(0)), node.number("alpha", 1.702)
    gate = sigmoid(b, apply(b, "mul", x, scalar(b, alpha, x)))
    return cast(b, apply(b, "mul", x, gate), element_type_of(node.input(0)))


@importer("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(b: Builder, node: Node) -> SSAValue:
    """Import the first half of X + bias along the last dim, times Gelu of the second half."""
    x = _biased(b, node)
    last = extents_of(x)[-1]
    if not isinstance(last, int):
        node.unsupported("the last dim is open")
    if last % 2:
        node.fail(f"the last dim is {last}, expected an even one")
    dim, half = len(extents_of(x)) - 1, last // 2
    left, right = (slice_dim(b, x, dim, start, half) for start in (0, half))
    product = apply(b, "mul", left, node.call("Gelu", right))
    return cast(b, product, element_type_of(node.input(0)))


def _biased(b: Builder, node: Node) -> SSAValue:
    """Return input 0 plus the vector of input 1 where that is given; in f32 at least."""
    x, bias = node.input(0), node.optional(1)
    if bias is None:
        return widened(b, x)
    shape, length = extents_of(x), extents_of(bias)
    if len(length) != 1 or not shape or not may_equal(length[0], shape[-1]):
        node.fail(
            f"input 1 has shape {list(length)}, expected the last dim of input 0, {list(shape)}"
        )
    return apply(b, "add", widened(b, x), widened(b, bias))
