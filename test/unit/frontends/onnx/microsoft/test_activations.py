"""Activation functions and normalizations: random nodes beside ONNX Runtime."""

import math
from typing import Any

import numpy as np
import pytest

from test.unit.frontends.onnx.microsoft.harness import (
    QUICK,
    Array,
    Case,
    Generator,
    Rng,
    arrays_of,
    check,
    check_many,
    check_random,
    floats,
    maybe,
    quick_cases,
    refusal,
    sizes,
)

HALF = 2e-3


def kind_of(rng: Rng) -> Any:
    return np.float16 if rng.random() < 0.3 else np.float32


def tolerance(kind: Any) -> float:
    return HALF if kind == np.float16 else 2e-5


def gelu(rng: Rng) -> Case:
    return Case([floats(rng, *sizes(rng, int(rng.integers(1, 5))))])


def bias_gelu(rng: Rng) -> Case:
    shape = sizes(rng, int(rng.integers(1, 5)))
    return Case([floats(rng, *shape), floats(rng, shape[-1])])


def fast_gelu(rng: Rng) -> Case:
    kind, shape = kind_of(rng), sizes(rng, int(rng.integers(1, 5)))
    bias = maybe(rng, floats(rng, shape[-1], kind=kind))
    return Case([floats(rng, *shape, kind=kind), bias], tolerance=tolerance(kind))


def quick_gelu(rng: Rng) -> Case:
    attributes = {"alpha": float(rng.uniform(0.5, 3))} if rng.random() < 0.7 else {}
    return Case([floats(rng, *sizes(rng, int(rng.integers(1, 5))))], attributes)


def skip_shape(rng: Rng, shape: list[int]) -> list[int]:
    shapes = [shape, [1, *shape[1:]], shape[1:]] if len(shape) == 3 else [shape]
    return shapes[rng.integers(0, len(shapes))]


def skip_layer_norm(rng: Rng) -> Case:
    kind, shape = kind_of(rng), sizes(rng, int(rng.integers(2, 4)))
    operands = [
        floats(rng, *shape, kind=kind),
        floats(rng, *skip_shape(rng, shape), kind=kind),
        floats(rng, shape[-1], kind=kind),
        maybe(rng, floats(rng, shape[-1], kind=kind)),
        maybe(rng, floats(rng, shape[-1], kind=kind)),
    ]
    outputs = (0, 3) if rng.random() < 0.5 else (0,)
    # ONNX Runtime subtracts squares for the variance, which rounds small ones.
    attributes = {"epsilon": float(rng.uniform(1e-4, 1e-1))}
    return Case(operands, attributes, outputs, tolerance=max(5e-4, tolerance(kind)))


def skip_simplified(rng: Rng) -> Case:
    kind, shape = kind_of(rng), sizes(rng, int(rng.integers(2, 4)))
    operands = [
        floats(rng, *shape, kind=kind),
        floats(rng, *skip_shape(rng, shape), kind=kind),
        floats(rng, shape[-1], kind=kind),
        maybe(rng, floats(rng, shape[-1], kind=kind)),
    ]
    outputs = (0, 3) if rng.random() < 0.5 else (0,)
    attributes = {"epsilon": float(rng.uniform(1e-6, 1e-2))}
    return Case(operands, attributes, outputs, tolerance=tolerance(kind))


def simplified(rng: Rng) -> Case:
    kind = rng.choice([np.float16, np.float32, np.float64])
    shape = sizes(rng, int(rng.integers(1, 5)))
    axis = int(rng.integers(0, len(shape)))
    attributes: dict[str, Any] = {"axis": axis - len(shape) if rng.random() < 0.5 else axis}
    if rng.random() < 0.5:
        attributes["epsilon"] = float(rng.uniform(1e-6, 1e-2))
    operands = [floats(rng, *shape, kind=kind), floats(rng, *shape[axis:], kind=kind)]
    outputs = (0, 1) if kind == np.float32 and rng.random() < 0.5 else (0,)
    return Case(operands, attributes, outputs, tolerance=tolerance(kind))


def embed_layer_norm(rng: Rng) -> Case:
    batch, length, hidden = sizes(rng, 3)
    words, places, segments = (int(n) for n in rng.integers(6, 12, 3))

    def indices(most: int, rows: int = batch) -> Array:
        return rng.integers(0, most, (rows, length)).astype(np.int32)

    has_segments = rng.random() < 0.6
    operands = [
        indices(words),
        indices(segments) if has_segments else None,
        floats(rng, words, hidden),
        floats(rng, places, hidden),
        floats(rng, segments, hidden) if has_segments else None,
        floats(rng, hidden),
        floats(rng, hidden),
        maybe(rng, indices(2)),
        maybe(rng, indices(places, rows=int(rng.choice([1, batch])))),
    ]
    outputs = (0, 1, 2) if rng.random() < 0.5 else (0, 1)
    attributes = {"epsilon": float(rng.uniform(1e-4, 1e-2))}
    return Case(operands, attributes, outputs, tolerance=2e-4)


GENERATORS: dict[str, Generator] = {
    "BiasGelu": bias_gelu,
    "EmbedLayerNormalization": embed_layer_norm,
    "FastGelu": fast_gelu,
    "Gelu": gelu,
    "QuickGelu": quick_gelu,
    "SkipLayerNormalization": skip_layer_norm,
    "SkipSimplifiedLayerNormalization": skip_simplified,
}


@quick_cases(GENERATORS)
def test_random_nodes(op: str, seed: int) -> None:
    check_random(op, GENERATORS[op], seed)


@pytest.mark.parametrize("seed", range(QUICK))
def test_simplified_layer_normalization(seed: int) -> None:
    check_random("SimplifiedLayerNormalization", simplified, seed, domain="")


@pytest.mark.slow
@pytest.mark.parametrize("op", GENERATORS)
def test_many_random_nodes(op: str) -> None:
    check_many(op, GENERATORS[op])


@pytest.mark.slow
def test_many_simplified_layer_normalizations() -> None:
    check_many("SimplifiedLayerNormalization", simplified, domain="")


@pytest.mark.parametrize("seed", range(QUICK))
def test_bias_split_gelu(seed: int) -> None:
    """ONNX Runtime has no kernel of it for CPUs."""
    rng = np.random.default_rng(seed)
    batch, length, half = sizes(rng, 3)
    case = Case([floats(rng, batch, length, 2 * half), floats(rng, 2 * half)])
    x, bias = arrays_of(case).values()
    left, right = np.split((x + bias).astype(np.float64), 2, axis=-1)
    normal = 0.5 * (1 + np.vectorize(math.erf)(right / math.sqrt(2)))
    check("BiasSplitGelu", case, expected=[(left * right * normal).astype(np.float32)])


def test_statistics_of_a_sum() -> None:
    """ONNX Runtime computes no mean and no factor on CPUs."""
    rng = np.random.default_rng(0)
    case = Case(
        [floats(rng, 3, 5, 4), floats(rng, 5, 4), floats(rng, 4)], {"epsilon": 1e-5}, range(4)
    )
    x, skip, gamma = arrays_of(case).values()
    total = x + skip
    mean = total.mean(-1, keepdims=True)
    factor = 1 / np.sqrt(total.var(-1, keepdims=True) + np.float32(1e-5))
    expected = [(total - mean) * factor * gamma, mean, factor, total]
    check("SkipLayerNormalization", case, expected=expected)


@pytest.mark.parametrize(
    ("op", "case", "message"),
    [
        ("BiasGelu", [(2, 3), (2,)], r"input 1 has shape \[2\]"),
        ("FastGelu", [(2, 3), (1, 3)], r"input 1 has shape \[1, 3\]"),
        ("BiasSplitGelu", [(2, 3), (3,)], "the last dim is 3, expected an even one"),
        ("SkipLayerNormalization", [(2, 3, 4), (2, 3, 1), (4,)], r"expected \[2, 3, 4\] or \[1, 3"),
        ("SkipLayerNormalization", [(2, 3, 4), (3, 4), (3,)], r"has shape \[3\], expected \[4\]"),
        ("SkipSimplifiedLayerNormalization", [(4,), (4,), (4,)], "expected 2 or 3 dims"),
    ],
)
def test_refused(op: str, case: list[tuple[int, ...]], message: str) -> None:
    refusal(op, Case([np.ones(shape, np.float32) for shape in case]), message)
