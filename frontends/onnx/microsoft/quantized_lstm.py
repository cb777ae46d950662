"""`DynamicQuantizeLSTM`: an LSTM whose weights are 8-bit, and its operands quantized on the way."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of, fits, tensor_type
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import i64
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.size_evaluation import fixed_shape
from braid.dialects.braid.sized_ops import slice_of
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    broadcast,
    cast,
    concat,
    matmul,
    reduce,
    reshape,
    scalar,
    slice_dim,
    with_extents,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.opsets import MICROSOFT
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.microsoft.quantized import as_real
from braid.frontends.onnx.ops.control_flow import counted_loop
from braid.frontends.onnx.ops.quantization import centered, dynamically_quantized
from braid.frontends.onnx.ops.recurrent import (
    CELLS,
    Weights,
    at_direction,
    clip_of,
    directions_of,
    unsqueezed,
)
from braid.frontends.onnx.ops.recurrent_activations import activations_of
from braid.support.sizes.expression import Extent

_CELL = CELLS["LSTM"]


@dataclass(frozen=True)
class QuantizedWeights(Weights):
    """The weights of one direction; `recurrence` is centered, in i32, and has a scale."""

    recurrence_scale: SSAValue | None = None

    def recur(self, b: Builder, h: SSAValue, first: int, count: int) -> SSAValue:
        """Return the contribution of the state, quantized by the range of the whole batch, to the
        gates."""
        assert self.recurrence_scale is not None and (first, count) == (0, _CELL.gates)
        return _product(b, h, self.recurrence, self.recurrence_scale)


@importer("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_quantize_lstm(b: Builder, node: Node) -> Sequence[SSAValue]:
    """Import an `LSTM` whose quantized weights are `[directions, inputs, 4 · hidden]`.

    Scales and zero points of weights are one per direction, or one per column of each. The
    operands of products are quantized by their ranges: all inputs at once, the states of a whole
    batch at every step.
    """
    backward = directions_of(node)
    hidden = _hidden_size(b, node, len(backward))
    runs = [_run(b, node, hidden, d, reverse) for d, reverse in enumerate(backward)]
    every = concat(b, [unsqueezed(b, run[-1], 1) for run in runs], 1)
    return [every, *(concat(b, [unsqueezed(b, r[i], 0) for r in runs], 0) for i in (0, 1))]


def _hidden_size(b: Builder, node: Node, directions: int) -> int:
    """Return the hidden size. Raises BraidError where an operand has another shape."""
    for index in (0, 1, 2):
        if len(extents_of(node.input(index))) != 3:
            node.fail(
                f"input {index} has shape {list(extents_of(node.input(index)))}, expected 3 dims"
            )
    hidden = node.integer("hidden_size", fixed_shape(node.input(2))[1])
    size = _CELL.gates * hidden
    _, batch, inputs = extents_of(node.input(0))
    expected = {
        1: [directions, inputs, size],
        2: [directions, hidden, size],
        3: [directions, 2 * size],
        4: [batch],
        5: [directions, batch, hidden],
        6: [directions, batch, hidden],
        7: [directions, 3 * hidden],
    }
    for index, shape in expected.items():
        value = node.optional(index)
        if value is not None and not fits(extents_of(value), shape):
            node.fail(f"input {index} has shape {list(extents_of(value))}, expected {shape}")
    for index in range(8, 12):
        shape = extents_of(node.input(index))
        if not fits(shape, [directions]) and not fits(shape, [directions, size]):
            node.fail(
                f"input {index} has shape {list(shape)}, expected [{directions}] or "
                f"[{directions}, {size}]"
            )
    return hidden


def _run(b: Builder, node: Node, hidden: int, direction: int, backward: bool) -> list[SSAValue]:
    """Return the last states, then all hidden states `[time, batch, hidden]`, of one direction.

    A backward direction runs forward on sequences that are reversed, each within its length.
    """
    time, batch, _ = extents_of(node.input(0))
    x, lengths = node.input(0), node.optional(4)
    if lengths is not None:
        lengths = reshape(b, cast(b, lengths, i64), [batch, 1])
        x = _before_the_longest_ends(b, x, lengths)
    x = _reversed(b, node, x) if backward else x
    weights, inputs = _weights(b, node, x, hidden, direction)
    starts = [_start(b, node, 5 + i, direction, hidden) for i in (0, 1)]

    def body(
        step: SSAValue, states: Sequence[SSAValue]
    ) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
        now = b.emit(GatherOp.get(inputs, step, 0))
        h, c = _CELL.step(b, weights, now, states[:2])
        if lengths is None:
            return [h, c], [h]
        inside = apply(b, "lt", reshape(b, step, [1, 1]), lengths)
        # The states of sequences that ended are 0 in the range of later steps.
        shown = apply(b, "select", inside, h, scalar(b, 0, h))
        pairs = zip((h, c), states[2:], strict=True)
        return [shown, c, *(apply(b, "select", inside, *pair) for pair in pairs)], [shown]

    name = next((output for output in node.proto.output if output), node.proto.name)
    keys = {"enter": f"{name}/{direction}/enter", "next": f"{name}/{direction}/next"}
    if time == 0:
        return [*starts, _zeros(b, [0, batch, hidden])]
    last = [] if lengths is None else [_zeros(b, [batch, hidden])] * 2
    *states, every = counted_loop(b, time, [*starts, *last], body, keys)
    return [*states[-2:], _reversed(b, node, every) if backward else every]


def _weights(
    b: Builder, node: Node, x: SSAValue, hidden: int, direction: int
) -> tuple[QuantizedWeights, SSAValue]:
    """Return the weights, and the contributions of inputs and biases to the gates.

    The latter is `[time, batch, 4 · hidden]`.
    """
    (w, w_scale), (r, r_scale) = (_weight(b, node, i, direction) for i in (0, 1))
    inputs = _product(b, x, w, w_scale)
    bias, size = at_direction(b, node.optional(3), direction), _CELL.gates * hidden
    if bias is not None:
        halves = [slice_dim(b, bias, 0, start, size) for start in (0, size)]
        inputs = apply(b, "add", inputs, apply(b, "add", *halves))
    activations = activations_of(node, _CELL.activations, len(directions_of(node)))
    weights = QuantizedWeights(
        hidden=hidden,
        recurrence=r,
        recurrence_bias=None,
        peepholes=at_direction(b, node.optional(7), direction),
        activations=activations[direction],
        clip=clip_of(node),
        couples_forget=bool(node.integer("input_forget", 0)),
        recurrence_scale=r_scale,
    )
    return weights, inputs


def _weight(b: Builder, node: Node, which: int, direction: int) -> tuple[SSAValue, SSAValue]:
    """Return centered weights and their scale.

    They are those of inputs (0) or states (1), `[rows, 4 · hidden]`.
    """
    value, scale, zero = (
        at_direction(b, node.input(index), direction)
        for index in (1 + which, 8 + 2 * which, 9 + 2 * which)
    )
    assert value is not None and scale is not None
    return centered(b, value, zero), scale


def _product(b: Builder, x: SSAValue, weight: SSAValue, scale: SSAValue) -> SSAValue:
    """Return x, quantized by its range, times centered weights, as real numbers."""
    bytes_, x_scale, zero = dynamically_quantized(b, x)
    product = matmul(b, centered(b, bytes_, zero), weight)
    return as_real(b, product, apply(b, "mul", x_scale, scale))


def _before_the_longest_ends(b: Builder, x: SSAValue, lengths: SSAValue) -> SSAValue:
    """Return x, with 0 at steps that no sequence has.

    These are no part of the range of the inputs.
    """
    most = reshape(b, reduce(b, "maximum", lengths, [0]), [1, 1, 1])
    steps = b.emit(IotaOp.of(0, tensor_type(i64, [extents_of(x)[0], 1, 1])))
    return apply(b, "select", apply(b, "lt", steps, most), x, scalar(b, 0, x))


def _reversed(b: Builder, node: Node, x: SSAValue) -> SSAValue:
    """Return `[time, batch, …]` with the steps of every sequence in reverse order."""
    if (lengths := node.optional(4)) is not None:
        return node.call("ReverseSequence", x, cast(b, lengths, i64), time_axis=0, batch_axis=1)
    shape = extents_of(x)
    return b.emit(slice_of(x, [shape[0] - 1, 0, 0], shape, [-1, 1, 1]))


def _start(b: Builder, node: Node, index: int, direction: int, hidden: int) -> SSAValue:
    """Return the initial state of input `index`, 0 if it is left out."""
    start, batch = at_direction(b, node.optional(index), direction), extents_of(node.input(0))[1]
    return _zeros(b, [batch, hidden]) if start is None else with_extents(b, start, [batch, hidden])


def _zeros(b: Builder, shape: Sequence[Extent]) -> SSAValue:
    return broadcast(b, b.constant(np.zeros([1] * len(shape), np.float32)), shape)
