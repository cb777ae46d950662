"""Features of a video that are computed anew at key frames only.

After Zhu et al., "Deep feature flow", 2017: frames close to the last key frame reuse its features,
faded towards their mean, others run the convolutions and fuse the result with what there was; a
linear layer reads the flattened features of every frame.
"""

import numpy as np
from onnx import GraphProto, ModelProto

from benchmarks.models.control_flow.builder import Body, Weights, finish, flag, loop_inputs
from benchmarks.models.hand_written import value

FRAMES, WIDTH, SIDE, CLASSES = 20, 32, 28, 20
DIFFERENCE = 0.4
"""The mean difference from the key frame above which a frame becomes one."""


def make_keyframes() -> ModelProto:
    """Input: frames `[20, 3, 56, 56]`. Outputs: logits `[20, 1, 20]`, the last features."""
    main = Body(Weights(14))
    shape = [1, WIDTH, SIDE, SIDE]
    key = main.constant(np.zeros([1, 3, 2 * SIDE, 2 * SIDE]), np.float32)
    features = main.constant(np.zeros(shape), np.float32)
    frames, true = main.constant(FRAMES), main.constant(True, np.bool_)
    results = main.ops("Loop", 3, frames, true, key, features, body=_frame(main))
    graph = main.graph(
        "keyframes",
        [value("frames", [FRAMES, 3, 2 * SIDE, 2 * SIDE])],
        [value("logits", [FRAMES, 1, CLASSES]), value("last", shape)],
        [results[2], results[1]],
    )
    return finish(main, graph)


def _frame(main: Body) -> GraphProto:
    """One frame: carried are the key frame and the features."""
    body = main.inner()
    shape, image = [1, WIDTH, SIDE, SIDE], [1, 3, 2 * SIDE, 2 * SIDE]
    inputs = loop_inputs(body, value("key", image), value("features", shape))
    frame = body.op("Gather", "frames", body.reshape(inputs[0].name, 1), axis=0)
    distance = body.op("Abs", body.op("Sub", frame, "key"))
    difference = body.op("ReduceMean", distance, keepdims=0)
    is_key = body.op("Greater", difference, body.constant(DIFFERENCE, np.float32))
    renew, reuse = body.inner(), body.inner()
    x = renew.op("Relu", renew.conv(frame, 3, WIDTH, stride=2))
    x = renew.op("Relu", renew.separable(x, WIDTH, WIDTH))
    both = renew.op("Concat", x, "features", axis=1)
    fused = renew.op("Relu", renew.conv(both, 2 * WIDTH, WIDTH, 1))
    mean = reuse.op("GlobalAveragePool", "features")
    rest = reuse.op("Mul", reuse.op("Sub", "features", mean), reuse.constant(0.95, np.float32))
    kept = reuse.op("Add", rest, mean)
    following = body.branch(
        is_key, renew.result("renew", fused, shape), reuse.result("reuse", kept, shape)
    )
    new, old = body.inner(), body.inner()
    next_key = body.branch(
        is_key,
        new.result("new", frame, image),
        old.result("old", "key", image),
    )
    flat = body.reshape(following, 1, WIDTH * SIDE * SIDE)
    logits = body.linear(flat, WIDTH * SIDE * SIDE, CLASSES)
    outputs = [
        flag(body),
        value("next_key", image),
        value("next_features", shape),
        value("frame_logits", [1, CLASSES]),
    ]
    results = [inputs[1].name, next_key, following, logits]
    return body.graph("frame", inputs, outputs, results)
