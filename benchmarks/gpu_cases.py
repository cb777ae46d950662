"""The cases that ``benchmarks.gpu`` compiles and times: single ops, and whole models."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from onnx import ModelProto

from benchmarks.gpu_case import DTYPES, Array, Case, function_text
from benchmarks.gpu_moving import moving_cases
from benchmarks.models.hand_written import make_loop_if, make_transformer_block
from benchmarks.models.make import makers

PROJECTIONS = ((4096, 4096), (11008, 4096), (4096, 11008), (12288, 4096), (768, 768), (3072, 768))
"""Columns and depths of products in language models: 7e9 parameters, and BERT-base."""
WHOLE = ("resnet50", "mobilenet_v2", "bert_base", "gpt2", "vit_base")
"""Models of `torch_models`, in f32 and f16."""
CONVOLUTIONS = (
    *((64, 64, 58, 3), (128, 128, 30, 3), (256, 256, 16, 3), (512, 512, 9, 3)),
    *((64, 256, 56, 1), (1024, 256, 14, 1)),
)
"""Convolutions of ResNet-50: channels, filters, side of the padded image, and side of the
window."""
ATTRIBUTES = (
    "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, "
    "pad_high = array<i64: 0, 0>, groups = 1 : i64"
)
"""The batch of these convolutions."""
TOKENS = (16, 128, 512, 2048, 4096)


def product(rows: int, columns: int, depth: int, element: str) -> Case:
    """Return a matmul; with 8-bit operands the sums are i32, and the right operand is
    transposed."""
    result = "i32" if element == "i8" else element
    left, right = f"tensor<{rows}x{depth}x{element}>", f"tensor<{depth}x{columns}x{element}>"
    sum = " {accumulator = i32}" if element == "i8" else ""
    text = function_text(
        [left, right],
        f"tensor<{rows}x{columns}x{result}>",
        f"braid.matmul %a, %b{sum} : ({left}, {right}) -> tensor<{rows}x{columns}x{result}>",
    )
    shapes = ((rows, depth), (depth, columns))
    name = f"{element} {rows}×{columns}×{depth}"
    return Case(
        *("product", name, text, shapes, element, 2.0 * rows * columns * depth),
        expected=_expected_product,
    )


def linear(rows: int, columns: int, depth: int, element: str) -> Case:
    """Return a product with a bias and an activation, as layers of networks end."""
    left, right = f"tensor<{rows}x{depth}x{element}>", f"tensor<{depth}x{columns}x{element}>"
    bias, result = f"tensor<1x{columns}x{element}>", f"tensor<{rows}x{columns}x{element}>"
    before = (
        f"%p = braid.matmul %a, %b : ({left}, {right}) -> {result}",
        f"%s = braid.add %p, %c : ({result}, {bias}) -> {result}",
    )
    body = f"braid.tanh %s : ({result}) -> {result}"
    text = function_text([left, right, bias], result, body, before)
    shapes = ((rows, depth), (depth, columns), (1, columns))
    name, work = f"linear {element} {rows}×{columns}×{depth}", 2.0 * rows * columns * depth
    return Case("linear", name, text, shapes, element, work, 0, _expected_linear)


def _expected_linear(inputs: Sequence[Array], rows: Array) -> Array:
    sums = _expected_product(inputs, rows) + inputs[2].astype(np.float64)
    return np.tanh(sums)


def _expected_product(inputs: Sequence[Array], rows: Array) -> Array:
    kind = np.int64 if inputs[0].dtype == np.int8 else np.float64
    return inputs[0][rows].astype(kind) @ inputs[1].astype(np.float32).astype(kind)


def rows_case(op: str, rows: int, columns: int, element: str) -> Case:
    """Return a case of an op on the rows of a matrix, which reads and writes each element once."""
    type, scale = f"tensor<{rows}x{columns}x{element}>", f"tensor<1x{columns}x{element}>"
    bodies = {
        "softmax": f"braid.softmax %a {{dim = 1 : i64}} : ({type}) -> {type}",
        "tanh": f"braid.tanh %a : ({type}) -> {type}",
        "layer_norm": "braid.layer_norm %a, %b, %c {first_dim = 1 : i64, epsilon = 1.0e-5 : f64} "
        f": ({type}, {scale}, {scale}) -> {type}",
    }
    operands = [type, scale, scale] if op == "layer_norm" else [type]
    shapes = ((rows, columns), (1, columns), (1, columns))[: len(operands)]
    moved = 2.0 * rows * columns * DTYPES[element]().itemsize
    text, name = function_text(operands, type, bodies[op]), f"{op} {element} {rows}×{columns}"
    expected = partial(_expected_rows, op)
    return Case(op, name, text, shapes, element, 0.0, moved, expected)


def _expected_rows(op: str, inputs: Sequence[Array], rows: Array) -> Array:
    x, *others = (array.astype(np.float64) for array in inputs)
    x = x[rows]
    if op == "tanh":
        return np.tanh(x)
    if op == "softmax":
        powers = np.exp(x - x.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * others[0] + others[1]


def attention(heads: int, tokens: int, width: int, element: str) -> Case:
    """softmax(q·k)·v for each head, without a scale; the keys come transposed."""
    q, k = (
        f"tensor<{heads}x{tokens}x{width}x{element}>",
        f"tensor<{heads}x{width}x{tokens}x{element}>",
    )
    scores = f"tensor<{heads}x{tokens}x{tokens}x{element}>"
    body = (
        f"braid.matmul %p, %c : ({scores}, {q}) -> {q}",
        f"%s = braid.matmul %a, %b : ({q}, {k}) -> {scores}",
        f"%p = braid.softmax %s {{dim = 2 : i64}} : ({scores}) -> {scores}",
    )
    text = function_text([q, k, q], q, body[0], body[1:])
    shapes = ((heads, tokens, width), (heads, width, tokens), (heads, tokens, width))
    name, work = f"attention {element} {heads}×{tokens}×{width}", 4.0 * heads * tokens**2 * width
    expected = _expected_attention
    return Case("attention", name, text, shapes, element, work, 0, expected, sampled=1)


def _expected_attention(inputs: Sequence[Array], heads: Array) -> Array:
    q, k, v = (array[heads].astype(np.float64) for array in inputs)
    scores = q @ k
    powers = np.exp(scores - scores.max(2, keepdims=True))
    return powers / powers.sum(2, keepdims=True) @ v


def convolution(
    channels: int, filters: int, size: int, window: int, element: str, images: int = 8
) -> Case:
    """Return a convolution of images without padding; half a window less on each side.

    Everything is channels last, as networks keep it between convolutions.
    """
    out = size - window + 1
    stored = (
        (images, size, size, channels),
        (filters, window, window, channels),
        (images, out, out, filters),
    )
    given, weights, results = (f"tensor<{'x'.join(map(str, own))}x{element}>" for own in stored)
    image, filter = (
        f"tensor<{images}x{channels}x{size}x{size}x{element}>",
        f"tensor<{filters}x{channels}x{window}x{window}x{element}>",
    )
    result = f"tensor<{images}x{filters}x{out}x{out}x{element}>"
    first = "permutation = array<i64: 0, 3, 1, 2>"
    before = (
        f"%x = braid.transpose %a {{{first}}} : ({given}) -> {image}",
        f"%w = braid.transpose %b {{{first}}} : ({weights}) -> {filter}",
        f"%c = braid.conv %x, %w {{{ATTRIBUTES}}} : ({image}, {filter}) -> {result}",
    )
    last = "permutation = array<i64: 0, 2, 3, 1>"
    body = f"braid.transpose %c {{{last}}} : ({result}) -> {results}"
    work = 2.0 * images * filters * out * out * channels * window * window
    text = function_text([given, weights], results, body, before)
    expected = _expected_convolution
    name = f"conv {element} {channels}→{filters} {size} {window}×{window}"
    name += "" if images == 8 else f" of {images}"
    return Case("conv", name, text, stored[:2], element, work, 0, expected, sampled=1)


def _expected_convolution(inputs: Sequence[Array], images: Array) -> Array:
    x, w = (array.astype(np.float64) for array in inputs)
    windows = np.lib.stride_tricks.sliding_window_view(x[images], w.shape[1:3], axis=(1, 2))
    return np.einsum("nhwcij,oijc->nhwo", windows, w, optimize=True)


def whole(name: str, element: str) -> Case:
    """Return a model of `WHOLE`."""
    make, exact = (partial(_make_regular, name, own) for own in (element, "f32"))
    return Case("model", f"{name} {element}", element=element, make=make, exact=exact)


def _make_regular(name: str, element: str) -> ModelProto:
    from benchmarks.gpu_models import make_regular  # which takes PyTorch

    return make_regular(name, element)


def cases(small: bool) -> Iterator[Case]:
    """Return the cases, the most telling first."""
    if small:
        yield from (product(40, 72, 48, element) for element in ("bf16", "f16", "f32", "i8"))
        yield linear(24, 40, 48, "f16")
        yield from (rows_case(op, 24, 96, "f32") for op in ("softmax", "layer_norm", "tanh"))
        yield convolution(16, 16, 8, 3, "f32")
        yield attention(2, 40, 64, "f16")
        yield from moving_cases(small)
        yield Case("model", "transformer_block", make=lambda: make_transformer_block(16, 32, 2, 64))
        yield Case("model", "loop_if", make=make_loop_if, on_host=True)
        return
    yield from (product(n, n, n, "bf16") for n in (8192, 2048))
    for op in ("softmax", "layer_norm", "tanh"):
        yield from (rows_case(op, 16384, 4096, element) for element in ("f32", "f16"))
    yield from (attention(32, tokens, 128, "f16") for tokens in (4096, 8192, 16384))
    for channels, filters, size, window in CONVOLUTIONS:
        yield convolution(channels, filters, size, window, "f16")
    yield from moving_cases(small)
    yield Case(
        "model", "transformer_block", make=lambda: make_transformer_block(128, 768, 12, 3072)
    )
    yield Case("model", "loop_if", make=make_loop_if, on_host=True)
    known = makers()
    yield Case("model", "squeezenet", make=known["squeezenet"])
    for name in WHOLE:
        if name in known:  # PyTorch is there
            yield from (whole(name, element) for element in ("f16", "f32"))
    yield linear(2048, 11008, 4096, "bf16")
    yield from (product(m, n, k, "bf16") for n, k in PROJECTIONS for m in TOKENS)
    yield from (product(4096, 4096, 4096, element) for element in ("f16", "i8", "f32"))
