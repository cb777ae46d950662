"""`DynamicQuantizeLSTM`: random nodes beside ONNX Runtime, and nodes that are refused."""

from typing import Any

import numpy as np
import pytest

from test.unit.frontends.onnx.microsoft.harness import (
    QUICK,
    Case,
    Fixed,
    Rng,
    check_many,
    check_random,
    floats,
    maybe,
    refusal,
    sizes,
)

OP = "DynamicQuantizeLSTM"


def weight(rng: Rng, directions: int, rows: int, columns: int, kind: Any) -> list[Fixed]:
    """Return a weight, its scale and its zero point; ONNX Runtime takes only equal zero points."""
    least = 0 if kind == np.uint8 else -63
    shape = [directions, columns] if rng.random() < 0.5 else [directions]
    zero = 0 if kind == np.int8 else int(rng.integers(40, 90))
    return [
        Fixed(rng.integers(least, least + 127, (directions, rows, columns)).astype(kind)),
        Fixed(rng.uniform(0.005, 0.02, shape).astype(np.float32)),
        Fixed(np.full(shape, zero, kind)),
    ]


def lstm(rng: Rng) -> Case:
    time, batch, inputs, hidden = sizes(rng, 4)
    direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
    directions = 2 if direction == "bidirectional" else 1
    kind = rng.choice([np.uint8, np.int8])
    w, w_scale, w_zero = weight(rng, directions, inputs, 4 * hidden, kind)
    r, r_scale, r_zero = weight(rng, directions, hidden, 4 * hidden, kind)
    lengths = rng.integers(1, time + 1, batch).astype(np.int32)
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if rng.random() < 0.3:
        attributes["activations"] = ["Sigmoid", "Elu", "Tanh"] * directions
        attributes["activation_alpha"] = [0.5] * directions
    if rng.random() < 0.3:
        attributes["input_forget"] = 1
    operands = [
        floats(rng, time, batch, inputs),
        *(w, r),
        maybe(rng, floats(rng, directions, 8 * hidden)),
        maybe(rng, lengths),
        maybe(rng, floats(rng, directions, batch, hidden)),
        maybe(rng, floats(rng, directions, batch, hidden)),
        floats(rng, directions, 3 * hidden) if rng.random() < 0.2 else None,
        *(w_scale, w_zero, r_scale, r_zero),
    ]
    outputs = [i for i in range(3) if rng.random() < 0.7] or [0]
    # A state near a half is rounded to another byte if it differs in its last bit.
    return Case(operands, attributes, outputs, tolerance=4e-3)


@pytest.mark.parametrize("seed", range(2 * QUICK))
def test_random_nodes(seed: int) -> None:
    check_random(OP, lstm, seed)


@pytest.mark.slow
def test_many_random_nodes() -> None:
    check_many(OP, lstm)


def case(**attributes: Any) -> Case:
    w, w_scale, w_zero = weight(np.random.default_rng(0), 1, 3, 16, np.uint8)
    r, r_scale, r_zero = weight(np.random.default_rng(1), 1, 4, 16, np.uint8)
    x = floats(np.random.default_rng(2), 2, 1, 3)
    none = [None] * 5
    return Case([x, w, r, *none, w_scale, w_zero, r_scale, r_zero], attributes)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"activations": ["Sigmoid", "Selu", "Tanh"]}, "activation 'Selu' is not supported"),
        ({"direction": "both"}, "direction is 'both'"),
        ({"hidden_size": 5}, r"input 1 has shape \[1, 3, 16\], expected \[1, 3, 20\]"),
        ({"layout": 0}, "ONNX Runtime has no attribute 'layout' of this op"),
    ],
)
def test_refused(attributes: dict[str, Any], message: str) -> None:
    refusal(OP, case(**attributes), message)
