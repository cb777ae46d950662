"""`RNN`, `GRU` and `LSTM`: `scf.for` over time, after one matrix product for all inputs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, fits
from braid.dialects.braid.dtypes import i64, to_numpy
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.size_evaluation import as_array, fixed_shape
from braid.dialects.braid.sized_ops import slice_of
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    broadcast,
    cast,
    concat,
    drop_dims,
    matmul,
    reshape,
    scalar,
    slice_dim,
    swap_last,
    transpose,
    with_extents,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.control_flow import counted_loop
from braid.frontends.onnx.ops.recurrent_activations import Activation, activations_of
from braid.support.sizes.expression import Extent


@dataclass(frozen=True)
class Weights:
    """The weights of one direction.

    `recurrence` is `[hidden, gates · hidden]`, `recurrence_bias` `[gates · hidden]`, the
    contribution of the input to the gates includes the other bias. `peepholes` is `[3 · hidden]`.
    """

    hidden: int
    recurrence: SSAValue
    recurrence_bias: SSAValue | None
    peepholes: SSAValue | None
    activations: Sequence[Activation]
    clip: float | None
    is_linear_before_reset: bool = False
    couples_forget: bool = False
    """Whether an LSTM keeps the part that it does not take in: its forget gate is 1 minus the input
    gate."""

    def gate(self, b: Builder, gates: SSAValue, index: int) -> SSAValue:
        """Return gate `index` of `[batch, gates · hidden]`."""
        return slice_dim(b, gates, 1, index * self.hidden, self.hidden)

    def activate(self, b: Builder, which: int, x: SSAValue) -> SSAValue:
        """Return activation function number `which` of x, which is first clipped."""
        if self.clip is not None:
            low, high = scalar(b, -self.clip, x), scalar(b, self.clip, x)
            x = apply(b, "minimum", apply(b, "maximum", x, low), high)
        return self.activations[which](b, x)

    def recur(self, b: Builder, h: SSAValue, first: int, count: int) -> SSAValue:
        """Return the state's contribution to gates `first` to `first + count`, with the bias."""
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
    """Compute a step of a GRU (Cho et al., 2014); the gates are update, reset and hidden."""
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
    """Compute a step of an LSTM, with peepholes (Hochreiter and Schmidhuber, 1997).

    The gates are input, output, forget and cell.
    """
    h, c = states
    gates = apply(b, "add", x, w.recur(b, h, 0, 4))

    def peeped(index: int, cell: SSAValue) -> SSAValue:
        gate = w.gate(b, gates, index)
        if w.peepholes is None:
            return gate
        weight = slice_dim(b, w.peepholes, 0, index * w.hidden, w.hidden)
        return apply(b, "add", gate, apply(b, "mul", cell, weight))

    enter = w.activate(b, 0, peeped(0, c))
    if w.couples_forget:
        keep = apply(b, "sub", scalar(b, 1, enter), enter)
    else:
        keep = w.activate(b, 0, peeped(2, c))
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


_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True)
class _Sequences:
    """The sequences of both directions: `x` is `[time, batch, inputs]`, `lengths` `[batch, 1]`.

    Steps before the first or after the last of a sequence are not computed: their outputs are 0,
    and so are the last states of a sequence without steps, as in ONNX Runtime. The standard does
    not define these cases.
    """

    node: Node
    x: SSAValue
    lengths: SSAValue | None
    hidden: int
    activations: Sequence[Sequence[Activation]]


@importer("RNN", "GRU", "LSTM", since=7)
def recurrent(b: Builder, node: Node) -> Sequence[SSAValue]:
    """Import a recurrent op.

    The outputs are all states `[time, directions, batch, hidden]`, the last ones, and cells.
    """
    if len(extents_of(node.input(0))) != 3 or len(extents_of(node.input(2))) != 3:
        node.fail("input 0 and input 2 must have 3 dims")
    x, lengths, batch_first = node.input(0), node.optional(4), bool(node.integer("layout", 0))
    x = transpose(b, x, [1, 0, 2]) if batch_first else x
    if lengths is not None:
        lengths = reshape(b, cast(b, lengths, i64), [extents_of(x)[1], 1])
    directions = directions_of(node)
    hidden = _hidden_size(node, extents_of(x), len(directions))
    activations = activations_of(node, CELLS[node.op_type].activations, len(directions))
    sequences = _Sequences(node, x, lengths, hidden, activations)
    runs = [_run(b, sequences, d, backward) for d, backward in enumerate(directions)]
    every = concat(b, [unsqueezed(b, run[-1], 1) for run in runs], 1)
    states = len(runs[0]) - 1
    last = [concat(b, [unsqueezed(b, run[i], 0) for run in runs], 0) for i in range(states)]
    if batch_first:
        return [transpose(b, every, [2, 0, 1, 3]), *(transpose(b, v, [1, 0, 2]) for v in last)]
    return [every, *last]


def directions_of(node: Node) -> tuple[bool, ...]:
    """Return whether each direction runs backward. Raises BraidError for another name."""
    directions = _DIRECTIONS.get(node.text("direction", "forward"))
    if directions is None:
        node.fail(f"direction is '{node.text('direction')}', expected {', '.join(_DIRECTIONS)}")
    return directions


def _hidden_size(node: Node, x: Sequence[Extent], directions: int) -> int:
    """Return the hidden size. Raises BraidError if a weight or state has another shape."""
    cell = CELLS[node.op_type]
    hidden = node.integer("hidden_size", fixed_shape(node.input(2))[-1])
    size, (_, batch, inputs) = cell.gates * hidden, x
    state = [directions, batch, hidden]
    if node.integer("layout", 0):
        state = [batch, directions, hidden]
    expected = {
        1: [directions, size, inputs],
        2: [directions, size, hidden],
        3: [directions, 2 * size],
        4: [batch],
        **{5 + i: state for i in range(cell.states)},
        7: [directions, 3 * hidden],
    }
    for index, shape in expected.items():
        value = node.optional(index)
        if value is not None and not fits(extents_of(value), shape):
            node.fail(f"input {index} has shape {list(extents_of(value))}, expected {shape}")
    return hidden


def _run(b: Builder, s: _Sequences, direction: int, backward: bool) -> list[SSAValue]:
    """Return the last states, then all hidden states `[time, batch, hidden]`, of one direction."""
    cell, time = CELLS[s.node.op_type], extents_of(s.x)[0]
    weights, inputs = _weights(b, s, direction, cell.gates)
    starts = [_start(b, s, 5 + i, direction) for i in range(cell.states)]

    def body(
        number: SSAValue, states: Sequence[SSAValue]
    ) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
        last = b.sizes(as_array([time - 1], []))
        step = apply(b, "sub", last, number) if backward else number
        now = b.emit(GatherOp.get(inputs, step, 0))
        following = cell.step(b, weights, now, states)
        if s.lengths is None:
            return following, following[:1]
        inside = apply(b, "lt", reshape(b, step, [1, 1]), s.lengths)
        output = apply(b, "select", inside, following[0], scalar(b, 0, following[0]))
        pairs = zip(following, states, strict=True)
        return [apply(b, "select", inside, new, old) for new, old in pairs], [output]

    name = next((output for output in s.node.proto.output if output), s.node.proto.name)
    keys = {"enter": f"{name}/{direction}/enter", "next": f"{name}/{direction}/next"}
    if time == 0:
        state, dtype = extents_of(starts[0]), to_numpy(element_type_of(s.x))
        return [
            broadcast(b, b.constant(np.zeros([1] * len(e), dtype)), e)
            for e in (*[state] * cell.states, (0, *state))
        ]
    *states, every = counted_loop(b, time, starts, body, keys)
    if s.lengths is not None:
        ran = apply(b, "lt", b.constant(np.zeros((1, 1), np.int64)), s.lengths)
        states = [apply(b, "select", ran, state, scalar(b, 0, state)) for state in states]
    if backward:
        every = b.emit(slice_of(every, [time - 1, 0, 0], extents_of(every), [-1, 1, 1]))
    return [*states, every]


def _weights(b: Builder, s: _Sequences, direction: int, gates: int) -> tuple[Weights, SSAValue]:
    """Return the weights, and the contributions of the inputs to the gates.

    The latter is `[time, batch, gates · hidden]`.
    """
    node, size = s.node, gates * s.hidden
    bias, peepholes = (
        at_direction(b, node.optional(3), direction),
        at_direction(b, node.optional(7), direction),
    )
    projection, recurrence = (at_direction(b, node.input(i), direction) for i in (1, 2))
    assert projection is not None and recurrence is not None
    inputs = matmul(b, s.x, swap_last(b, projection))
    if bias is not None:
        inputs = apply(b, "add", inputs, slice_dim(b, bias, 0, 0, size))
    weights = Weights(
        hidden=s.hidden,
        recurrence=swap_last(b, recurrence),
        recurrence_bias=None if bias is None else slice_dim(b, bias, 0, size, size),
        peepholes=peepholes,
        activations=s.activations[direction],
        clip=clip_of(node),
        is_linear_before_reset=bool(node.integer("linear_before_reset", 0)),
        couples_forget=bool(node.integer("input_forget", 0)),
    )
    return weights, inputs


def clip_of(node: Node) -> float | None:
    """Return the bound of activation inputs, None without one. Raises BraidError if negative."""
    if not node.has("clip"):
        return None
    clip = node.number("clip")
    if not clip >= 0:
        node.fail(f"clip is {clip}, expected at least 0")
    return clip


def at_direction(b: Builder, value: SSAValue | None, direction: int) -> SSAValue | None:
    """Return the part of a weight for one direction, None without the weight."""
    return None if value is None else drop_dims(b, slice_dim(b, value, 0, direction, 1), [0])


def _start(b: Builder, s: _Sequences, index: int, direction: int) -> SSAValue:
    """Return the initial state of input `index`, 0 if it is left out."""
    initial, batch = s.node.optional(index), extents_of(s.x)[1]
    if initial is None:
        zero = np.zeros((1, 1), to_numpy(element_type_of(s.x)))
        return broadcast(b, b.constant(zero), [batch, s.hidden])
    dim = 1 if s.node.integer("layout", 0) else 0
    start = drop_dims(b, slice_dim(b, initial, dim, direction, 1), [dim])
    return with_extents(b, start, [batch, s.hidden])


def unsqueezed(b: Builder, value: SSAValue, dim: int) -> SSAValue:
    """Return `value` with a dim of size 1 inserted at `dim`."""
    shape = extents_of(value)
    return reshape(b, value, [*shape[:dim], 1, *shape[dim:]])
