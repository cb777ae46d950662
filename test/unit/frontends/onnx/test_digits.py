"""Ops of several steps keep the digits that their results can have."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import helper

import braid
from braid.analysis.interpreter import interpret
from braid.frontends.onnx import import_onnx
from test.unit.frontends.onnx.conftest import graph_of, model_of

Function = Callable[..., Any]

HALF = {"f16": (np.float16, 2.0**-11), "bf16": (ml_dtypes.bfloat16, 2.0**-8)}
"""Types, and the half of a unit in the last place of 1."""

X = np.linspace(-3.5, 3.5, 501)
A, B, C = (np.random.default_rng(7).uniform(0.5, 1, shape) for shape in ((5, 40), (40, 7), (7,)))


def softplus(x: Any) -> Any:
    return np.logaddexp(0, x)


OPS: dict[str, tuple[dict[str, Any], list[Any], Function]] = {
    "LeakyRelu": ({"alpha": 0.3}, [X], lambda x: np.where(x < 0, 0.3 * x, x)),
    "ThresholdedRelu": ({"alpha": 0.3}, [X], lambda x: np.where(x > 0.3, x, 0)),
    "HardSigmoid": ({}, [X], lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    "HardSwish": ({}, [X], lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "Shrink": (
        {"lambd": 0.3, "bias": 0.1},
        [X],
        lambda x: np.where(x < -0.3, x + 0.1, np.where(x > 0.3, x - 0.1, 0)),
    ),
    "Mish": ({}, [X], lambda x: x * np.tanh(softplus(x))),
    "Mean": ({}, [X, X**2, X**3], lambda *x: sum(x) / 3),
    "Gemm": ({"alpha": 0.3, "beta": 0.7}, [A, B, C], lambda a, b, c: 0.3 * a @ b + 0.7 * c),
    "MeanVarianceNormalization": (
        {"axes": [1]},
        [A],
        lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True),
    ),
}


@pytest.mark.parametrize("kind", HALF)
@pytest.mark.parametrize("op", OPS)
def test_of_16_bit_floats_the_result_alone_is_rounded(op: str, kind: str) -> None:
    """Attributes are not rounded to 16 bits, nor is what is between them and the result."""
    attributes, operands, exact = OPS[op]
    dtype, half_a_unit = HALF[kind]
    inputs = {f"x{i}": operand.astype(dtype) for i, operand in enumerate(operands)}
    graph = graph_of([helper.make_node(op, list(inputs), ["y"], **attributes)], inputs, ["y"])
    imported = import_onnx(model_of(graph))
    result = interpret(imported.module, list(inputs.values()), parameters=imported.parameters)[0]
    expected = exact(*(operand.astype(np.float64) for operand in inputs.values()))
    error = np.abs(result.astype(np.float64) - expected)
    # A unit is up to twice as large by the number at the start of a binade; products are summed up
    # in f32 and rounded once more.
    steps = 2 if op == "Gemm" else 1
    assert (error <= steps * half_a_unit * np.abs(expected) * 1.01 + 1e-6).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("op", "exact"),
    [("Softplus", softplus), ("Mish", lambda x: x * np.tanh(softplus(x)))],
)
def test_softplus_keeps_the_digits_of_small_results(op: str, exact: Function, dtype: Any) -> None:
    """Down to denormal numbers: log(1 + exp(x)) alone is 0 from -17 on."""
    x = np.concatenate([np.linspace(-80, 80, 1601), np.linspace(-1e-3, 1e-3, 11)]).astype(dtype)
    graph = graph_of([helper.make_node(op, ["x"], ["y"])], {"x": x}, ["y"])
    result = np.asarray(braid.compile(model_of(graph, 22), cache=False)(x))
    expected = exact(x.astype(np.longdouble))
    np.testing.assert_allclose(result, expected, rtol=16 * np.finfo(dtype).eps)
