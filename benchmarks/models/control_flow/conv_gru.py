"""A recurrent network over the frames of a video: a gated cell of separable convolutions.

After Ballas et al., "Delving deeper into convolutional networks for learning video
representations", 2016, with separable convolutions as in Liu and Zhu, "Mobile video object
detection with temporally-aware feature maps", 2018. The state goes in and out, for streaming.
"""

import numpy as np
from onnx import GraphProto, ModelProto

from benchmarks.models.control_flow.builder import Body, Weights, finish, flag, loop_inputs
from benchmarks.models.hand_written import value

FRAMES, CHANNELS, WIDTH, SIDE = 12, 16, 32, 48


def make_conv_gru() -> ModelProto:
    """Make a model of frames `[12, 16, 48, 48]` and a state `[1, 32, 48, 48]`. Output: the last
    state."""
    main = Body(Weights(12))
    frames, true = main.constant(FRAMES), main.constant(True, np.bool_)
    (last,) = main.ops("Loop", 1, frames, true, "state", body=_cell(main))
    graph = main.graph(
        "conv_gru",
        [value("frames", [FRAMES, CHANNELS, SIDE, SIDE]), value("state", [1, WIDTH, SIDE, SIDE])],
        [value("last", [1, WIDTH, SIDE, SIDE])],
        [last],
    )
    return finish(main, graph)


def _cell(main: Body) -> GraphProto:
    """Compute h ← z · h + (1 - z) · n with gates of the frame and h."""
    body = main.inner()
    shape = [1, WIDTH, SIDE, SIDE]
    inputs = loop_inputs(body, value("h", shape))
    number = body.reshape(inputs[0].name, 1)
    frame = body.op("Gather", "frames", number, axis=0)
    both = body.op("Concat", frame, "h", axis=1)
    gates = body.op("Sigmoid", body.separable(both, CHANNELS + WIDTH, 2 * WIDTH))
    z, r = body.ops("Split", 2, gates, axis=1, num_outputs=2)
    reset = body.op("Concat", frame, body.op("Mul", r, "h"), axis=1)
    new = body.op("Tanh", body.separable(reset, CHANNELS + WIDTH, WIDTH))
    change = body.op("Mul", z, body.op("Sub", "h", new))
    following = body.op("Add", new, change)
    outputs = [flag(body), value("next_h", shape)]
    return body.graph("cell", inputs, outputs, [inputs[1].name, following])
