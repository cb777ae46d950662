"""`RoiAlign`: regions of interest, sampled between the elements and pooled."""

from typing import NamedTuple

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import to_numpy
from braid.frontends.onnx.bilinear import Neighbours, corners, neighbours
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.expressions import (
    apply,
    mean,
    reduce,
    reshape,
    scalar,
    slice_dim,
    transpose,
)
from braid.frontends.onnx.node import Node
from braid.frontends.onnx.registry import importer


class _Edges(NamedTuple):
    """Where the samples of a region lie along one dim: `start + step · (0.5 + i)`."""

    start: SSAValue
    step: SSAValue


@importer("RoiAlign")
def roi_align(b: Builder, node: Node) -> SSAValue:
    """Inputs: x `[N, C, H, W]`, regions `[R, 4]` as x, y, x, y, and their batch entries `[R]`.

    Each of the bins is the mean, or the largest weighted neighbour, of a grid of samples.
    He et al., "Mask R-CNN", 2017.
    """
    x, regions, batches = node.input(0), node.input(1), node.input(2)
    samples = node.integer("sampling_ratio", 0)
    if samples <= 0:
        node.unsupported(
            "sampling_ratio is 0: the number of samples would depend on the regions",
            hint="export the model with a fixed sampling_ratio",
        )
    default = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    aligned = node.text("coordinate_transformation_mode", default) == "half_pixel"
    bins = (node.integer("output_height", 1), node.integer("output_width", 1))
    count, channels = shape_of(regions)[0], shape_of(x)[1]
    lines: list[Neighbours] = []
    for dim in range(2):
        edges = _edges(b, node, regions, dim, bins[dim] * samples, aligned)
        positions = _positions(b, edges, bins[dim] * samples)
        lines.append(neighbours(b, positions, shape_of(x)[2 + dim], slack=1.0))
    grid = [count, bins[0] * samples, bins[1] * samples]
    rows = lines[0].reshaped(b, [count, grid[1], 1])
    columns = lines[1].reshaped(b, [count, 1, grid[2]])
    batch = reshape(b, batches, [count, 1, 1])
    terms = corners(b, transpose(b, x, [0, 2, 3, 1]), batch, rows, columns, grid)
    is_mean = node.text("mode", "avg") == "avg"
    total = terms[0]
    for term in terms[1:]:
        total = apply(b, "add" if is_mean else "maximum", total, term)
    split = reshape(b, total, [count, bins[0], samples, bins[1], samples, channels])
    pooled = mean(b, split, [2, 4]) if is_mean else reduce(b, "maximum", split, [2, 4])
    return transpose(b, reshape(b, pooled, [count, *bins, channels]), [0, 3, 1, 2])


def _edges(
    b: Builder, node: Node, regions: SSAValue, dim: int, samples: int, aligned: bool
) -> _Edges:
    """Of dim 0 (rows) or 1 (columns), `[R, 1]`; regions not aligned are at least 1 wide."""
    scale = scalar(b, node.number("spatial_scale", 1.0), regions)
    shift = scalar(b, 0.5 if aligned else 0.0, regions)
    start, end = (
        apply(b, "sub", apply(b, "mul", slice_dim(b, regions, 1, i + 1 - dim, 1), scale), shift)
        for i in (0, 2)
    )
    extent = apply(b, "sub", end, start)
    if not aligned:
        extent = apply(b, "maximum", extent, scalar(b, 1, extent))
    return _Edges(start, apply(b, "mul", extent, scalar(b, 1 / samples, extent)))


def _positions(b: Builder, edges: _Edges, samples: int) -> SSAValue:
    """`[R, samples]`."""
    dtype = to_numpy(element_type_of(edges.start))
    centers = b.constant((np.arange(samples)[None, :] + 0.5).astype(dtype))
    return apply(b, "add", edges.start, apply(b, "mul", edges.step, centers))
