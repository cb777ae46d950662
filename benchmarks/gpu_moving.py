"""Cases of ``benchmarks.gpu`` that move elements: what limits them is the memory."""

from collections.abc import Callable, Iterator, Sequence
from math import prod

import numpy as np

from benchmarks.gpu_case import DTYPES, TOP, Array, Case, function_text

SELECTIONS = (
    *(("f16", 8, 16384, 4096), ("f16", 100, 1024, 4096), ("f32", 50, 64, 128256)),
    *(("f32", 50, 1, 128256), ("f32", 256, 8, 32000)),
)
"""Shapes by rank, including vocabularies of language models: k, rows and columns."""
SMALL_SELECTIONS = (("f32", 20, 2, 600),)
Expected = Callable[[Sequence[Array], Array], Array]
Shape = tuple[int, ...]


def moving_cases(small: bool) -> Iterator[Case]:
    """One of each kind."""
    element = "f32" if small else "f16"
    rows, columns = (24, 40) if small else (16384, 4096)
    images = (2, 8, 6, 6) if small else (8, 64, 112, 112)
    yield transposition(rows, columns, element)
    yield concatenation(rows, columns, element)
    yield gather(50 if small else 50257, 768 if not small else 32, rows, element)
    yield maxima(rows, columns, element)
    yield pooling(images, element)
    yield enlargement(images, element)
    yield depthwise(images, element)
    for one, selected, *sizes in SMALL_SELECTIONS if small else SELECTIONS:
        yield selection(one, selected, *sizes)


def _case(
    kind: str,
    element: str,
    shapes: Sequence[Shape],
    result: Shape,
    body: str,
    expected: Expected,
    *,
    read: int | None = None,
    indices: int = -1,
    sampled: int = 0,
) -> Case:
    """Return a case that reads `read` elements, by default all, and writes each element of the
    result."""
    types = [
        f"tensor<{'x'.join(map(str, shape))}x{'i64' if number == indices else element}>"
        for number, shape in enumerate(shapes)
    ]
    written = f"tensor<{'x'.join(map(str, result))}x{element}>"
    count = sum(map(prod, shapes)) if read is None else read
    name = f"{kind} {element} {'×'.join(map(str, shapes[0]))}"
    return Case(
        kind,
        name,
        function_text(types, written, f"{body} : ({', '.join(types)}) -> {written}"),
        tuple(shapes),
        element,
        moved=float(DTYPES[element]().itemsize * (count + prod(result))),
        expected=expected,
        indices=indices,
        sampled=sampled,
    )


def transposition(rows: int, columns: int, element: str) -> Case:
    """Return a transposition of a matrix."""
    body = "braid.transpose %a {permutation = array<i64: 1, 0>}"
    shape = (rows, columns)
    return _case("transpose", element, [shape], (columns, rows), body, lambda x, i: x[0].T[i])


def concatenation(rows: int, columns: int, element: str) -> Case:
    """Rows of two matrices, which are concatenated."""
    body, shape = "braid.concat %a, %b {dim = 1 : i64}", (rows, columns)

    def expected(x: Sequence[Array], i: Array) -> Array:
        return np.concatenate([x[0][i], x[1][i]], 1)

    return _case("concat", element, [shape, shape], (rows, 2 * columns), body, expected)


def gather(tokens: int, width: int, count: int, element: str) -> Case:
    """Rows of a table, as an embedding reads them."""
    return _case(
        "gather",
        element,
        [(tokens, width), (count,)],
        (count, width),
        "braid.gather %a, %b {dim = 0 : i64}",
        lambda x, i: x[0][x[1][i]],
        read=count * width,
        indices=1,
    )


def maxima(rows: int, columns: int, element: str) -> Case:
    """Return a case of the largest element of each row."""
    body = 'braid.reduce %a {kind = "maximum", dims = array<i64: 1>}'
    shape = (rows, columns)
    return _case(
        "reduce", element, [shape], (rows, 1), body, lambda x, i: x[0][i].max(1, keepdims=True)
    )


def pooling(images: Shape, element: str) -> Case:
    """Return a case of the largest element of each 2 × 2 window."""
    count, channels, height, width = images
    body = (
        'braid.pool %a {kind = "max", window = array<i64: 2, 2>, strides = array<i64: 2, 2>, '
        "dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>}"
    )
    result = (count, channels, height // 2, width // 2)

    def expected(x: Sequence[Array], i: Array) -> Array:
        return x[0][i].reshape(len(i), channels, height // 2, 2, width // 2, 2).max((3, 5))

    return _case("pool", element, [images], result, body, expected, sampled=1)


def enlargement(images: Shape, element: str) -> Case:
    """Each point becomes two by two."""
    count, channels, height, width = images
    body = (
        'braid.resize %a {mode = "nearest", coordinates = "asymmetric", nearest_mode = "floor", '
        "scales = array<f64: 1.0, 1.0, 2.0, 2.0>, region = array<f64>, cubic_a = -0.75 : f64, "
        "exclude_outside = false, antialias = false, extrapolation = 0.0 : f64}"
    )
    result = (count, channels, 2 * height, 2 * width)

    def expected(x: Sequence[Array], i: Array) -> Array:
        return x[0][i].repeat(2, 2).repeat(2, 3)

    return _case("resize", element, [images], result, body, expected, sampled=1)


def selection(element: str, k: int, rows: int, columns: int) -> Case:
    """Return a case of the k largest elements of each row of a matrix, and their positions."""
    operand, values = f"tensor<{rows}x{columns}x{element}>", f"tensor<{rows}x{k}x{element}>"
    indices = f"tensor<{rows}x{k}xi64>"
    text = (
        f'func.func @main(%a: {operand} {{braid.name = "a"}}) -> '
        f'({values} {{braid.name = "y"}}, {indices} {{braid.name = "i"}}) {{\n'
        f"  %y, %i = braid.top_k %a {{k = {k} : i64, dim = 1 : i64, largest = true}} : "
        f"({operand}) -> ({values}, {indices})\n  func.return %y, %i : {values}, {indices}\n}}\n"
    )
    size = DTYPES[element]().itemsize
    return Case(
        f"{TOP}{k}",
        f"top {k} {element} {rows}×{columns}",
        text,
        ((rows, columns),),
        element,
        moved=float(rows * (size * columns + (size + 8) * k)),
        expected=lambda x, i: -np.sort(-x[0][i].astype(np.float64), 1)[:, :k],
    )


def depthwise(images: Shape, element: str) -> Case:
    """Return a case of a 3 × 3 window for each channel."""
    count, channels, height, width = images
    body = (
        "braid.conv %a, %b {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = "
        f"array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = {channels} : i64}}"
    )

    def expected(x: Sequence[Array], i: Array) -> Array:
        image, weights = (array.astype(np.float64) for array in (x[0][i], x[1]))
        windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))
        return np.einsum("nchwij,cij->nchw", windows, weights[:, 0], optimize=True)

    shapes = [images, (channels, 1, 3, 3)]
    result = (count, channels, height - 2, width - 2)
    return _case("depthwise", element, shapes, result, body, expected, sampled=1)
