"""The models of the oversize suite: small inputs and results, and a huge tensor in between."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.oversize import references

Array = npt.NDArray[Any]
Dims = Mapping[str, int]
Reference = Callable[..., Array]


@dataclass(frozen=True)
class Case:
    """A model by the dims of its tensors, and its meaning computed in pieces by numpy.

    `huge` are dims at which the tensors inside are far larger than all inputs and results,
    `fits` such that all is held in memory, `small` for tests. `pieces` computes the result from
    the inputs without ever holding a whole tensor from inside.
    """

    name: str
    build: Callable[[Dims], onnx.ModelProto]
    inputs: Callable[[Dims], list[Array]]
    pieces: Reference
    huge: Dims
    fits: Dims
    small: Dims


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int]],
    output: Sequence[int],
    constants: Mapping[str, Array] | None = None,
    integers: Sequence[str] = (),
) -> onnx.ModelProto:
    """A model whose result is `y`; `integers` are inputs of i64, the others are of f32."""
    values = [
        helper.make_tensor_value_info(
            name, TensorProto.INT64 if name in integers else TensorProto.FLOAT, shape
        )
        for name, shape in inputs.items()
    ]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, output)
    initial = [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "oversize", values, [result], initial)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


def _normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _attention(dims: Dims) -> onnx.ModelProto:
    heads, length, depth = dims["heads"], dims["length"], dims["depth"]
    shape = [1, heads, length, depth]
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["products"]),
        helper.make_node("Mul", ["products", "scale"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["y"]),
    ]
    constants = {"scale": np.asarray(depth**-0.5, np.float32)}
    return _model(nodes, {"q": shape, "k": shape, "v": shape}, shape, constants)


def _attention_inputs(dims: Dims) -> list[Array]:
    shape = (1, dims["heads"], dims["length"], dims["depth"])
    return [_normal(*shape, seed=seed) for seed in range(3)]


def _distances(dims: Dims) -> onnx.ModelProto:
    """|a|² + |b|² - 2 a·b for all pairs, then the least of every row."""
    rows, columns, depth = dims["rows"], dims["columns"], dims["depth"]
    nodes = [
        helper.make_node("Mul", ["a", "a"], ["aa"]),
        helper.make_node("ReduceSum", ["aa", "last"], ["a2"], keepdims=1),
        helper.make_node("Mul", ["b", "b"], ["bb"]),
        helper.make_node("ReduceSum", ["bb", "last"], ["b2"], keepdims=1),
        helper.make_node("Transpose", ["b2"], ["b2t"], perm=[1, 0]),
        helper.make_node("Transpose", ["b"], ["bt"], perm=[1, 0]),
        helper.make_node("MatMul", ["a", "bt"], ["ab"]),
        helper.make_node("Mul", ["ab", "two"], ["ab2"]),
        helper.make_node("Add", ["a2", "b2t"], ["norms"]),
        helper.make_node("Sub", ["norms", "ab2"], ["distances"]),
        helper.make_node("ReduceMin", ["distances"], ["y"], axes=[1], keepdims=1),
    ]
    constants = {"two": np.asarray(2, np.float32), "last": np.asarray([1], np.int64)}
    inputs = {"a": [rows, depth], "b": [columns, depth]}
    return _model(nodes, inputs, [rows, 1], constants)


def _distances_inputs(dims: Dims) -> list[Array]:
    depth = dims["depth"]
    return [_normal(dims["rows"], depth), _normal(dims["columns"], depth, seed=1)]


def _one_hot(dims: Dims) -> onnx.ModelProto:
    tokens, vocabulary, width = dims["tokens"], dims["vocabulary"], dims["width"]
    nodes = [
        helper.make_node("OneHot", ["ids", "depth", "values"], ["hot"], axis=-1),
        helper.make_node("MatMul", ["hot", "table"], ["y"]),
    ]
    constants = {
        "depth": np.asarray([vocabulary], np.int64),
        "values": np.asarray([0, 1], np.float32),
    }
    inputs = {"ids": [tokens], "table": [vocabulary, width]}
    return _model(nodes, inputs, [tokens, width], constants, integers=("ids",))


def _one_hot_inputs(dims: Dims) -> list[Array]:
    generator = np.random.default_rng(0)
    ids = generator.integers(0, dims["vocabulary"], dims["tokens"])
    return [ids, _normal(dims["vocabulary"], dims["width"])]


def _differences(dims: Dims) -> onnx.ModelProto:
    """Every point less every centre, squared, summed over the coordinates."""
    points, centres, depth = dims["points"], dims["centres"], dims["depth"]
    nodes = [
        helper.make_node("Unsqueeze", ["x", "one"], ["rows"]),
        helper.make_node("Unsqueeze", ["c", "zero"], ["columns"]),
        helper.make_node("Sub", ["rows", "columns"], ["differences"]),
        helper.make_node("Mul", ["differences", "differences"], ["squares"]),
        helper.make_node("ReduceSum", ["squares", "last"], ["y"], keepdims=0),
    ]
    constants = {
        "zero": np.asarray([0], np.int64),
        "one": np.asarray([1], np.int64),
        "last": np.asarray([2], np.int64),
    }
    inputs = {"x": [points, depth], "c": [centres, depth]}
    return _model(nodes, inputs, [points, centres], constants)


def _differences_inputs(dims: Dims) -> list[Array]:
    depth = dims["depth"]
    return [_normal(dims["points"], depth), _normal(dims["centres"], depth, seed=1)]


def _cross_entropy(dims: Dims) -> onnx.ModelProto:
    tokens, vocabulary, width = dims["tokens"], dims["vocabulary"], dims["width"]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["logits"]),
        helper.make_node("LogSoftmax", ["logits"], ["logs"], axis=-1),
        helper.make_node("GatherElements", ["logs", "labels"], ["picked"], axis=1),
        helper.make_node("Neg", ["picked"], ["y"]),
    ]
    inputs = {"x": [tokens, width], "w": [width, vocabulary], "labels": [tokens, 1]}
    return _model(nodes, inputs, [tokens, 1], integers=("labels",))


def _cross_entropy_inputs(dims: Dims) -> list[Array]:
    tokens, vocabulary, width = dims["tokens"], dims["vocabulary"], dims["width"]
    labels = np.random.default_rng(2).integers(0, vocabulary, (tokens, 1))
    weights = _normal(width, vocabulary, seed=1) * np.float32(width**-0.5)
    return [_normal(tokens, width), weights, labels]


def _upsampling(dims: Dims) -> onnx.ModelProto:
    """Each voxel becomes eight, then a convolution with stride 2 makes few channels of many."""
    inner, outer, extent = dims["channels"], dims["filters"], dims["extent"]
    scales = np.asarray([1, 1, 2, 2, 2], np.float32)
    nodes = [
        helper.make_node(
            "Resize",
            ["x", "", "scales"],
            ["up"],
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
        helper.make_node(
            "Conv",
            ["up", "w"],
            ["y"],
            kernel_shape=[3, 3, 3],
            strides=[2, 2, 2],
            pads=[1, 1, 1, 1, 1, 1],
        ),
    ]
    inputs = {"x": [1, inner, extent, extent, extent], "w": [outer, inner, 3, 3, 3]}
    return _model(nodes, inputs, [1, outer, extent, extent, extent], {"scales": scales})


def _upsampling_inputs(dims: Dims) -> list[Array]:
    inner, extent = dims["channels"], dims["extent"]
    return [_normal(1, inner, *[extent] * 3), _normal(dims["filters"], inner, 3, 3, 3, seed=1)]


def _unfold(dims: Dims) -> onnx.ModelProto:
    """All 3×3 windows of an image, side by side, times one matrix."""
    channels, filters, extent = dims["channels"], dims["filters"], dims["extent"]
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, Array] = {"axes": np.asarray([1, 2], np.int64)}
    parts: list[str] = []
    for row in range(3):
        for column in range(3):
            part = f"window{row}{column}"
            constants[f"{part}.start"] = np.asarray([row, column], np.int64)
            constants[f"{part}.end"] = np.asarray([row + extent, column + extent], np.int64)
            names = ["x", f"{part}.start", f"{part}.end", "axes"]
            nodes.append(helper.make_node("Slice", names, [part]))
            parts.append(part)
    constants["flat"] = np.asarray([extent * extent, 9 * channels], np.int64)
    nodes += [
        helper.make_node("Concat", parts, ["windows"], axis=3),
        helper.make_node("Reshape", ["windows", "flat"], ["unfolded"]),
        helper.make_node("MatMul", ["unfolded", "w"], ["y"]),
    ]
    inputs = {"x": [1, extent + 2, extent + 2, channels], "w": [9 * channels, filters]}
    return _model(nodes, inputs, [extent * extent, filters], constants)


def _unfold_inputs(dims: Dims) -> list[Array]:
    channels, extent = dims["channels"], dims["extent"]
    weights = _normal(9 * channels, dims["filters"], seed=1)
    return [_normal(1, extent + 2, extent + 2, channels), weights]


CASES = (
    Case(
        "attention",
        _attention,
        _attention_inputs,
        references.attention,
        huge={"heads": 12, "length": 8192, "depth": 64},
        fits={"heads": 4, "length": 2048, "depth": 64},
        small={"heads": 2, "length": 150, "depth": 16},
    ),
    Case(
        "pairwise-distances",
        _distances,
        _distances_inputs,
        references.distances,
        huge={"rows": 40_000, "columns": 40_000, "depth": 32},
        fits={"rows": 8_000, "columns": 8_000, "depth": 32},
        small={"rows": 90, "columns": 130, "depth": 8},
    ),
    Case(
        "one-hot",
        _one_hot,
        _one_hot_inputs,
        references.one_hot,
        huge={"tokens": 16_384, "vocabulary": 32_000, "width": 64},
        fits={"tokens": 4_096, "vocabulary": 16_000, "width": 64},
        small={"tokens": 70, "vocabulary": 50, "width": 24},
    ),
    Case(
        "differences",
        _differences,
        _differences_inputs,
        references.differences,
        huge={"points": 16_384, "centres": 512, "depth": 128},
        fits={"points": 4_096, "centres": 256, "depth": 128},
        small={"points": 45, "centres": 20, "depth": 30},
    ),
    Case(
        "cross-entropy",
        _cross_entropy,
        _cross_entropy_inputs,
        references.cross_entropy,
        huge={"tokens": 8_192, "vocabulary": 50_257, "width": 64},
        fits={"tokens": 2_048, "vocabulary": 16_000, "width": 64},
        small={"tokens": 70, "vocabulary": 120, "width": 16},
    ),
    Case(
        "upsampling",
        _upsampling,
        _upsampling_inputs,
        references.upsampling,
        huge={"channels": 32, "filters": 4, "extent": 80},
        fits={"channels": 16, "filters": 4, "extent": 56},
        small={"channels": 3, "filters": 2, "extent": 9},
    ),
    Case(
        "unfold",
        _unfold,
        _unfold_inputs,
        references.unfold,
        huge={"channels": 32, "filters": 16, "extent": 1_280},
        fits={"channels": 32, "filters": 16, "extent": 480},
        small={"channels": 5, "filters": 7, "extent": 12},
    ),
)
"""All models of the suite."""
