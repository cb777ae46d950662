"""Tables that grow with an extent are bounded when a model is compiled."""

import resource
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper

import braid
from braid.frontends.onnx.ops import indexing

GIANT = 2**33
LONG = 2**25


def model_of(
    nodes: Sequence[Any], shape: Sequence[int], given: dict[str, Any], kind: int = 1
) -> ModelProto:
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in given.items()]
    x = helper.make_tensor_value_info("x", kind, shape)
    outputs = [helper.make_empty_tensor_value_info(n) for n in dict.fromkeys(("y", "x"))]
    graph = helper.make_graph(list(nodes), "g", [x], outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def one(kind: str, *inputs: str, **attributes: Any) -> list[Any]:
    return [helper.make_node(kind, inputs, ["y"], **attributes)]


def sizes(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


LARGE = np.int64(GIANT)
FLOATS = {"d": np.float32(0), "e": np.float32(4000)}
SMALL = np.int64(8)
CASES = {
    "Range": (one("Range", "a", "b", "c"), [1], {"a": SMALL, "b": LARGE, "c": np.int64(1)}),
    "HannWindow": (one("HannWindow", "n"), [1], {"n": LARGE}),
    "DFT": (one("DFT", "x", "n"), [1, 8, 1], {"n": LARGE}),
    "inverse DFT": (one("DFT", "x", "n", inverse=1, onesided=1), [1, 8, 2], {"n": LARGE}),
    "STFT": (one("STFT", "x", "s", "", "n"), [1, GIANT, 1], {"s": SMALL, "n": SMALL}),
    "MelWeightMatrix": (
        one("MelWeightMatrix", "a", "b", "c", "d", "e"),
        [1],
        {"a": SMALL, "b": LARGE, "c": SMALL, **FLOATS},
    ),
    "Resize": (one("Resize", "x", "", "", "n"), [2], {"n": sizes(GIANT)}),
    "linear Resize": (
        one("Resize", "x", "", "n", mode="linear"),
        [2],
        {"n": np.float32([GIANT])},
    ),
    "Pad": (one("Pad", "x", "n", mode="edge"), [2], {"n": sizes(GIANT, 0)}),
    "Col2Im": (
        one("Col2Im", "x", "i", "k"),
        [1, 1, GIANT],
        {"i": sizes(GIANT, 1), "k": sizes(1, 1)},
    ),
    "RoiAlign": (
        one("RoiAlign", "x", "r", "i", sampling_ratio=2, output_height=GIANT, output_width=2),
        [1, 1, 4, 4],
        {"r": np.zeros([1, 4], np.float32), "i": sizes(0)},
    ),
    "AveragePool": (
        one("AveragePool", "x", kernel_shape=[3], pads=[1, 1]),
        [1, 1, GIANT],
        {},
    ),
    "MaxPool with indices": (
        [helper.make_node("MaxPool", ["x"], ["z", "y"], kernel_shape=[3])],
        [1, 1, GIANT],
        {},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_large_tables_are_rejected(name: str) -> None:
    too_large = r"a table of [0-9]+ entries is needed|length is [0-9]+, expected 1 to 262144"
    with pytest.raises(braid.BraidError, match=too_large):
        braid.compile(model_of(*CASES[name]), cache=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    assert peak < GIANT, "a byte for each number would be more"


def test_large_triangles_and_diagonals_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "MOST_NUMBERS", 300)  # as if these were large
    rows, columns = 17, 19
    nodes = [
        helper.make_node("Trilu", ["x", "k"], ["t"], upper=0),
        helper.make_node("EyeLike", ["x"], ["e"], k=-2),
        helper.make_node("Sub", ["t", "e"], ["y"]),
    ]
    model = model_of(nodes, [rows, columns], {"k": np.int64(1)}, kind=3)
    x = np.random.default_rng(0).integers(-9, 9, (rows, columns), np.int8)
    (y, *_) = braid.compile(model, cache=False)(x)
    assert (y == np.tril(x, 1) - np.eye(rows, columns, -2, np.int8)).all()


def test_long_windows_and_images_are_planned_at_once() -> None:
    average = model_of(one("AveragePool", "x", kernel_shape=[LONG]), [1, 1, LONG + 1], {})
    weight = np.ones([1, 1, 3], np.float32)
    convolution = model_of(one("Conv", "x", "w", pads=[1, 1]), [1, 1, LONG], {"w": weight})
    for model in (average, convolution):
        assert braid.compile(model, cache=False) is not None
