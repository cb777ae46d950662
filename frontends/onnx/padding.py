"""`Pad` in all modes."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.movement import SliceOp
from braid.dialects.braid.relayout import Array
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.expressions import normalized, pad
from braid.frontends.onnx.node import Node
from braid.frontends.onnx.registry import importer

_MODES = ("reflect", "edge", "wrap")
"""The modes that repeat elements of the input; numpy has them under the same names."""


@importer("Pad", since=11)
def pad_node(b: Builder, node: Node) -> SSAValue:
    """Widths, number and axes are inputs."""
    widths, rank = node.known_integers(1) or (), len(shape_of(node.input(0)))
    axes = [normalized(axis, rank) for axis in node.known_integers(3) or range(rank)]
    low, high = [0] * rank, [0] * rank
    for position, dim in enumerate(axes):
        low[dim], high[dim] = widths[position], widths[position + len(axes)]
    number = node.known(2)
    return _padded(b, node, low, high, 0.0 if number is None else number.item())


@importer("Pad", since=2)
def pad_by_attributes(b: Builder, node: Node) -> SSAValue:
    """Widths and number are attributes, before opset 11."""
    widths, rank = node.integers("pads"), len(shape_of(node.input(0)))
    return _padded(b, node, widths[:rank], widths[rank:], node.number("value", 0.0))


def _padded(
    b: Builder, node: Node, low: Sequence[int], high: Sequence[int], number: float
) -> SSAValue:
    """Negative widths cut elements off before anything is added."""
    x, mode = node.input(0), node.text("mode", "constant")
    shape = shape_of(x)
    offsets = [max(0, -width) for width in low]
    ends = [extent - max(0, -width) for extent, width in zip(shape, high, strict=True)]
    sizes = [end - offset for end, offset in zip(ends, offsets, strict=True)]
    if sizes != list(shape):
        x = b.emit(SliceOp.get(x, offsets, sizes))
    low, high = [max(0, width) for width in low], [max(0, width) for width in high]
    if mode == "constant":
        return pad(b, x, low, high, number)
    if mode not in _MODES:
        node.fail(f"mode is '{mode}', expected constant, reflect, edge or wrap")
    for dim, (before, after) in enumerate(zip(low, high, strict=True)):
        if before or after:
            widths: Any = (before, after)
            positions: Array = np.pad(np.arange(sizes[dim]), widths, mode=cast(Any, mode))
            x = b.emit(GatherOp.get(x, b.constant(positions), dim))
    return x
