"""A volume upsampled to eight times as many voxels, and convolved with stride 2."""

import numpy as np
from onnx import ModelProto, helper

from benchmarks.oversize.case import Array, Dims, model, normal


def build(dims: Dims) -> ModelProto:
    """Each voxel becomes eight, then a convolution with stride 2 makes few channels of many."""
    inner, outer, extent = dims["channels"], dims["filters"], dims["extent"]
    scales = np.asarray([1, 1, 2, 2, 2], np.float32)
    nodes = [
        helper.make_node(
            "Resize",
            ["x", "", "scales"],
            ["up"],
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
        helper.make_node(
            "Conv",
            ["up", "w"],
            ["y"],
            kernel_shape=[3, 3, 3],
            strides=[2, 2, 2],
            pads=[1, 1, 1, 1, 1, 1],
        ),
    ]
    inputs = {"x": [1, inner, extent, extent, extent], "w": [outer, inner, 3, 3, 3]}
    return model(nodes, inputs, [1, outer, extent, extent, extent], {"scales": scales})


def make_inputs(dims: Dims) -> list[Array]:
    inner, extent = dims["channels"], dims["extent"]
    return [normal(1, inner, *[extent] * 3), normal(dims["filters"], inner, 3, 3, 3, seed=1)]


def compute_in_pieces(x: Array, w: Array) -> Array:
    """Compute a 3×3×3 convolution with stride 2 of the voxels doubled along every dim, plane by
    plane.

    At output z, the planes that the window covers are those of the inputs z - 1 (below, at the
    border padding) and twice z.
    """
    size = x.shape[2]
    padded = np.pad(x[0], ((0, 0), (1, 0), (1, 0), (1, 0)))
    places = [0, 1, 1]  # Of a window's three elements: the voxel before, the voxel itself, twice.
    planes: list[Array] = []
    for z in range(size):
        plane = np.zeros((w.shape[0], size, size), np.float32)
        for index in np.ndindex(3, 3, 3):
            dz, dy, dx = (places[i] for i in index)
            part = padded[:, z + dz, dy : dy + size, dx : dx + size]
            plane += np.tensordot(w[:, :, *index], part, axes=(1, 0))
        planes.append(plane)
    return np.stack(planes, axis=1)[None]
