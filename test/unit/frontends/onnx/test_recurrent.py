"""`RNN`, `GRU` and `LSTM` with any activations and attributes, against ONNX Runtime."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from onnxruntime import InferenceSession

from braid.analysis.interpreter import interpret
from braid.frontends.onnx import import_onnx
from braid.passes.sizes.bind_sizes import bind_sizes
from braid.support.errors import BraidError, UnsupportedError
from test.unit.frontends.onnx.conftest import onnx_runtime

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
"""The number of parameters of each: none, alpha, or alpha and beta."""
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


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("op_type", CELLS)
def test_random(check: Check, op_type: str, seed: int) -> None:
    random = np.random.default_rng([seed, *op_type.encode()])
    gates, states, functions = CELLS[op_type]
    time, batch, inputs, hidden = (int(n) for n in random.integers(1, 6, 4))
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
    state = (batch, ways, hidden) if layout else (ways, batch, hidden)
    arrays: list[Array | None] = [
        normal(batch, time, inputs) if layout else normal(time, batch, inputs),
        normal(ways, gates * hidden, inputs),
        normal(ways, gates * hidden, hidden),
        optional(normal(ways, 2 * gates * hidden)),
        optional(random.integers(1, time + 1, batch, np.int32)),
        *(optional(normal(*state)) for _ in range(states)),
    ]
    if op_type == "LSTM":
        arrays.append(optional(normal(ways, 3 * hidden)))
    attributes |= {"direction": direction, "hidden_size": hidden, "activations": names}
    oracle = session_of_first_layout if layout else onnx_runtime

    def also_open(model: ModelProto, inputs: dict[str, Array]) -> list[Array]:
        expected = oracle(ModelProto.FromString(model.SerializeToString()), inputs)
        check_open(model, inputs, expected, ("batch", "time") if layout else ("time", "batch"))
        return expected

    check(op_type, *arrays, outputs=1 + states, oracle=also_open, **attributes)


def check_open(
    model: ModelProto, inputs: dict[str, Array], expected: list[Array], names: tuple[str, str]
) -> None:
    """Check the model with the open dims `time` and `batch`."""
    sizes = dict(zip(names, inputs["x0"].shape, strict=False))
    places = {"x0": dict(enumerate(names)), "x4": {0: "batch"}}
    places |= {key: {names.index("batch"): "batch"} for key in ("x5", "x6")}
    for value in model.graph.input:
        for dim, name in places.get(value.name, {}).items():
            value.type.tensor_type.shape.dim[dim].dim_param = name
    imported = import_onnx(model, keep_open=True)
    bind_sizes(imported.module, sizes)
    results = interpret(imported.module, inputs, parameters=imported.parameters)
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)


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
