"""`RNN`, `GRU` and `LSTM` with any activations and attributes, against ONNX Runtime."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnxruntime import InferenceSession

from braid.support.errors import BraidError, UnsupportedError

Check = Callable[..., Any]
Array = np.ndarray[Any, np.dtype[Any]]

ACTIVATIONS = {
    "Affine": 2,
    "Elu": 1,
    "HardSigmoid": 2,
    "LeakyRelu": 1,
    "Relu": 0,
    "ScaledTanh": 2,
    "Sigmoid": 0,
    "Softplus": 0,
    "Softsign": 0,
    "Tanh": 0,
    "ThresholdedRelu": 1,
}
"""How many numbers each takes: none, alpha, or alpha and beta."""
CELLS = {"RNN": (1, 1, 1), "GRU": (3, 1, 2), "LSTM": (4, 2, 3)}
"""Gates, states and activations."""
TIME, BATCH, INPUTS, HIDDEN = 4, 3, 2, 3


def session_of_first_layout(model: Any, inputs: dict[str, Array]) -> list[Array]:
    """Return ONNX Runtime's results for inputs `[batch, time, …]`, which it does not support
    itself."""
    (attribute,) = (each for each in model.graph.node[0].attribute if each.name == "layout")
    attribute.i = 0
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if len(dims) == 3 and value.name in ("x0", "x5", "x6"):
            dims[0].dim_value, dims[1].dim_value = dims[1].dim_value, dims[0].dim_value
    swapped = {
        name: x.swapaxes(0, 1) if name in ("x0", "x5", "x6") else x for name, x in inputs.items()
    }
    every, *last = InferenceSession(model.SerializeToString()).run(None, swapped)
    return [every.transpose(2, 0, 1, 3), *(each.transpose(1, 0, 2) for each in last)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("op_type", CELLS)
def test_random(check: Check, check_session: Check, op_type: str, seed: int) -> None:
    random = np.random.default_rng([seed, *op_type.encode()])
    gates, states, functions = CELLS[op_type]
    direction = str(random.choice(["forward", "reverse", "bidirectional"]))
    ways = 2 if direction == "bidirectional" else 1

    def normal(*shape: int) -> Array:
        return 0.7 * random.standard_normal(shape, np.float32)

    def optional(array: Array) -> Array | None:
        return array if random.random() < 0.5 else None

    names = [str(each) for each in random.choice([*ACTIVATIONS], functions * ways)]
    numbers = {
        attribute: random.uniform(0.1, 1, sum(ACTIVATIONS[name] >= least for name in names))
        for least, attribute in ((1, "activation_alpha"), (2, "activation_beta"))
    }
    attributes: dict[str, Any] = {name: [*map(float, x)] for name, x in numbers.items() if len(x)}
    if op_type == "GRU":
        attributes["linear_before_reset"] = int(random.integers(2))
    if op_type == "LSTM":
        attributes["input_forget"] = int(random.integers(2))
    elif random.random() < 0.5:  # of an LSTM, see `test_clip_bounds_the_input_of_every_activation`
        attributes["clip"] = 0.6
    layout = int(random.integers(2))
    if layout:
        attributes["layout"] = 1
    state = (BATCH, ways, HIDDEN) if layout else (ways, BATCH, HIDDEN)
    arrays: list[Array | None] = [
        normal(BATCH, TIME, INPUTS) if layout else normal(TIME, BATCH, INPUTS),
        normal(ways, gates * HIDDEN, INPUTS),
        normal(ways, gates * HIDDEN, HIDDEN),
        optional(normal(ways, 2 * gates * HIDDEN)),
        optional(random.integers(1, TIME + 1, BATCH, np.int32)),
        *(optional(normal(*state)) for _ in range(states)),
    ]
    if op_type == "LSTM":
        arrays.append(optional(normal(ways, 3 * HIDDEN)))
    attributes |= {"direction": direction, "hidden_size": HIDDEN, "activations": names}
    oracle = {"oracle": session_of_first_layout} if layout else {}
    run = check if layout else check_session
    run(op_type, *arrays, outputs=1 + states, **oracle, **attributes)


def operands() -> list[Array]:
    return [np.zeros(shape, np.float32) for shape in ((3, 2, 4), (1, 5, 4), (1, 5, 5))]


@pytest.mark.parametrize(
    ("message", "attributes"),
    [
        (
            "activation 'Affine' needs a number in activation_beta: it has no default",
            {"activations": ["Affine"], "activation_alpha": [1.0]},
        ),
        (
            "activation_alpha has 1 more than its activations take",
            {"activations": ["LeakyRelu"], "activation_alpha": [1.0, 2.0]},
        ),
        ("2 activations are named, expected 1", {"activations": ["Tanh", "Tanh"]}),
    ],
)
def test_numbers_that_do_not_fit(
    check_session: Check, message: str, attributes: dict[str, Any]
) -> None:
    with pytest.raises(BraidError, match=message):
        check_session("RNN", *operands(), outputs=2, hidden_size=5, **attributes)


def test_unknown_activation(check_session: Check) -> None:
    with pytest.raises(UnsupportedError, match="activation 'Sigmoidal' is not") as caught:
        check_session("RNN", *operands(), outputs=2, hidden_size=5, activations=["Sigmoidal"])
    assert caught.value.hint == "did you mean 'Sigmoid'?"
