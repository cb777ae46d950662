"""Nodes of which one operand or attribute is wrong: imported, or refused by name with a reason."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from braid.frontends.onnx import import_onnx
from braid.support.errors import BraidError
from test.unit.frontends.onnx.microsoft import (
    test_activations,
    test_attention,
    test_fused,
    test_group_query,
    test_quantized,
    test_quantized_lstm,
)
from test.unit.frontends.onnx.microsoft.harness import (
    Array,
    Case,
    Fixed,
    Generator,
    Rng,
    model_of,
    refusal,
)

GENERATORS: Mapping[str, Generator] = {
    **test_activations.GENERATORS,
    **test_attention.GENERATORS,
    **test_fused.GENERATORS,
    **test_group_query.GENERATORS,
    **test_quantized.GENERATORS,
    "DynamicQuantizeLSTM": test_quantized_lstm.lstm,
}
VARIANTS = 40


def damaged(rng: Rng, array: Array) -> Array:
    """Return the array with another extent, a dim more or a dim less."""
    form = rng.integers(0, 3)
    if form == 0 or not array.ndim:
        return array[None]
    if form == 1 and array.shape[0]:
        return array[0]
    axis = rng.integers(0, array.ndim)
    return np.concatenate([array, array], axis)


def damage(rng: Rng, case: Case) -> Case:
    operands, attributes = list(case.operands), dict(case.attributes)
    numbers = [name for name, value in attributes.items() if isinstance(value, int)]
    if numbers and rng.random() < 0.3:
        attributes[rng.choice(numbers)] += int(rng.choice([-3, -1, 1, 5]))
        return replace(case, attributes=attributes)
    index = rng.choice([i for i, each in enumerate(operands) if each is not None])
    chosen = operands[index]
    if rng.random() < 0.2:
        operands[index] = None
    elif isinstance(chosen, Fixed):
        operands[index] = Fixed(damaged(rng, chosen.array))
    elif chosen is not None:
        operands[index] = damaged(rng, chosen)
    return replace(case, operands=operands)


@pytest.mark.parametrize("op", GENERATORS)
def test_damaged_nodes(op: str) -> None:
    refused = 0
    for seed in range(VARIANTS):
        rng = np.random.default_rng([seed, len(op), 1])
        case = damage(rng, GENERATORS[op](rng))
        try:
            import_onnx(model_of(op, case, "com.microsoft"))
        except BraidError as error:
            refused += 1
            assert "node 'node'" in str(error), str(error)
            assert "bug of braid" not in str(error), str(error)
    assert refused


def numbers(*shapes: tuple[int, ...]) -> list[Array]:
    return [np.ones(shape, np.float32) for shape in shapes]


BYTES, ZERO = np.ones((2, 3), np.uint8), np.array(1, np.uint8)
ONE = np.array(0.1, np.float32)


@pytest.mark.parametrize(
    ("op", "case", "message"),
    [
        ("QLinearSoftmax", Case([BYTES, *[ONE, ZERO] * 2], {"opset": 13, "axis": 2}), "to 1"),
        ("QLinearConcat", Case([ONE, ZERO, BYTES, ONE], {"axis": 0}), "it has 4 inputs, expected"),
        ("QLinearAdd", Case([BYTES, BYTES, ZERO, BYTES, ONE, ZERO, ONE, ZERO]), "input 1 "),
        ("QLinearSigmoid", Case([BYTES, np.ones(3, np.float32), ZERO, ONE]), "expected one number"),
        ("QGemm", Case([BYTES, ONE, ZERO, BYTES, ONE, ZERO, None, ONE], {"transB": 1}), "only one"),
        ("DequantizeLinear", Case([BYTES, np.ones(3, np.float32)], {"axis": 4}), "'axis' is 4"),
        ("Attention", Case(numbers((1, 2, 4), (4, 12)), {"num_heads": 2, "unidirectional": 2}),
         "attribute 'unidirectional' is 2, expected 0 or 1"),
        ("DynamicQuantizeMatMul", Case([*numbers((2, 2)), BYTES, *numbers((2,))]),
         r"input 2 has shape \[2\], expected one number or \[3\] or \[1, 3\]"),
    ],
)  # fmt: skip
def test_refused(op: str, case: Case, message: str) -> None:
    refusal(op, case, message)
