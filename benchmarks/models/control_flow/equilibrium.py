"""A flow field that is refined until it no longer changes.

After Teed and Deng, "RAFT", 2020, stopped as in Bai et al., "Deep equilibrium optical flow
estimation", 2022: a recurrent convolutional unit corrects the field from two maps of features;
the loop ends when the correction is small.
"""

import numpy as np
from onnx import GraphProto, ModelProto

from benchmarks.models.control_flow.builder import Body, Weights, finish, flag, loop_inputs
from benchmarks.models.hand_written import value

STEPS, WIDTH, SIDE = 30, 24, 48
TOLERANCE = 0.02
SHAPE, FLOW = [1, WIDTH, SIDE, SIDE], [1, 2, SIDE, SIDE]


def make_equilibrium() -> ModelProto:
    """Make a model of a context and a state `[1, 24, 48, 48]`. Outputs: the state and the field."""
    main = Body(Weights(16))
    field = main.constant(np.zeros(FLOW), np.float32)
    steps, true = main.constant(STEPS), main.constant(True, np.bool_)
    results = main.ops("Loop", 2, steps, true, "state", field, body=_refine(main))
    graph = main.graph(
        "equilibrium",
        [value("context", SHAPE), value("state", SHAPE)],
        [value("last", SHAPE), value("flow", FLOW)],
        results,
    )
    return finish(main, graph)


def _refine(main: Body) -> GraphProto:
    """One correction: carried are the unit's state and the field."""
    body = main.inner()
    inputs = loop_inputs(body, value("h", SHAPE), value("field", FLOW))
    both = body.op("Concat", "h", "context", "field", axis=1)
    wide = 2 * WIDTH + 2
    gate = body.op("Sigmoid", body.separable(both, wide, WIDTH))
    new = body.op("Tanh", body.separable(both, wide, WIDTH, gain=0.5))
    change = body.op("Mul", gate, body.op("Sub", new, "h"))
    following = body.op("Add", "h", change)
    correction = body.conv(change, WIDTH, 2, gain=0.5)
    field = body.op("Add", "field", correction)
    size = body.op("ReduceMean", body.op("Abs", correction), keepdims=0)
    proceed = body.op("Greater", size, body.constant(TOLERANCE, np.float32))
    outputs = [flag(body), value("next_h", SHAPE), value("next_field", FLOW)]
    return body.graph("refine", inputs, outputs, [proceed, following, field])
