"""`Pad`: by numbers, by sizes, and by widths that data decide."""

from collections.abc import Sequence
from typing import Any
from typing import cast as typed

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import SIZES
from braid.dialects.braid.size_limits import require_table
from braid.dialects.braid.sized_ops import slice_of
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.decisions import decided, may_decide
from braid.frontends.onnx.building.expressions import apply, concat, normalized, pad, slice_dim
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.support.option_names import option_text
from braid.support.sizes.assumptions import Answer
from braid.support.sizes.expression import Extent, Size
from braid.support.sizes.operators import maximum


def _padded_ends(b: Builder, x: SSAValue, dim: int, widths: tuple[int, int], mode: str) -> SSAValue:
    """Return an open dim with elements repeated at both ends: at most as many as it has."""
    extent, (before, after) = extents_of(x)[dim], widths
    if mode == "edge":
        first = [slice_dim(b, x, dim, 0, 1)] * before
        last = [slice_dim(b, x, dim, extent - 1, 1)] * after
        return concat(b, [*first, x, *last], dim)
    if mode == "wrap":
        ends = slice_dim(b, x, dim, extent - before, before), slice_dim(b, x, dim, 0, after)
        return concat(b, [ends[0], x, ends[1]], dim)
    begin = _backward(b, x, dim, before, before)
    end = _backward(b, x, dim, extent - 2, after)
    return concat(b, [begin, x, end], dim)


def _backward(b: Builder, x: SSAValue, dim: int, first: Extent, count: int) -> SSAValue:
    """Return `count` elements from `first` on in reverse order."""
    sizes, strides = list(extents_of(x)), [1] * len(extents_of(x))
    offsets: list[Extent] = [0] * len(sizes)
    offsets[dim], sizes[dim], strides[dim] = first, count, -1
    return b.emit(slice_of(x, offsets, sizes, strides))


def _number(node: Node, width: Extent, mode: str) -> int:
    """Return a width that is a number. Raises UnsupportedError for a size."""
    if isinstance(width, Size):
        shapes, dims = option_text("shapes"), option_text("dims")
        node.unsupported(
            f"it adds '{width}' elements in mode '{mode}', expected a number of them",
            hint=f"let the widths be constants, or fix what they come from: {shapes} or {dims}",
        )
    return width


def _positive(width: Extent) -> Extent:
    return SIZES.simplified(maximum(0, width))


_MODES = ("reflect", "edge", "wrap")
"""The modes that repeat elements of the input; numpy has them under the same names."""


@importer("Pad", since=11)
def pad_node(b: Builder, node: Node) -> SSAValue:
    """Import `Pad` with widths, number and axes as inputs."""
    widths, rank = _decided_widths(b, node), len(extents_of(node.input(0)))
    axes = [normalized(axis, rank) for axis in node.known_integers(3) or range(rank)]
    low: list[Extent] = [0] * rank
    high = list(low)
    for position, dim in enumerate(axes):
        low[dim], high[dim] = widths[position], widths[position + len(axes)]
    number = node.known(2)
    return _padded(b, node, low, high, 0.0 if number is None else number.item())


def _decided_widths(b: Builder, node: Node) -> Sequence[Extent]:
    """Return the widths of a padding; where data decide them they may be negative."""
    value, mode = node.input(1), node.text("mode", "constant")
    if b.sizes_of(value) is not None or mode != "constant" or not may_decide(b, value):
        return node.known_sizes(1) or ()
    zero = b.constant(np.zeros([1] * len(extents_of(value)), to_numpy(element_type_of(value))))
    added, cut = (
        decided(b, apply(b, "maximum", signed, zero), name).reshape(-1).tolist()
        for signed, name in (
            (value, node.proto.input[1]),
            (apply(b, "neg", value), f"{node.proto.input[1]}.cut"),
        )
    )
    return [plus - minus for plus, minus in zip(added, cut, strict=True)]


@importer("Pad", since=2)
def pad_by_attributes(b: Builder, node: Node) -> SSAValue:
    """Import `Pad` with widths and number as attributes, before opset 11."""
    widths, rank = node.integers("pads"), len(extents_of(node.input(0)))
    return _padded(b, node, widths[:rank], widths[rank:], node.number("value", 0.0))


def _padded(
    b: Builder, node: Node, low: Sequence[Extent], high: Sequence[Extent], number: float
) -> SSAValue:
    """Return the padded input; negative widths cut elements off before anything is added."""
    x, mode = node.input(0), node.text("mode", "constant")
    shape = extents_of(x)
    offsets = [_positive(-width) for width in low]
    ends = [extent - _positive(-width) for extent, width in zip(shape, high, strict=True)]
    sizes = [end - offset for end, offset in zip(ends, offsets, strict=True)]
    for dim, (extent, size) in enumerate(zip(shape, sizes, strict=True)):
        if SIZES.at_most(0, size) is Answer.NO:
            node.fail(f"dim {dim} has {extent} elements, of which {extent - size} are cut off")
    if sizes != list(shape):
        x = b.emit(slice_of(x, offsets, sizes))
    low, high = [_positive(width) for width in low], [_positive(width) for width in high]
    if mode == "constant":
        return pad(b, x, low, high, number)
    if mode not in _MODES:
        node.fail(f"mode is '{mode}', expected constant, reflect, edge or wrap")
    for dim, (before, after) in enumerate(zip(low, high, strict=True)):
        if before != 0 or after != 0:
            extent = sizes[dim]
            widths: Any = _number(node, before, mode), _number(node, after, mode)
            if isinstance(extent, Size):
                x = _padded_ends(b, x, dim, widths, mode)
                continue
            require_table(extent + sum(widths), "elements that padding repeats")
            positions: Array = np.pad(np.arange(extent), widths, mode=typed(Any, mode))
            x = b.emit(GatherOp.get(x, b.constant(positions), dim))
    return x
