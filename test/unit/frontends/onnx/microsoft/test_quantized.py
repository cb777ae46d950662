"""Ops on 8-bit integers: random nodes beside ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

from test.unit.frontends.onnx.microsoft.harness import (
    Array,
    Case,
    Fixed,
    Generator,
    Rng,
    check_many,
    check_random,
    floats,
    maybe,
    quick_cases,
    sizes,
)


def number(value: float, kind: Any = np.float32) -> Array:
    return np.array(value, kind)


def bytes_of(rng: Rng, shape: Any, kind: Any = np.uint8) -> Array:
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max + 1, shape).astype(kind)


def scale(rng: Rng) -> Array:
    """Return a scale; sometimes a power of two, whose quotients are exact, so that halves occur."""
    return number(2.0 ** rng.integers(-6, -2) if rng.random() < 0.3 else rng.uniform(0.01, 0.1))


def quantized(rng: Rng, shape: Any, kind: Any, can_omit: bool = True) -> list[Any]:
    """Return a tensor, its scale, and its optional zero point."""
    zero = bytes_of(rng, (), kind)
    last = maybe(rng, zero) if can_omit else zero
    if rng.random() < 0.3:
        return [
            bytes_of(rng, shape, kind),
            Fixed(scale(rng)),
            last if last is None else Fixed(last),
        ]
    return [bytes_of(rng, shape, kind), scale(rng), last]


def result(rng: Rng, kind: Any, can_omit: bool = True) -> list[Any]:
    return quantized(rng, (), kind, can_omit)[1:]


def kind_of(rng: Rng) -> Any:
    return rng.choice([np.uint8, np.int8])


def binary(rng: Rng) -> Case:
    kind, shape = kind_of(rng), sizes(rng, int(rng.integers(1, 5)))
    other = [e if rng.random() < 0.6 else 1 for e in shape][rng.integers(0, len(shape)) :]
    first, second = (shape, other) if rng.random() < 0.5 else (other, shape)
    # ONNX Runtime adds up rounded products in an order of its own.
    return Case(
        [
            *quantized(rng, first, kind, can_omit=False),
            *quantized(rng, second, kind, can_omit=False),
            *result(rng, kind, can_omit=False),
        ],
        steps=1,
    )


def unary(rng: Rng, **attributes: Any) -> Case:
    kind = kind_of(rng)
    x = quantized(rng, sizes(rng, int(rng.integers(1, 5))), kind)
    return Case([*x, *result(rng, kind)], attributes, steps=1)


def leaky_relu(rng: Rng) -> Case:
    return unary(rng, **({"alpha": float(rng.uniform(0, 0.5))} if rng.random() < 0.7 else {}))


def softmax(rng: Rng) -> Case:
    kind, rank = kind_of(rng), int(rng.integers(2, 5))
    x = quantized(rng, sizes(rng, rank), kind, can_omit=False)
    attributes: dict[str, Any] = {"opset": int(rng.choice([11, 12, 13, 18]))}
    if rng.random() < 0.7:
        attributes["axis"] = int(rng.integers(-rank, rank))
    y = [number(1 / rng.choice([128, 200, 255])), number(np.iinfo(kind).min, kind)]
    return Case([*x, *y], attributes, steps=1)


def concat(rng: Rng) -> Case:
    kind, rank = kind_of(rng), int(rng.integers(1, 5))
    shape, axis = sizes(rng, rank), int(rng.integers(0, rank))
    operands = result(rng, kind, can_omit=False)
    for _ in range(int(rng.integers(1, 4))):
        own = [int(rng.integers(1, 5)) if d == axis else e for d, e in enumerate(shape)]
        operands += quantized(rng, own, kind, can_omit=False)
    return Case(operands, {"axis": axis - rank if rng.random() < 0.3 else axis}, steps=1)


def image(rng: Rng, rank: int, low: int, is_last: bool) -> list[int]:
    spatial = [int(n) for n in rng.integers(low, low + 6, rank)]
    batch, channels = sizes(rng, 2, 4)
    return [batch, *spatial, channels] if is_last else [batch, channels, *spatial]


def global_average(rng: Rng) -> Case:
    kind, is_last = kind_of(rng), bool(rng.random() < 0.5)
    x = quantized(rng, image(rng, int(rng.integers(1, 3)), 1, is_last), kind, can_omit=False)
    y = result(rng, kind, can_omit=False)
    return Case([*x, *y], {"channels_last": int(is_last)}, steps=1)


def average(rng: Rng) -> Case:
    kind, is_last = kind_of(rng), bool(rng.random() < 0.3)
    rank = int(rng.integers(1, 3))
    kernel = [int(n) for n in rng.integers(1, 4, rank)]
    attributes: dict[str, Any] = {"kernel_shape": kernel, "channels_last": int(is_last)}
    if rng.random() < 0.6:
        attributes["strides"] = [int(n) for n in rng.integers(1, 4, rank)]
    if rng.random() < 0.5:
        attributes["pads"] = [int(rng.integers(0, k)) for k in kernel + kernel]
    elif rng.random() < 0.3:
        attributes["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    attributes["count_include_pad"] = int(rng.integers(0, 2))
    attributes["ceil_mode"] = int(rng.integers(0, 2))
    x = quantized(rng, image(rng, rank, 4, is_last), kind, can_omit=False)
    # Their contribution to the padding depends on extents, and AveragePool takes no open padding.
    fixed = [0] if attributes["ceil_mode"] or "auto_pad" in attributes else []
    return Case([*x, *result(rng, kind, can_omit=False)], attributes, steps=1, fixed=fixed)


def where(rng: Rng) -> Case:
    """Unsigned, with constant scales: ONNX Runtime reads out of bounds of its tables for others."""
    shape = sizes(rng, 3)
    operands: list[Any] = [rng.random(shape) < 0.5]
    for _ in range(2):
        operands += [
            bytes_of(rng, [e if rng.random() < 0.7 else 1 for e in shape]),
            Fixed(scale(rng)),
            Fixed(bytes_of(rng, ())),
        ]
    return Case([*operands, Fixed(scale(rng)), Fixed(bytes_of(rng, ()))], steps=1)


def weight(rng: Rng, rows: int, columns: int, kind: Any) -> Array:
    """Seven bits: where ONNX Runtime adds pairs of products in 16 bits, none saturates."""
    least = 0 if kind == np.uint8 else -63
    return rng.integers(least, least + 127, (rows, columns)).astype(kind)


def kinds_of_product(rng: Rng) -> tuple[Any, Any]:
    """Return the types of two factors; ONNX Runtime multiplies signed ones by signed ones only."""
    first = kind_of(rng)
    return first, np.int8 if first == np.int8 else kind_of(rng)


def matmul_shapes(rng: Rng) -> tuple[list[int], int, int]:
    rows, inner, columns = sizes(rng, 3, 9)
    return [*sizes(rng, int(rng.integers(0, 3)), 3), rows], inner, columns


def integer_to_float(rng: Rng) -> Case:
    (outer, inner, columns), (first, second) = matmul_shapes(rng), kinds_of_product(rng)
    per_column = rng.random() < 0.5
    count = [columns] if per_column else []
    return Case(
        [
            bytes_of(rng, (*outer, inner), first),
            Fixed(weight(rng, inner, columns, second)),
            scale(rng),
            Fixed(rng.uniform(0.01, 0.1, count).astype(np.float32)),
            maybe(rng, bytes_of(rng, (), first)),
            maybe(
                rng,
                Fixed(
                    weight(rng, 1, columns, second)[0]
                    if per_column
                    else number(weight(rng, 1, 1, second)[0, 0], second)
                ),
            ),
            maybe(rng, floats(rng, columns)),
        ]
    )


def dynamic_matmul(rng: Rng) -> Case:
    (outer, inner, columns), kind = matmul_shapes(rng), kind_of(rng)
    per_column = rng.random() < 0.5
    count = [columns] if per_column else []
    zero = weight(rng, 1, columns, kind)[0]
    return Case(
        [
            floats(rng, *outer, inner),
            Fixed(weight(rng, inner, columns, kind)),
            Fixed(rng.uniform(0.01, 0.1, count).astype(np.float32)),
            maybe(rng, Fixed(zero if per_column else number(zero[0], kind))),
            maybe(rng, floats(rng, columns)),
        ]
    )


def gemm(rng: Rng) -> Case:
    rows, inner, columns = sizes(rng, 3, 9)
    first, second = kinds_of_product(rng)
    trans_a, trans_b = (int(n) for n in rng.integers(0, 2, 2))
    a = bytes_of(rng, (inner, rows) if trans_a else (rows, inner), first)
    b = weight(rng, *((columns, inner) if trans_b else (inner, columns)), second)
    per_column = rng.random() < 0.5
    count = [columns] if per_column else []
    zero = weight(rng, 1, columns, second)[0]
    y = result(rng, first, can_omit=False) if rng.random() < 0.6 else [None, None]
    bias = rng.integers(-99, 99, (columns,)).astype(np.int32)
    attributes = {"transA": trans_a, "transB": trans_b, "alpha": float(rng.uniform(0.5, 2))}
    return Case(
        [
            *(a, scale(rng), bytes_of(rng, (), first)),
            Fixed(b),
            Fixed(rng.uniform(0.01, 0.1, count).astype(np.float32)),
            Fixed(zero if per_column else number(zero[0], second)),
            maybe(rng, bias),
            *y,
        ],
        attributes,
        steps=1,
    )


def quantize(rng: Rng) -> Case:
    kind = rng.choice([np.uint8, np.int8, np.uint16, np.int16])
    shape = sizes(rng, 3)
    axis = int(rng.integers(-3, 3))
    count = [shape[axis]] if rng.random() < 0.5 else []
    scales = rng.uniform(0.01, 0.1, count).astype(np.float32)
    return Case([floats(rng, *shape), scales, bytes_of(rng, count, kind)], {"axis": axis}, steps=1)


def dequantize(rng: Rng) -> Case:
    kind = rng.choice([np.uint8, np.int8, np.uint16, np.int16])
    shape = sizes(rng, 3)
    axis = int(rng.integers(-3, 3))
    count = [shape[axis]] if rng.random() < 0.5 else []
    scales = rng.uniform(0.01, 0.1, count).astype(np.float32)
    zero = maybe(rng, bytes_of(rng, count, kind))
    return Case([bytes_of(rng, shape, kind), scales, zero], {"axis": axis})


GENERATORS: dict[str, Generator] = {
    "DequantizeLinear": dequantize,
    "DynamicQuantizeMatMul": dynamic_matmul,
    "MatMulIntegerToFloat": integer_to_float,
    "QGemm": gemm,
    "QLinearAdd": binary,
    "QLinearAveragePool": average,
    "QLinearConcat": concat,
    "QLinearGlobalAveragePool": global_average,
    "QLinearLeakyRelu": leaky_relu,
    "QLinearMul": binary,
    "QLinearSigmoid": unary,
    "QLinearSoftmax": softmax,
    "QLinearWhere": where,
    "QuantizeLinear": quantize,
}


@quick_cases(GENERATORS)
def test_random_nodes(op: str, seed: int) -> None:
    check_random(op, GENERATORS[op], seed)


@pytest.mark.slow
@pytest.mark.parametrize("op", GENERATORS)
def test_many_random_nodes(op: str) -> None:
    check_many(op, GENERATORS[op])
