"""Ops that become many: recurrent networks, einsum, quantization."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from braid.analysis.interpreter import interpret
from braid.support.errors import BraidError

Check = Callable[..., Any]
RNG = np.random.default_rng(2)


def random(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("op_type", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent(check_session: Check, op_type: str, gates: int, direction: str) -> None:
    """Sequences of different lengths, against ONNX Runtime (ONNX's evaluator knows no reverse)."""
    time, batch, inputs, hidden = 5, 3, 4, 6
    ways = 2 if direction == "bidirectional" else 1
    states = [random(ways, batch, hidden)] * (2 if op_type == "LSTM" else 1)
    check_session(
        op_type,
        random(time, batch, inputs),
        random(ways, gates * hidden, inputs),
        random(ways, gates * hidden, hidden),
        random(ways, 2 * gates * hidden),
        np.array([5, 2, 4], np.int32),
        *states,
        outputs=3 if op_type == "LSTM" else 2,
        hidden_size=hidden,
        direction=direction,
    )


def test_recurrent_variants(check_session: Check) -> None:
    x, weights = random(3, 2, 4), (random(1, 15, 4), random(1, 15, 5), random(1, 30))
    check_session("GRU", x, *weights, outputs=2, hidden_size=5, linear_before_reset=1)
    weights = (random(1, 20, 4), random(1, 20, 5), random(1, 40))
    peepholes = (None, None, None, random(1, 15))
    check_session("LSTM", x, *weights, *peepholes, outputs=3, hidden_size=5)


def test_clip_bounds_the_input_of_every_activation(check: Check) -> None:
    """Gates with their peepholes, and the cell before `h`, as the standard words it.

    It says that clipping "is applied to the input of activations", and lists `h` among those. ONNX
    Runtime clips the inputs of `f` and `g` alone; ONNX's evaluator ignores `clip`.
    """

    def expected(_: Any, inputs: dict[str, Any]) -> list[Any]:
        x, w, r, bias, h, c, peepholes = (inputs[f"x{i}"][...] for i in (0, 1, 2, 3, 5, 6, 7))
        (p_i, p_o, p_f), h, c = np.split(peepholes[0], 3), h[0], c[0]

        def sigmoid(v: Any) -> Any:
            return 1 / (1 + np.exp(-np.clip(v, -0.5, 0.5)))

        def tanh(v: Any) -> Any:
            return np.tanh(np.clip(v, -0.5, 0.5))

        outputs: list[Any] = []
        for step in x:
            gates = step @ w[0].T + h @ r[0].T + sum(np.split(bias[0], 2))
            i, o, f, g = np.split(gates, 4, -1)
            c = sigmoid(f + p_f * c) * c + sigmoid(i + p_i * c) * tanh(g)
            h = sigmoid(o + p_o * c) * tanh(c)
            outputs.append(h)
        return [np.stack(outputs)[:, None], h[None], c[None]]

    states = (None, random(1, 2, 3), 2 * random(1, 2, 3))
    arrays = (random(4, 2, 3), random(1, 12, 3), random(1, 12, 3), random(1, 24), *states)
    check(
        "LSTM", *arrays, random(1, 9), outputs=3, oracle=expected, hidden_size=3, clip=0.5, opset=14
    )


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("op_type", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_sequences_without_steps(
    check: Check, check_session: Check, op_type: str, gates: int, direction: str
) -> None:
    """Their last states are 0, as in ONNX Runtime, whatever the first ones are."""
    ways, states = 2 if direction == "bidirectional" else 1, 2 if op_type == "LSTM" else 1
    weights = (random(ways, gates * 3, 2), random(ways, gates * 3, 3), random(ways, gates * 6))
    more = {"hidden_size": 3, "direction": direction, "outputs": 1 + states}
    starts = [random(ways, 3, 3) for _ in range(states)]
    lengths = np.array([0, 4, 0], np.int32)
    check_session(op_type, random(4, 3, 2), *weights, lengths, *starts, **more)

    def zeros(*_: Any) -> list[Any]:  # ONNX Runtime ends the process for a GRU
        last = np.zeros((ways, 3, 3), np.float32)
        return [np.zeros((0, ways, 3, 3), np.float32), *[last] * states]

    check(op_type, random(0, 3, 2), *weights, None, *starts, oracle=zeros, **more)


def test_a_clip_below_zero_is_refused(check: Check) -> None:
    x, weights = random(3, 2, 4), (random(1, 5, 4), random(1, 5, 5))
    with pytest.raises(BraidError, match=r"clip is -1\.0, expected at least 0"):
        check("RNN", x, *weights, outputs=2, hidden_size=5, clip=-1.0)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("...i,...i->...", [(2, 3, 4), (2, 3, 4)]),
        ("...ii->...i", [(2, 3, 3)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("i,j,k->kji", [(2,), (3,), (4,)]),
        ("ij->", [(2, 3)]),
        ("abc->cab", [(2, 3, 4)]),
        ("ij,jk->ik", [(0, 3), (3, 4)]),
        ("ij,jk->ik", [(2, 0), (0, 4)]),
        ("...i,...i->...", [(0, 1, 3), (1, 2, 3)]),
        ("BAj,...JB->Aj...J", [(2, 3, 4), (5, 1, 3, 2)]),  # letters are no dims of the ellipsis
        ("Ca,AB", [(2, 3), (4, 5)]),
        ("J", [(3,)]),
        ("J->...", [(3,)]),
        ("...ii", [(2, 3, 3)]),
        ("iJi...i->J...i", [(2, 3, 2, 4, 2)]),
        ("jjkk->kj", [(2, 2, 3, 3)]),
        ("ij,jk->ik", [(2, 3), (1, 4)]),
        ("ij,i->j", [(1, 3), (4,)]),
        ("...ij,...->i", [(3, 4), ()]),
    ],
)
def test_einsum(check: Check, equation: str, shapes: list[tuple[int, ...]]) -> None:
    check("Einsum", *(random(*shape) for shape in shapes), equation=equation, tolerance=1e-4)


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("...ii->i", [(2, 3, 3)], "has no ellipsis, which stands for 1 dims of inputs"),
        ("...i,...->...i", [(2, 3), (2, 3)], "1 dims of input 0, 2 dims of input 1"),
        ("ij->ii", [(2, 3)], "has 'i' more than once"),
        ("ij->k", [(2, 3)], "has 'k', which no input has"),
        ("ij->i", [(2, 3, 4)], "input 0 has rank 3, but its term is 'ij'"),
        ("ijk->i", [(2, 3)], "input 0 has rank 2, but its term is 'ijk'"),
        ("ii->i", [(2, 3)], "'i' stands for 2 and for 3 in one input"),
        ("ii->i", [(1, 3)], "'i' stands for 1 and for 3 in one input"),
        ("ij,jk->ik", [(2, 3), (4, 5)], "'j' stands for 3 and for 4"),
        ("i1->i", [(2, 3)], "'i1->i' is not one of letters"),
        ("......i->i", [(2, 3)], "is not one of letters"),
        ("i->j->i", [(2,)], "is not one of letters"),
        ("ij,jk->ik", [(2, 3)], "has 2 terms, expected 1"),
    ],
)
def test_equations_that_say_nothing(
    check: Check, equation: str, shapes: list[tuple[int, ...]], message: str
) -> None:
    """What ONNX Runtime refuses too; numpy takes ellipses of different ranks, ONNX does not."""
    with pytest.raises(BraidError, match=message):
        check("Einsum", *(random(*shape) for shape in shapes), equation=equation)


@pytest.mark.parametrize("x", [np.zeros((2, 3)), np.full((2, 3), -0.0), np.zeros(())])
def test_a_range_of_no_width_has_a_scale(check: Check, x: Any) -> None:
    """1 / 255 as in ONNX's evaluator; the standard's function has 0, ONNX Runtime 1."""
    imported = check("DynamicQuantizeLinear", x.astype(np.float32), outputs=3)
    _, scale, _ = interpret(imported.module, {"x0": x.astype(np.float32)})
    assert scale == np.float32(1) / np.float32(255)


def test_quantization(check: Check) -> None:
    x, scale = random(2, 3, 4), np.array([0.1, 0.2, 0.05], np.float32)
    zero = np.array([3, 128, 250], np.uint8)
    check("QuantizeLinear", x, scale, zero, axis=1, opset=19)
    check("DequantizeLinear", (x * 100).astype(np.uint8), scale, zero, axis=1, opset=19)
    a = RNG.integers(0, 255, (4, 3), np.uint8)
    check("MatMulInteger", a, a.T.copy(), np.array(7, np.uint8), np.array(12, np.uint8))
    check("DynamicQuantizeLinear", x, outputs=3)


def test_quantized_convolution(check_session: Check) -> None:
    x, w = RNG.integers(0, 255, (1, 3, 6, 6), np.uint8), RNG.integers(-9, 9, (4, 3, 3, 3), np.int8)
    scales = np.array([0.02, 0.03, 0.01, 0.05], np.float32)
    check_session(
        "QLinearConv",
        x,
        np.array(0.1, np.float32),
        np.array(120, np.uint8),
        w,
        scales,
        np.zeros(4, np.int8),
        np.array(0.4, np.float32),
        np.array(100, np.uint8),
        np.arange(4, dtype=np.int32),
        pads=[1, 1, 1, 1],
    )


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_grid_sample(check_session: Check, mode: str, padding: str) -> None:
    x, grid = random(2, 3, 5, 6), RNG.uniform(-1.4, 1.4, (2, 4, 3, 2)).astype(np.float32)
    for align in (0, 1):
        attributes = {"mode": mode, "padding_mode": padding, "align_corners": align}
        check_session("GridSample", x, grid, opset=20, tolerance=1e-4, **attributes)


def test_fourier(check: Check) -> None:
    axis = [np.array(1)]
    check("DFT", random(2, 10, 1), None, axis, opset=20, onesided=1)
    check("DFT", random(2, 9, 2), [np.array(12)], axis, opset=20)
    check("DFT", random(2, 9, 2), None, axis, opset=20, inverse=1)
    check("DFT", random(2, 9, 3, 1), opset=17, axis=2)


def test_col2im(check: Check) -> None:
    image, block = [np.array([5, 6])], [np.array([2, 3])]
    check("Col2Im", random(2, 12, 16), image, block)
    check("Col2Im", random(1, 6, 9), image, block, strides=[2, 2], pads=[1, 1, 0, 1])
