"""An image reconstructed from its transform: learned steps inside, consistency outside.

After Aggarwal et al., "MoDL", 2019: the outer loop takes a gradient step of ‖D x Dᵀ - y‖² with a
dense transform D along rows and columns, the inner loop denoises by a small residual network that
is pulled towards the gradient step's result.
"""

import numpy as np
from onnx import GraphProto, ModelProto

from benchmarks.models.control_flow.builder import Body, Weights, finish, flag, loop_inputs
from benchmarks.models.hand_written import value

OUTER, INNER, CHANNELS, SIDE = 3, 5, 16, 48
SHAPE = [1, CHANNELS, SIDE, SIDE]


def make_unrolled() -> ModelProto:
    """Input: measurements `[1, 16, 48, 48]`. Output: the image, of the same shape."""
    main = Body(Weights(15))
    transform = main.weight(SIDE, SIDE, scale=SIDE**-0.5)
    start = main.op("Mul", "measured", main.constant(0.5, np.float32))
    steps, true = main.constant(OUTER), main.constant(True, np.bool_)
    (image,) = main.ops("Loop", 1, steps, true, start, body=_outer(main, transform))
    graph = main.graph("unrolled", [value("measured", SHAPE)], [value("image", SHAPE)], [image])
    return finish(main, graph)


def _outer(main: Body, transform: str) -> GraphProto:
    """Compute x ← denoised(x - a Dᵀ (D x - y))."""
    body = main.inner()
    inputs = loop_inputs(body, value("x", SHAPE))
    residual = body.op("Sub", body.op("MatMul", "x", transform), "measured")
    back = body.op("MatMul", residual, body.op("Transpose", transform, perm=[1, 0]))
    step = body.op("Mul", back, body.constant(0.3, np.float32))
    target = body.op("Sub", "x", step)
    steps = body.constant(INNER)
    (denoised,) = body.ops("Loop", 1, steps, inputs[1].name, target, body=_inner(body, target))
    outputs = [flag(body), value("next_x", SHAPE)]
    return body.graph("outer", inputs, outputs, [inputs[1].name, denoised])


def _inner(outer: Body, target: str) -> GraphProto:
    """Compute v ← v - (noise(v) + a (v - target))."""
    body = outer.inner()
    inputs = loop_inputs(body, value("v", SHAPE))
    hidden = body.op("Relu", body.separable("v", CHANNELS, 2 * CHANNELS))
    noise = body.separable(hidden, 2 * CHANNELS, CHANNELS, gain=0.5)
    away = body.op("Mul", body.op("Sub", "v", target), body.constant(0.1, np.float32))
    following = body.op("Sub", "v", body.op("Add", noise, away))
    outputs = [flag(body), value("next_v", SHAPE)]
    return body.graph("inner", inputs, outputs, [inputs[1].name, following])
