"""A detector with non-maximum suppression in the graph, as exporters of YOLO write it.

Images of any size go through a backbone and a pyramid of three levels (Redmon and Farhadi,
"YOLOv3", 2018); boxes relative to cells of a grid are decoded, and the best of each class are kept.
How many these are the image decides.
"""

import numpy as np
from onnx import ModelProto, TensorProto

from benchmarks.models.control_flow.builder import Body, Weights, finish
from benchmarks.models.hand_written import value
from benchmarks.models.rows import swish

CLASSES = 20
_WIDTHS = (32, 64, 128, 256)
"""Channels at strides 4, 8, 16 and 32."""
_MOST_OF_A_CLASS = 50
_OVERLAP, _LEAST_SCORE = 0.5, 0.3


def make_detector() -> ModelProto:
    """Return a detector of random weights.

    In: `images[1, 3, height, width]`, both multiples of 32. Out: `boxes[found, 4]`, corners in
    pixels, `scores[found]` and `classes[found]`.
    """
    main = Body(Weights(0))
    x = swish(main, main.conv("images", 3, 16, stride=2, gain=1.4))
    levels: list[str] = []
    before = 16
    for width in _WIDTHS:
        x = swish(main, main.conv(x, before, width, stride=2, gain=1.4))
        for _ in range(2):
            inner = swish(main, main.conv(x, width, width // 2, 1))
            x = main.op("Add", x, swish(main, main.conv(inner, width // 2, width)))
        levels.append(x)
        before = width
    boxes, scores = zip(*(_head(main, *level) for level in _pyramid(main, levels)), strict=True)
    found = _selected(main, main.op("Concat", *boxes, axis=1), main.op("Concat", *scores, axis=2))
    inputs = [value("images", [1, 3, "height", "width"])]
    outputs = [
        value("boxes", ["found", 4]),
        value("scores", ["found"]),
        value("classes", ["found"], TensorProto.INT64),
    ]
    return finish(main, main.graph("detector", inputs, outputs, found))


def _pyramid(main: Body, levels: list[str]) -> list[tuple[str, int, int]]:
    """Return the features, channels and stride of each level, from coarse to fine."""
    x, found = levels[-1], [(levels[-1], _WIDTHS[-1], 32)]
    scales = main.constant([1, 1, 2, 2], np.float32)
    for position in (2, 1):
        width = _WIDTHS[position]
        x = swish(main, main.conv(x, 2 * width, width, 1, gain=1.4))
        x = main.op("Resize", x, "", scales, mode="nearest", nearest_mode="floor",
                    coordinate_transformation_mode="asymmetric")  # fmt: skip
        x = main.op("Concat", x, levels[position], axis=1)
        x = swish(main, main.conv(x, 2 * width, width, gain=1.4))
        found.append((x, width, 2 ** (position + 2)))
    return found


def _head(main: Body, x: str, width: int, stride: int) -> tuple[str, str]:
    """Return boxes `[1, cells, 4]` in pixels and scores `[1, classes, cells]` of a level."""
    raw = main.conv(swish(main, main.conv(x, width, width)), width, 4 + CLASSES, 1)
    rows = main.reshape(raw, 1, 4 + CLASSES, -1)
    places, sizes, scores = main.ops(
        "Split", 3, rows, main.constant([2, 2, CLASSES]), axis=1
    )  # [1, channels, cells]
    step = main.constant(stride, np.float32)
    centers = main.op("Add", main.op("Sigmoid", places), _grid(main, raw))
    halves = main.op("Exp", sizes)
    corners = [main.op("Mul", main.op(kind, centers, halves), step) for kind in ("Sub", "Add")]
    boxes = main.op("Transpose", main.op("Concat", *corners, axis=1), perm=[0, 2, 1])
    rare = main.op("Sub", main.op("Mul", scores, main.constant(2.0, np.float32)),
                   main.constant(4.0, np.float32))  # fmt: skip
    return boxes, main.op("Sigmoid", rare)


def _grid(main: Body, raw: str) -> str:
    """Return column and row of each cell, `[1, 2, cells]`."""
    zero, one = main.constant(0), main.constant(1)
    axes: list[str] = []
    shape = main.op("Shape", raw, start=2)
    for dim, lengthened in ((1, [1, 1, -1]), (0, [1, -1, 1])):
        length = main.op("Gather", shape, main.constant(dim))
        numbers = main.reshape(main.op("Range", zero, length, one), *lengthened)
        axes.append(
            main.op("Expand", numbers, main.op("Concat", main.constant([1]), shape, axis=0))
        )
    grid = main.op("Cast", main.op("Concat", *axes, axis=0), to=TensorProto.FLOAT)
    return main.reshape(grid, 1, 2, -1)


def _selected(main: Body, boxes: str, scores: str) -> list[str]:
    """Return the boxes, scores and classes that suppression keeps."""
    limits = [
        main.constant([_MOST_OF_A_CLASS]),
        main.constant([_OVERLAP], np.float32),
        main.constant([_LEAST_SCORE], np.float32),
    ]
    rows = main.op("NonMaxSuppression", boxes, scores, *limits)  # of batch, class and box
    classes = main.op("Gather", rows, main.constant(1), axis=1)
    numbers = main.op("Gather", rows, main.constant(2), axis=1)
    chosen = main.op("Gather", main.op("Squeeze", boxes, main.constant([0])), numbers)
    return [chosen, main.op("GatherND", scores, rows), classes]
