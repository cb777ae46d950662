"""The cells of `RNN`, `GRU` and `LSTM`: one step of one direction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from braid.frontends.onnx.activation import hard_sigmoid, sigmoid, softplus, where_negative
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.expressions import apply, matmul, scalar, slice_dim
from braid.frontends.onnx.node import Node

Activation = Callable[[Builder, SSAValue], SSAValue]

_ACTIVATIONS: dict[str, Activation] = {
    "hardsigmoid": lambda b, x: hard_sigmoid(b, x, 0.2, 0.5),
    "leakyrelu": lambda b, x: where_negative(b, x, apply(b, "mul", x, scalar(b, 0.01, x)), x),
    "relu": lambda b, x: apply(b, "maximum", x, scalar(b, 0, x)),
    "sigmoid": sigmoid,
    "softplus": softplus,
    "softsign": lambda b, x: apply(
        b, "div", x, apply(b, "add", apply(b, "abs", x), scalar(b, 1, x))
    ),
    "tanh": lambda b, x: apply(b, "tanh", x),
}


@dataclass(frozen=True)
class Weights:
    """The weights of one direction.

    `recurrence` is `[hidden, gates · hidden]`, `recurrence_bias` `[gates · hidden]`, what the
    input adds to the gates has the other bias in it. `peepholes` is `[3 · hidden]`.
    """

    hidden: int
    recurrence: SSAValue
    recurrence_bias: SSAValue | None
    peepholes: SSAValue | None
    activations: Sequence[Activation]
    clip: float | None
    is_linear_before_reset: bool

    def gate(self, b: Builder, gates: SSAValue, index: int) -> SSAValue:
        """Gate `index` of `[batch, gates · hidden]`."""
        return slice_dim(b, gates, 1, index * self.hidden, self.hidden)

    def activate(self, b: Builder, which: int, x: SSAValue) -> SSAValue:
        """Activation function number `which` of the kept-in-range x."""
        if self.clip is not None:
            low, high = scalar(b, -self.clip, x), scalar(b, self.clip, x)
            x = apply(b, "minimum", apply(b, "maximum", x, low), high)
        return self.activations[which](b, x)

    def recur(self, b: Builder, h: SSAValue, first: int, count: int) -> SSAValue:
        """What the state adds to gates `first` to `first + count`, with the bias."""
        size = self.hidden
        product = matmul(b, h, slice_dim(b, self.recurrence, 1, first * size, count * size))
        if self.recurrence_bias is None:
            return product
        bias = slice_dim(b, self.recurrence_bias, 0, first * size, count * size)
        return apply(b, "add", product, bias)


Step = Callable[[Builder, Weights, SSAValue, Sequence[SSAValue]], list[SSAValue]]


@dataclass(frozen=True)
class Cell:
    """A kind of cell: gates, carried states, default activations, and the next states."""

    gates: int
    states: int
    activations: tuple[str, ...]
    step: Step


def _rnn(b: Builder, w: Weights, x: SSAValue, states: Sequence[SSAValue]) -> list[SSAValue]:
    return [w.activate(b, 0, apply(b, "add", x, w.recur(b, states[0], 0, 1)))]


def _gru(b: Builder, w: Weights, x: SSAValue, states: Sequence[SSAValue]) -> list[SSAValue]:
    """Gates: update, reset, hidden. Cho et al., 2014."""
    (h,) = states
    both = apply(b, "add", slice_dim(b, x, 1, 0, 2 * w.hidden), w.recur(b, h, 0, 2))
    update = w.activate(b, 0, w.gate(b, both, 0))
    reset = w.activate(b, 0, w.gate(b, both, 1))
    if w.is_linear_before_reset:
        recurrent = apply(b, "mul", reset, w.recur(b, h, 2, 1))
    else:
        recurrent = w.recur(b, apply(b, "mul", reset, h), 2, 1)
    candidate = w.activate(b, 1, apply(b, "add", w.gate(b, x, 2), recurrent))
    difference = apply(b, "sub", h, candidate)
    return [apply(b, "add", candidate, apply(b, "mul", update, difference))]


def _lstm(b: Builder, w: Weights, x: SSAValue, states: Sequence[SSAValue]) -> list[SSAValue]:
    """Gates: input, output, forget, cell. Hochreiter and Schmidhuber, 1997; with peepholes."""
    h, c = states
    gates = apply(b, "add", x, w.recur(b, h, 0, 4))

    def peeped(index: int, cell: SSAValue) -> SSAValue:
        gate = w.gate(b, gates, index)
        if w.peepholes is None:
            return gate
        weight = slice_dim(b, w.peepholes, 0, index * w.hidden, w.hidden)
        return apply(b, "add", gate, apply(b, "mul", cell, weight))

    enter, keep = w.activate(b, 0, peeped(0, c)), w.activate(b, 0, peeped(2, c))
    candidate = w.activate(b, 1, w.gate(b, gates, 3))
    kept = apply(b, "mul", keep, c)
    cell = apply(b, "add", kept, apply(b, "mul", enter, candidate))
    leave = w.activate(b, 0, peeped(1, cell))
    return [apply(b, "mul", leave, w.activate(b, 2, cell)), cell]


CELLS = {
    "GRU": Cell(3, 1, ("Sigmoid", "Tanh"), _gru),
    "LSTM": Cell(4, 2, ("Sigmoid", "Tanh", "Tanh"), _lstm),
    "RNN": Cell(1, 1, ("Tanh",), _rnn),
}


def activations_of(node: Node, direction: int) -> list[Activation]:
    """The activation functions of one direction. Raises UnsupportedError for unusual ones."""
    defaults = CELLS[node.op_type].activations
    count = len(defaults)
    names = node.texts("activations", [])[direction * count :][:count] or defaults
    if node.has("activation_alpha") or node.has("activation_beta"):
        node.unsupported("activation_alpha and activation_beta are not supported")
    for name in names:
        if name.lower() not in _ACTIVATIONS:
            node.unsupported(f"activation '{name}' is not supported")
    return [_ACTIVATIONS[name.lower()] for name in names]
