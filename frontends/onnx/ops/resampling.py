"""`Resize` and `Upsample`."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of
from braid.dialects.braid.resampling import Resampling
from braid.dialects.braid.resize import ResizeOp
from braid.dialects.braid.size_evaluation import fixed
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.decisions import elements_of, may_decide
from braid.frontends.onnx.building.expressions import (
    apply,
    cast,
    normalized,
    reshape,
    size_scalar,
    slice_dim,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.open_resampling import resampled
from braid.support.sizes.expression import Extent

_LARGEST_DIVISOR = 64
"""Sizes are exact products with scales that are multiples of 1/64, others are computed in f32."""


@importer("Resize", since=11)
def resize(b: Builder, node: Node) -> SSAValue:
    """Import `Resize`, whose extents come from `scales` or `sizes`.

    If `axes` is given, they are only for its dims.
    """
    x = node.input(0)
    shape = extents_of(x)
    rank = len(shape)
    axes = [normalized(axis, rank) for axis in node.integers("axes", range(rank))]
    sizes, scales = _extents(b, node, shape, axes)
    coordinates = node.text("coordinate_transformation_mode", "half_pixel")
    how = Resampling(
        mode=node.text("mode", "nearest"),
        coordinates=coordinates,
        nearest_mode=node.text("nearest_mode", "round_prefer_floor"),
        cubic_a=node.number("cubic_coeff_a", -0.75),
        exclude_outside=bool(node.integer("exclude_outside", 0)),
        antialias=bool(node.integer("antialias", 0)),
        extrapolation=node.number("extrapolation_value", 0.0),
    )
    region: list[float] = []
    if coordinates == "tf_crop_and_resize":
        region = [0.0] * rank + [1.0] * rank
        given = node.known(1)
        if given is None:
            node.fail("input 1 (roi) is missing")
        for position, dim in enumerate(axes):
            region[dim] = float(given[position])
            region[rank + dim] = float(given[position + len(axes)])
    return _resized(b, node, sizes, scales, how, region)


_Scale: TypeAlias = float | SSAValue | None
"""How a dim grows: a number, one that is computed, `[1]`, or None where both extents say it."""


def _resized(
    b: Builder,
    node: Node,
    sizes: Sequence[Extent],
    scales: Sequence[_Scale],
    how: Resampling,
    region: Sequence[float] = (),
) -> SSAValue:
    """Return the input in other sizes: first in dims of known scales, then in one after another."""
    x = node.input(0)
    shape = extents_of(x)
    triples = zip(sizes, scales, shape, strict=True)
    known = [size if isinstance(scale, float) else own for size, scale, own in triples]
    factors = [scale if isinstance(scale, float) else 1.0 for scale in scales]
    if known != list(shape) or known == list(sizes):
        x = b.emit(ResizeOp.get(x, known, factors, how, region))
    for dim, scale in enumerate(scales):
        if scale is None or isinstance(scale, SSAValue):
            x = resampled(b, node, x, dim, sizes[dim], how, scale)
    return x


def _extents(
    b: Builder, node: Node, shape: Sequence[Extent], axes: Sequence[int]
) -> tuple[list[Extent], list[_Scale]]:
    """Return the extents and scales of all dims."""
    sizes: list[Extent] = list(shape)
    scales: list[_Scale] = [1.0] * len(shape)
    wanted = node.known_sizes(3)
    policy = node.text("keep_aspect_ratio_policy", "stretch")  # changes only sizes
    if wanted:
        ratios = [_ratio(want, shape[dim]) for want, dim in zip(wanted, axes, strict=True)]
        if policy != "stretch":
            known = [
                fixed(want, "the result") / fixed(shape[dim], "the input")
                for want, dim in zip(wanted, axes, strict=True)
            ]
            ratio = min(known) if policy == "not_larger" else max(known)
            ratios = [ratio] * len(axes)
            kept = [fixed(shape[dim], f"dim {dim}") for dim in axes]
            wanted = [int(np.floor(extent * ratio + 0.5)) for extent in kept]
        for dim, size, ratio in zip(axes, wanted, ratios, strict=True):
            sizes[dim], scales[dim] = size, ratio
        return sizes, scales
    for dim, (size, scale) in zip(axes, _scaled(b, node, 2, axes), strict=True):
        sizes[dim], scales[dim] = size, scale
    return sizes, scales


def _scaled(
    b: Builder, node: Node, index: int, axes: Sequence[int]
) -> Iterator[tuple[Extent, _Scale]]:
    """Yield the extents of dims that are scaled, and the scales: an attribute, or an input."""
    if node.has("scales"):
        value = b.constant(np.array(node.numbers("scales"), np.float32))
    else:
        value = node.input(index)
    if b.sizes_of(value) is None and not may_decide(b, value):
        node.known(index)  # says why it cannot be
    elements = elements_of(b, value)
    if len(elements) != len(axes):
        node.fail(f"{len(elements)} scales are given for {len(axes)} dims")
    scales = reshape(b, value, [len(axes)])
    for number, (dim, element) in enumerate(zip(axes, elements, strict=True)):
        extent = extents_of(node.input(0))[dim]
        if isinstance(element, float) and (size := _scaled_extent(extent, element)) is not None:
            yield size, element
            continue
        scale = slice_dim(b, scales, 0, number, 1)
        whole = cast(b, apply(b, "mul", scale, size_scalar(b, extent, scale)), i64)
        found = node.sizes_of_value(whole, node.proto.output[0])
        if found is None:
            node.known(index)
        else:
            yield found.item(), scale


def _ratio(wanted: Extent, extent: Extent) -> float | None:
    """Return the ratio by which a dim grows, None if it differs from run to run."""
    if isinstance(wanted, int) and isinstance(extent, int):
        return wanted / extent
    ratio = wanted // extent
    if isinstance(ratio, int) and ratio * extent == wanted:
        return float(ratio)
    return None


def _scaled_extent(extent: Extent, scale: float) -> Extent | None:
    """Return the extent of a dim after scaling, rounded down; None where floats say it in a run.

    Numbers are multiplied in f32, as ONNX Runtime does.
    """
    if isinstance(extent, int):
        return int(np.float32(extent) * np.float32(scale))
    numerator, divisor = scale.as_integer_ratio()
    return None if divisor > _LARGEST_DIVISOR else extent * numerator // divisor


@importer("Upsample", since=7)
@importer("Resize", since=10)
def resize_by_scales(b: Builder, node: Node) -> SSAValue:
    """Import `Upsample`, or `Resize` before opset 11: positions have no offset."""
    scaled = list(_scaled(b, node, 1, range(len(extents_of(node.input(0))))))
    mode = {"bilinear": "linear"}.get(node.text("mode", "nearest"), node.text("mode", "nearest"))
    how = Resampling(mode=mode, coordinates="asymmetric", nearest_mode="floor")
    return _resized(b, node, [size for size, _ in scaled], [scale for _, scale in scaled], how)
