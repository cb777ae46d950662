"""A caption of an image by beam search: a recurrent decoder that attends to a feature map.

After Xu et al., "Show, attend and tell", 2015, with an Elman cell; every step reads the whole map.
"""

import numpy as np
from onnx import ModelProto, TensorProto

from benchmarks.models.control_flow.builder import Body, Weights, finish, flag, loop_inputs
from benchmarks.models.hand_written import value

BEAMS, STEPS, WIDTH, VOCABULARY = 4, 16, 128, 1000
SIDE = 24


def make_beam_decoder() -> ModelProto:
    """Input: image `[1, 3, 96, 96]`. Outputs: the beams' scores `[4]` and tokens `[16, 4]`."""
    main = Body(Weights(11))
    x = main.op("Relu", main.conv("image", 3, 32, stride=2))
    x = main.op("Relu", main.separable(x, 32, 64, stride=2))
    features = main.op("Relu", main.separable(x, 64, WIDTH))
    average = main.reshape(main.op("GlobalAveragePool", features), 1, WIDTH)
    state = main.op("Expand", main.linear(average, WIDTH, WIDTH), main.constant([BEAMS, WIDTH]))
    tokens = main.constant([1] * BEAMS)
    scores = main.constant([0.0, -1e3, -1e3, -1e3], np.float32)
    body = _step(main, features)
    steps, true = main.constant(STEPS), main.constant(True, np.bool_)
    results = main.ops("Loop", 4, steps, true, state, tokens, scores, body=body)
    graph = main.graph(
        "beam_decoder",
        [value("image", [1, 3, 4 * SIDE, 4 * SIDE])],
        [value("scores", [BEAMS]), value("tokens", [STEPS, BEAMS], TensorProto.INT64)],
        results[2:],
    )
    return finish(main, graph)


def _step(main: Body, features: str):
    """One token for every beam: carried are the states, the last tokens, and the scores."""
    body = main.inner()
    carried = [
        value("state", [BEAMS, WIDTH]),
        value("token", [BEAMS], TensorProto.INT64),
        value("score", [BEAMS]),
    ]
    memory = body.reshape(features, WIDTH, SIDE * SIDE)
    weights = body.op("Softmax", body.op("MatMul", "state", memory), axis=-1)
    context = body.op("MatMul", weights, body.op("Transpose", memory, perm=[1, 0]))
    embedded = body.op("Gather", body.weight(VOCABULARY, WIDTH, scale=1.0), "token", axis=0)
    joined = body.op("Concat", embedded, context, "state", axis=1)
    hidden = body.op("Tanh", body.linear(joined, 3 * WIDTH, WIDTH))
    words = body.op("LogSoftmax", body.linear(hidden, WIDTH, VOCABULARY, gain=2.0), axis=-1)
    totals = body.op("Add", words, body.reshape("score", BEAMS, 1))
    flat = body.reshape(totals, BEAMS * VOCABULARY)
    best, places = body.ops("TopK", 2, flat, body.constant([BEAMS]))
    parents = body.op("Div", places, body.constant(VOCABULARY))
    token = body.op("Mod", places, body.constant(VOCABULARY))
    following = body.op("Gather", hidden, parents, axis=0)
    inputs = loop_inputs(body, *carried)
    outputs = [
        flag(body),
        value("next_state", [BEAMS, WIDTH]),
        value("next_token", [BEAMS], TensorProto.INT64),
        value("next_score", [BEAMS]),
        value("chosen", [BEAMS], TensorProto.INT64),
    ]
    return body.graph("step", inputs, outputs, [inputs[1].name, following, token, best, token])
