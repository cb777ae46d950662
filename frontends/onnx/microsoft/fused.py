"""Products and convolutions with the ops that optimizers fuse into them: `FusedMatMul` and
others."""

from collections.abc import Mapping

from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of, fits
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    matmul,
    scalar,
    swap_last,
    transpose,
    with_extents,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.opsets import MICROSOFT
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.activation import sigmoid


@importer("FusedMatMul", "TransposeMatMul", domain=MICROSOFT)
def fused_matmul(b: Builder, node: Node) -> SSAValue:
    """Import alpha · A · B, of operands that may be transposed."""
    operands = [_transposed(b, node, index, name) for index, name in enumerate("AB")]
    product, alpha = matmul(b, *operands), node.number("alpha", 1.0)
    return product if alpha == 1 else apply(b, "mul", product, scalar(b, alpha, product))


def _transposed(b: Builder, node: Node, index: int, name: str) -> SSAValue:
    """Return operand A or B, transposed as the node says.

    First its first dim goes before the last, then the last two are swapped.
    """
    value = node.input(index)
    rank = len(extents_of(value))
    by_batch = bool(node.integer(f"transBatch{name}", 0))
    by_row = bool(node.integer(f"trans{name}", 0))
    if by_batch and rank > 2:
        value = transpose(b, value, [*range(1, rank - 1), 0, rank - 1])
    return swap_last(b, value) if by_row and rank > 1 else value


_GEMM_ACTIVATIONS: Mapping[str, tuple[str, ...]] = {
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Selu": ("alpha", "gamma"),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}
"""Activations of ONNX, and their attributes."""


@importer("FusedGemm", domain=MICROSOFT)
def fused_gemm(b: Builder, node: Node) -> SSAValue:
    """Import Gemm and an activation, whose attributes have the prefix `activation_`."""
    product = node.call(
        "Gemm",
        node.input(0),
        node.input(1),
        node.optional(2),
        alpha=node.number("alpha", 1.0),
        beta=node.number("beta", 1.0),
        transA=node.integer("transA", 0),
        transB=node.integer("transB", 0),
    )
    name = node.text("activation", "")
    if name not in ("", *_GEMM_ACTIVATIONS):
        node.unsupported(
            f"attribute 'activation' is '{name}', expected one of {', '.join(_GEMM_ACTIVATIONS)}"
        )
    given = {
        attribute: node.number(f"activation_{attribute}")
        for attribute in ("alpha", "beta", "gamma")
        if node.has(f"activation_{attribute}")
    }
    if not name:
        return product
    taken = _GEMM_ACTIVATIONS[name]
    return node.call(name, product, **{key: given[key] for key in taken if key in given})


_CONV_ACTIVATIONS: Mapping[str, tuple[str, ...]] = {
    "Clip": ("min", "max"),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Sigmoid": (),
    "Silu": (),
    "Tanh": (),
}
"""Activations of convolutions, and the meaning of `activation_params` for each."""


@importer("FusedConv", domain=MICROSOFT)
def fused_conv(b: Builder, node: Node) -> SSAValue:
    """Import Conv, plus Z where it is given, and an activation."""
    product = _convolution(node, node.input(0), node.input(1))
    if (added := node.optional(3)) is not None:
        product = apply(b, "add", product, _of_shape(b, node, added, product))
    return _activated(b, node, product)


@importer("NhwcConv", domain=MICROSOFT)
def channels_last_conv(b: Builder, node: Node) -> SSAValue:
    """Import Conv of data and filters whose channels are last: `[filters, …, channels]`."""
    x, filters = node.input(0), node.input(1)
    rank = len(extents_of(x))
    if rank < 3 or len(extents_of(filters)) != rank:
        node.fail(
            f"inputs 0 and 1 have shapes {list(extents_of(x))} and {list(extents_of(filters))}, "
            "expected at least 3 dims of both"
        )
    first = [0, rank - 1, *range(1, rank - 1)]
    product = _convolution(node, transpose(b, x, first), transpose(b, filters, first))
    return transpose(b, product, [0, *range(2, rank), 1])


def _convolution(node: Node, x: SSAValue, filters: SSAValue) -> SSAValue:
    """Return Conv with the node's attributes and its bias."""
    bias = node.optional(2)
    if bias is not None and not fits(extents_of(bias), extents_of(filters)[:1]):
        node.fail(
            f"input 2 has shape {list(extents_of(bias))}, expected {list(extents_of(filters)[:1])}"
        )
    return node.call(
        "Conv",
        x,
        filters,
        bias,
        auto_pad=node.text("auto_pad", "NOTSET"),
        group=node.integer("group", 1),
        **{
            name: node.integers(name)
            for name in ("dilations", "kernel_shape", "pads", "strides")
            if node.has(name)
        },
    )


def _of_shape(b: Builder, node: Node, value: SSAValue, like: SSAValue) -> SSAValue:
    if not fits(extents_of(value), extents_of(like)):
        node.fail(f"input 3 has shape {list(extents_of(value))}, expected {list(extents_of(like))}")
    return with_extents(b, value, extents_of(like))


def _activated(b: Builder, node: Node, x: SSAValue) -> SSAValue:
    """Return the result of a convolution after its activation."""
    name, numbers = node.text("activation", ""), node.numbers("activation_params", ())
    if not name:
        return x
    if name not in _CONV_ACTIVATIONS:
        node.unsupported(
            f"attribute 'activation' is '{name}', expected one of {', '.join(_CONV_ACTIVATIONS)}"
        )
    wanted = _CONV_ACTIVATIONS[name]
    if wanted and len(numbers) != len(wanted):
        node.fail(
            f"attribute 'activation_params' has {len(numbers)} numbers, but {name} needs "
            f"{', '.join(wanted)}"
        )
    if name == "Clip":
        for kind, bound in zip(("maximum", "minimum"), numbers, strict=True):
            x = apply(b, kind, x, scalar(b, bound, x))
        return x
    if name == "Silu":
        return apply(b, "mul", x, sigmoid(b, x))
    return node.call(name, x, **dict(zip(wanted, numbers, strict=False)))
