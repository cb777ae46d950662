"""`Col2Im`: overlapping blocks added up into one image."""

from itertools import product

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.movement import SliceOp
from braid.dialects.braid.scattering import ScatterNdOp
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.expressions import broadcast, reshape, transpose
from braid.frontends.onnx.node import Node
from braid.frontends.onnx.registry import importer


@importer("Col2Im")
def col2im(b: Builder, node: Node) -> SSAValue:
    """Adds the columns `[N, C · block, positions]` up at the places that they came from."""
    x, image, block = node.input(0), node.known_integers(1), node.known_integers(2)
    if image is None or block is None:
        node.fail("the shapes of image and block are missing")
    rank = len(image)
    strides = node.integers("strides", (1,) * rank)
    dilations = node.integers("dilations", (1,) * rank)
    pads = node.integers("pads", (0,) * (2 * rank))
    padded = [e + pads[d] + pads[rank + d] for d, e in enumerate(image)]
    counts = [
        (extent - dilation * (size - 1) - 1) // stride + 1
        for extent, size, stride, dilation in zip(padded, block, strides, dilations, strict=True)
    ]
    batch, channels = shape_of(x)[0], shape_of(x)[1] // int(np.prod(block))
    places = [
        [
            [offset * dilation + position * stride for position in range(count)]
            for offset in range(size)
        ]
        for count, size, stride, dilation in zip(counts, block, strides, dilations, strict=True)
    ]
    indices = np.array(
        [
            [
                [places[dim][o][p] for dim, (o, p) in enumerate(zip(offset, position, strict=True))]
                for position in product(*map(range, counts))
            ]
            for offset in product(*map(range, block))
        ],
        np.int64,
    )
    columns = reshape(b, x, [batch, channels, *indices.shape[:2]])
    updates = transpose(b, columns, [2, 3, 0, 1])
    zero = b.constant(np.zeros([1] * (rank + 2), to_numpy(element_type_of(x))))
    empty = broadcast(b, zero, [*padded, batch, channels])
    total = b.emit(ScatterNdOp.get(empty, b.constant(indices), updates, "add"))
    offsets = [*pads[:rank], 0, 0]
    inner = b.emit(SliceOp.get(total, offsets, [*image, batch, channels]))
    return transpose(b, inner, [rank, rank + 1, *range(rank)])
