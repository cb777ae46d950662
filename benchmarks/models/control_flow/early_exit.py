"""A classifier that stops early where it is confident.

After Teerapittayanon et al., "BranchyNet", 2016: the exit flattens a feature map in front of its
linear layer, the rest of the network is convolutions.
"""

import numpy as np
from onnx import ModelProto

from benchmarks.models.control_flow.builder import Body, Weights, finish
from benchmarks.models.hand_written import value

CLASSES, SIDE, WIDTH = 100, 48, 48
GAIN = 2**0.25
"""The scale of both weights of a separable convolution, so that activations keep their scale."""
LOGIT_GAIN = 16.0
CONFIDENCE = 0.5
"""The probability of the likeliest class above which the network stops."""


def make_early_exit() -> ModelProto:
    """Input: image `[1, 3, 96, 96]`. Output: logits `[1, 100]`."""
    main = Body(Weights(13))
    x = main.op("Relu", main.conv("image", 3, 16, stride=2))
    x = main.op("Relu", main.separable(x, 16, WIDTH, gain=GAIN))
    features = main.op("Relu", main.separable(x, WIDTH, WIDTH, gain=GAIN))
    pooled = main.op("AveragePool", features, kernel_shape=[4, 4], strides=[4, 4])
    flat = main.reshape(pooled, 1, WIDTH * (SIDE // 4) ** 2)
    logits = main.linear(flat, WIDTH * (SIDE // 4) ** 2, CLASSES, gain=LOGIT_GAIN)
    likeliest = main.op("ReduceMax", main.op("Softmax", logits, axis=-1), keepdims=0)
    confident = main.op("Greater", likeliest, main.constant(CONFIDENCE, np.float32))
    stop = main.inner().result("stop", logits, [1, CLASSES])
    rest = main.inner()
    deep, width = features, WIDTH
    for wider, stride in ((64, 2), (64, 1), (128, 2), (128, 1), (128, 1)):
        deep = rest.op("Relu", rest.separable(deep, width, wider, stride=stride, gain=GAIN))
        width = wider
    average = rest.reshape(rest.op("GlobalAveragePool", deep), 1, width)
    late = rest.result("rest", rest.linear(average, width, CLASSES), [1, CLASSES])
    result = main.branch(confident, stop, late)
    shape = [1, 3, 2 * SIDE, 2 * SIDE]
    graph = main.graph("early_exit", [value("image", shape)], [value("y", [1, CLASSES])], [result])
    return finish(main, graph)
