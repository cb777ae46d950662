"""`Resize` and `Upsample`."""

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of
from braid.dialects.braid.resampling import Resampling
from braid.dialects.braid.resize import ResizeOp
from braid.dialects.braid.size_evaluation import fixed
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import normalized
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.open_resampling import resampled
from braid.support.sizes.expression import Extent


@importer("Resize", since=11)
def resize(b: Builder, node: Node) -> SSAValue:
    """Import `Resize`, whose extents come from `scales` or `sizes`.

    They are for the dims of `axes` alone if that is given.
    """
    x = node.input(0)
    shape = extents_of(x)
    rank = len(shape)
    axes = [normalized(axis, rank) for axis in node.integers("axes", range(rank))]
    sizes, scales = _extents(node, shape, axes)
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
    later = [dim for dim, scale in enumerate(scales) if scale is None]
    known = [shape[dim] if dim in later else sizes[dim] for dim in range(rank)]
    if not later or known != list(shape):
        x = b.emit(ResizeOp.get(x, known, [scale or 1.0 for scale in scales], how, region))
    for dim in later:
        x = resampled(b, node, x, dim, sizes[dim], how)
    return x


def _extents(
    node: Node, shape: Sequence[Extent], axes: Sequence[int]
) -> tuple[list[Extent], list[float | None]]:
    """Return extents and scales of all dims, with no scale where it is known only in a run."""
    sizes: list[Extent] = list(shape)
    scales: list[float | None] = [1.0] * len(shape)
    wanted = node.known_sizes(3)
    policy = node.text("keep_aspect_ratio_policy", "stretch")  # bears on sizes alone
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
    given = node.known(2)
    if given is None or given.size == 0:
        node.fail("expected scales or sizes")
    for dim, scale in zip(axes, given.tolist(), strict=True):
        sizes[dim], scales[dim] = _scaled_extent(shape[dim], scale), float(scale)
    return sizes, scales


def _ratio(wanted: Extent, extent: Extent) -> float | None:
    """Return by how much a dim grows, None where that differs from run to run."""
    if isinstance(wanted, int) and isinstance(extent, int):
        return wanted / extent
    ratio = wanted // extent
    if isinstance(ratio, int) and ratio * extent == wanted:
        return float(ratio)
    return None


def _scaled_extent(extent: Extent, scale: float) -> Extent:
    """Return the extent of a dim after scaling, rounded down."""
    if isinstance(extent, int):
        return int(np.floor(extent * scale))
    numerator, divisor = scale.as_integer_ratio()
    if divisor > 64:
        return fixed(extent, f"a dim that is scaled by {scale}")
    return extent * numerator // divisor


@importer("Resize", since=10)
def resize_by_scales(b: Builder, node: Node) -> SSAValue:
    """Import `Resize` before opset 11: scales are an input, positions have no offset."""
    scales = node.known(1)
    if scales is None:
        node.fail("input 1 (scales) is missing")
    return _scaled(b, node, scales.tolist())


@importer("Upsample", since=7)
def upsample(b: Builder, node: Node) -> SSAValue:
    """Import `Upsample`, whose scales are an attribute before opset 9, an input in it."""
    scales = node.known(1) if not node.has("scales") else np.array(node.numbers("scales"))
    if scales is None:
        node.fail("input 1 (scales) is missing")
    return _scaled(b, node, scales.tolist())


def _scaled(b: Builder, node: Node, scales: Sequence[float]) -> SSAValue:
    x = node.input(0)
    sizes = [_scaled_extent(e, s) for e, s in zip(extents_of(x), scales, strict=True)]
    mode = {"bilinear": "linear"}.get(node.text("mode", "nearest"), node.text("mode", "nearest"))
    how = Resampling(mode=mode, coordinates="asymmetric", nearest_mode="floor")
    return b.emit(ResizeOp.get(x, sizes, scales, how))
