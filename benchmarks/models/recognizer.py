"""A speech recognizer with the greedy loop of a transducer in the graph.

Frames are convolved to every fourth one and encoded by attention and convolutions (Gulati et al.,
"Conformer", 2020). Then a loop joins the current frame with the state of an LSTM of the tokens so
far: a blank goes on to the next frame, any other token is put out and changes the state (Graves,
"Sequence transduction with recurrent neural networks", 2012). How often it runs, and how many
tokens there are, the sound decides.
"""

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto

from benchmarks.models.control_flow.builder import Body, Weights, finish, flag, loop_inputs
from benchmarks.models.hand_written import value
from benchmarks.models.rows import attention, convolved, normal, swish

BANDS, TOKENS = 80, 256
_WIDTH, _HEADS, _INNER, _LAYERS = 144, 4, 576, 4
_STATE, _JOINT = 160, 160
_BLANK = 0
_BLANK_BIAS = 8.0
"""Makes blanks about as frequent as other tokens."""
_MOST_TOKENS_OF_A_FRAME = 2


def make_recognizer() -> ModelProto:
    """Return a recognizer of random weights.

    In: `features[1, time, 80]`. Out: `tokens[found]`.
    """
    main = Body(Weights(0))
    encoded = _encoded(main)
    tokens = _decoded(main, encoded)
    inputs = [value("features", [1, "time", BANDS])]
    outputs = [value("tokens", ["found"], TensorProto.INT64)]
    return finish(main, main.graph("recognizer", inputs, outputs, [tokens]))


def _encoded(main: Body) -> str:
    """Return `[frames, joint]`: what the joint network adds for each frame."""
    x = main.op("Relu", convolved(main, "features", BANDS, _WIDTH, 3, stride=2))
    x = main.op("Relu", convolved(main, x, _WIDTH, _WIDTH, 3, stride=2))
    for _ in range(_LAYERS):
        for part in (_feed_forward, _attention, _convolution, _feed_forward):
            x = main.op("Add", x, part(main, normal(main, x, _WIDTH)))
        x = normal(main, x, _WIDTH)
    return main.linear(main.op("Squeeze", x, main.constant([0])), _WIDTH, _JOINT, gain=2.0)


def _feed_forward(main: Body, x: str) -> str:
    wide = swish(main, main.linear(x, _WIDTH, _INNER))
    return main.linear(wide, _INNER, _WIDTH, gain=0.5)


def _attention(main: Body, x: str) -> str:
    return attention(main, x, _WIDTH, _HEADS)


def _convolution(main: Body, x: str) -> str:
    """Return rows after a gate and a depthwise convolution over time."""
    gate = main.op("Sigmoid", main.linear(x, _WIDTH, _WIDTH))
    x = main.op("Mul", main.linear(x, _WIDTH, _WIDTH), gate)
    x = convolved(main, x, _WIDTH, _WIDTH, 15, groups=_WIDTH)
    return main.linear(swish(main, x), _WIDTH, _WIDTH)


def _decoded(main: Body, encoded: str) -> str:
    """Return the tokens of the greedy loop, without blanks."""
    frames = main.op("Gather", main.op("Shape", encoded), main.constant(0))
    most = main.op("Mul", frames, main.constant(1 + _MOST_TOKENS_OF_A_FRAME))
    going = main.op("Less", main.constant(0), frames)
    zeros = main.constant(np.zeros((1, 1, _STATE)), np.float32)
    first = main.op("Gather", main.weight(1, 1, _JOINT, scale=1.0), main.constant(0))
    starts = [main.constant(0), main.constant(0), zeros, zeros, first]
    body = _step(main, encoded, frames)
    *_, tokens = main.ops("Loop", len(starts) + 1, most, going, *starts, body=body)
    kept = main.op("Not", main.op("Equal", tokens, main.constant(_BLANK)))
    return main.op("Compress", tokens, kept, axis=0)


def _step(main: Body, encoded: str, frames: str) -> GraphProto:
    """Return the body: carried are the frame, its tokens so far, and the LSTM's states."""
    body = main.inner()
    names = [body.weights.name(name) for name in ("frame", "of_frame", "hidden", "cell", "added")]
    frame, of_frame, hidden, cell, added = names
    now = body.op("Gather", encoded, frame)
    joint = body.op("Tanh", body.op("Add", now, body.op("Squeeze", added, body.constant([0]))))
    logits = body.linear(body.op("Unsqueeze", joint, body.constant([0])), _JOINT, TOKENS, gain=3.0)
    favour = np.zeros((1, TOKENS))
    favour[0, _BLANK] = _BLANK_BIAS
    logits = body.op("Add", logits, body.constant(favour, np.float32))
    token = body.op("Squeeze", body.op("ArgMax", logits, axis=1, keepdims=0), body.constant([0]))
    full = body.op("Equal", of_frame, body.constant(_MOST_TOKENS_OF_A_FRAME))
    blank = body.op("Or", body.op("Equal", token, body.constant(_BLANK)), full)
    token = body.op("Where", blank, body.constant(_BLANK), token)
    following = _following(body, blank, token, [hidden, cell, added])
    one, zero = body.constant(1), body.constant(0)
    next_frame = body.op("Where", blank, body.op("Add", frame, one), frame)
    next_count = body.op("Where", blank, zero, body.op("Add", of_frame, one))
    going = body.op("Less", next_frame, frames)
    state = [1, 1, _STATE]
    shapes: list[tuple[list[int], int]] = [([], TensorProto.INT64)] * 2
    shapes += [(state, TensorProto.FLOAT)] * 2 + [([1, _JOINT], TensorProto.FLOAT)]
    carried = [value(name, *own) for name, own in zip(names, shapes, strict=True)]
    proceeds = flag(body)
    outputs = [value(body.weights.name("next"), *own) for own in shapes]
    outputs.append(value(body.weights.name("token"), [], TensorProto.INT64))
    results = [going, next_frame, next_count, *following, token]
    return body.graph("greedy", loop_inputs(body, *carried), [proceeds, *outputs], results)


def _following(body: Body, blank: str, token: str, before: list[str]) -> list[str]:
    """Return the LSTM's states, and what they add to frames: other ones after a token."""
    kept, step = body.inner(), body.inner()
    shapes = [[1, 1, _STATE], [1, 1, _STATE], [1, _JOINT]]
    same = [value(body.weights.name("kept"), shape) for shape in shapes]
    table = step.weight(TOKENS, _STATE, scale=1.0)
    x = step.reshape(step.op("Gather", table, token), 1, 1, _STATE)
    weights = [step.weight(1, 4 * _STATE, _STATE, scale=_STATE**-0.5) for _ in range(2)]
    bias = step.weight(1, 8 * _STATE, scale=0.1)
    _, hidden, cell = step.ops(
        "LSTM", 3, x, *weights, bias, "", before[0], before[1], hidden_size=_STATE
    )
    added = step.linear(step.op("Squeeze", hidden, step.constant([0])), _STATE, _JOINT, gain=2.0)
    new = [value(body.weights.name("new"), shape) for shape in shapes]
    return body.ops(
        "If",
        3,
        blank,
        then_branch=kept.graph("keep", [], same, before),
        else_branch=step.graph("emit", [], new, [hidden, cell, added]),
    )
