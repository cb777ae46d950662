"""A text-to-speech model whose predicted durations decide how many frames there are.

An encoder of phonemes, durations that a predictor gives, each row repeated as often, and a decoder
of frames (Ren et al., "FastSpeech 2", 2021). Rows are repeated as exporters write it: a frame
belongs to the first phoneme that ends after it.
"""

import numpy as np
from onnx import ModelProto, TensorProto

from benchmarks.models.control_flow.builder import Body, Weights, finish
from benchmarks.models.hand_written import value
from benchmarks.models.rows import attention, convolved, normal

PHONEMES, BANDS = 80, 80
_WIDTH, _HEADS, _INNER = 256, 2, 1024
_ENCODER_LAYERS = _DECODER_LAYERS = 4
_MEAN_FRAMES = 6.0
"""Frames of a phoneme, about."""


def make_text_to_speech() -> ModelProto:
    """Return a model of random weights.

    In: `phonemes[1, length]`, below 80. Out: `spectrum[1, frames, 80]` and `durations[1, length]`.
    """
    main = Body(Weights(0))
    table = main.weight(PHONEMES, _WIDTH, scale=1.0)
    x = main.op("Gather", table, "phonemes")
    for _ in range(_ENCODER_LAYERS):
        x = _layer(main, x)
    durations = _durations(main, x)
    x = _repeated(main, x, durations)
    for _ in range(_DECODER_LAYERS):
        x = _layer(main, x)
    spectrum = main.linear(x, _WIDTH, BANDS)
    inputs = [value("phonemes", [1, "length"], TensorProto.INT64)]
    outputs = [
        value("spectrum", [1, "frames", BANDS]),
        value("durations", [1, "length"], TensorProto.INT64),
    ]
    return finish(main, main.graph("speech", inputs, outputs, [spectrum, durations]))


def _layer(main: Body, x: str) -> str:
    """Return rows after attention and two convolutions over time."""
    x = normal(main, main.op("Add", x, attention(main, x, _WIDTH, _HEADS)), _WIDTH)
    wide = main.op("Relu", convolved(main, x, _WIDTH, _INNER, 9))
    return normal(main, main.op("Add", x, convolved(main, wide, _INNER, _WIDTH, 1)), _WIDTH)


def _durations(main: Body, x: str) -> str:
    """Return how many frames each row has, `[1, length]`: none for some."""
    for _ in range(2):
        x = normal(main, main.op("Relu", convolved(main, x, _WIDTH, _WIDTH, 3)), _WIDTH)
    logarithm = main.op("Squeeze", main.linear(x, _WIDTH, 1, gain=0.5), main.constant([2]))
    count = main.op("Mul", main.op("Exp", logarithm), main.constant(_MEAN_FRAMES, np.float32))
    rest = main.op("Sub", count, main.constant(1.0, np.float32))
    rounded = main.op("Round", main.op("Max", rest, main.constant(0.0, np.float32)))
    return main.op("Cast", rounded, to=TensorProto.INT64)


def _repeated(main: Body, x: str, durations: str) -> str:
    """Return each row as often as its duration says, `[1, frames, width]`."""
    ends = main.op("CumSum", durations, main.constant(1))
    frames = main.op("ReduceMax", ends, keepdims=0)
    numbers = main.op("Range", main.constant(0), frames, main.constant(1))
    over = main.op("GreaterOrEqual", main.reshape(numbers, -1, 1), ends)
    before = main.op("Cast", over, to=TensorProto.INT64)
    owners = main.op("ReduceSum", before, main.constant([1]), keepdims=0)
    return main.op("Gather", x, owners, axis=1)
