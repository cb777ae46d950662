"""Every op group: one node at a time against ONNX's own evaluator."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from braid.support.errors import BraidError

Check = Callable[..., Any]

X = np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype(np.float32)
M = X[0, 0]
INDICES = np.array([[0, 2, -1], [1, 1, 0]], np.int64)


_ACTIVATIONS = (
    *("Relu", "Sigmoid", "Elu", "Selu", "LeakyRelu", "Softplus", "Softsign", "HardSigmoid"),
    *("HardSwish", "Mish", "ThresholdedRelu", "Shrink", "Celu", "Erf", "Sign", "Round"),
)
_REDUCTIONS = (
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2"),
    *("ReduceProd", "ReduceSumSquare", "ReduceLogSumExp"),
)


def ints(*values: int) -> list[Any]:
    return [np.array(values, np.int64)]


@pytest.mark.parametrize(
    "op_type",
    _ACTIVATIONS,
)
def test_activations(check: Check, op_type: str) -> None:
    check(op_type, X * 3)


def test_gelu(check: Check) -> None:
    check("Gelu", X, opset=20)
    check("Gelu", X, opset=20, approximate="tanh")


@pytest.mark.parametrize("op_type", ["Add", "Mul", "Sub", "Div", "Max", "Min", "PRelu"])
def test_lower_ranks_are_aligned(check: Check, op_type: str) -> None:
    check(op_type, X, X[0, :, :1, :1].copy())


def test_arithmetic(check: Check) -> None:
    check("Pow", abs(X), [np.array(2.0, np.float32)])
    check("Pow", np.array(3.0, np.float32), [np.array([2.0], np.float32)])
    check("Pow", abs(X), np.array(1.5, np.float32))
    check("Mod", np.array([-7, 7, -7, 6]), np.array([3, -3, -3, 3]))
    check("Mod", X, X[0], fmod=1)
    check("Mean", X, X[0], X[1])
    check("Clip", X, [np.array(-0.5, np.float32)], None)
    check("Clip", X, opset=7, min=-0.5, max=0.5)
    check("Where", X > 0, X, np.zeros((), np.float32))
    check("Cast", X, to=9)
    check("BitShift", np.array([1, 2], np.uint8), np.array([3, 1], np.uint8), direction="LEFT")


@pytest.mark.parametrize(
    "attributes",
    [
        {"pads": [1, 2, 3, 0], "strides": [2, 1]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 3]},
        {"auto_pad": "SAME_LOWER", "strides": [3, 2]},
        {"auto_pad": "VALID", "dilations": [2, 2]},
    ],
)
def test_convolution(check: Check, rng: np.random.Generator, attributes: dict[str, Any]) -> None:
    weight = rng.standard_normal((4, 3, 3, 2)).astype(np.float32)
    check("Conv", X, [weight], np.arange(4, dtype=np.float32), **attributes)


def test_grouped_and_transposed_convolution(check: Check, rng: np.random.Generator) -> None:
    check("Conv", X, rng.standard_normal((6, 1, 3, 3)).astype(np.float32), group=3)
    weight = rng.standard_normal((3, 5, 3, 3)).astype(np.float32)
    check("ConvTranspose", X, weight, strides=[2, 2], pads=[1, 1, 0, 1], output_padding=[1, 0])
    check("ConvTranspose", X, weight, strides=[2, 2], auto_pad="SAME_UPPER")


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_pooling(check: Check, op_type: str, ceil_mode: int) -> None:
    check(op_type, X, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 0, 1, 1], ceil_mode=ceil_mode)


def test_averages_count_padding_where_asked(check: Check) -> None:
    check("AveragePool", X, kernel_shape=[3, 2], pads=[1, 1, 1, 1], count_include_pad=1)
    check("AveragePool", X, kernel_shape=[3, 2], auto_pad="SAME_UPPER", strides=[2, 2])
    check("GlobalAveragePool", X)
    check("GlobalMaxPool", X)


def test_matrix_products(check: Check) -> None:
    check("MatMul", X, X[0])
    check("MatMul", X, M)
    check("MatMul", M, M[0])
    check("MatMul", M[0], X)
    check("MatMul", M[0], M[1])
    check("Gemm", M, [M], M[0], alpha=0.5, beta=2.0, transA=1, transB=1)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(
    "op_type",
    _REDUCTIONS,
)
def test_reductions(check: Check, op_type: str, keepdims: int) -> None:
    check(op_type, X, ints(-1, 1), keepdims=keepdims, tolerance=1e-4)
    old = {} if op_type == "ReduceSum" else {"axes": [0, -2]}
    check(op_type, X, opset=11, keepdims=keepdims, tolerance=1e-4, **old)


def test_reductions_over_no_axes(check: Check) -> None:
    check("ReduceSum", X, ints(), noop_with_empty_axes=1)
    check("ReduceSum", X, ints(), noop_with_empty_axes=1, keepdims=0)
    check("ReduceMean", X, ints(-1), noop_with_empty_axes=1)
    check("ReduceSum", X, ints())


def test_searches_and_scans(check: Check) -> None:
    check("ArgMax", np.round(X), axis=2, keepdims=0)
    check("ArgMin", np.round(X), axis=-1, select_last_index=1)
    check("CumSum", X, [np.array(2)], exclusive=1, reverse=1)
    check("TopK", X, ints(3), axis=1, outputs=2, largest=0)


def test_normalizations(check: Check) -> None:
    vector = np.array([0.5, 1.0, 2.0], np.float32)
    check("BatchNormalization", X, vector, vector, [vector], [vector])
    check("InstanceNormalization", X, vector, vector, tolerance=1e-4)
    check("LayerNormalization", X, M[0], M[1], tolerance=1e-4)
    check("LayerNormalization", X, X[0, 0], axis=2, tolerance=1e-4)
    # ONNX's evaluator normalizes only as many channels as there are images.
    check("LRN", np.concatenate([X, X])[:3], size=3, alpha=0.1, beta=0.5, bias=2.0)
    check("LpNormalization", X, axis=1)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
def test_softmax_is_flat_before_opset_13(check: Check, op_type: str) -> None:
    check(op_type, X, axis=1, opset=18)
    check(op_type, X.reshape(2, -1), opset=18)


def test_movement(check: Check) -> None:
    check("Reshape", X, ints(0, -1, 16))
    check("Flatten", X, axis=2)
    check("Squeeze", X[:, :1], ints(1))
    check("Squeeze", X[:1, :1])
    check("Unsqueeze", X, ints(0, -1))
    check("Transpose", X)
    check("Transpose", X, perm=[0, 2, 3, 1])
    check("Expand", M[:, :1], ints(3, 1, 8))
    check("Tile", M, ints(2, 3))
    check("Concat", X, X[:, :2].copy(), axis=1)
    check("DepthToSpace", X.reshape(2, 12, 4, 4), blocksize=2)
    check("DepthToSpace", X.reshape(2, 12, 4, 4), blocksize=2, mode="CRD")
    check("SpaceToDepth", X, blocksize=2)


def test_splits_and_slices(check: Check) -> None:
    check("Split", X, ints(3, 5), axis=2, outputs=2)
    check("Split", X, axis=-1, outputs=3, num_outputs=3)
    check("Split", X, axis=3, outputs=2, opset=11, split=[2, 6])
    check("Slice", X, ints(1, -1), ints(100, -100), ints(2, 3), ints(3, -2))
    check("Slice", X, opset=9, starts=[1, -3], ends=[2, 1000], axes=[0, 2])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_padding(check: Check, mode: str) -> None:
    check("Pad", X, ints(0, 0, 2, 1, 0, 1 if mode == "constant" else 0, 0, 3), mode=mode, opset=19)


def test_indexing(check: Check) -> None:
    check("Gather", X, INDICES, axis=2)
    check("Gather", X, [np.array(-1)], axis=1)
    check("GatherElements", M[:2], INDICES, axis=1)
    check("GatherND", X, np.array([[0, 1], [1, 2]]))
    check("ScatterElements", M, INDICES, M[:2, :3].copy(), axis=1, reduction="add")
    check("ScatterND", M, np.array([[1], [4]]), M[:2], reduction="max", opset=18)
    check("OneHot", INDICES, [np.array(5)], np.array([0.5, 2.0], np.float32), axis=1)
    check("Trilu", M, [np.array(1)], upper=0)
    check("EyeLike", M, k=1)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize(check: Check, mode: str) -> None:
    scales = [np.array([1, 1, 1.5, 0.6], np.float32)]
    check("Resize", X, None, scales, mode=mode)
    with pytest.raises(BraidError, match="incompatible with a `keep_aspect_ratio_policy`"):
        check("Resize", X, None, scales, mode=mode, keep_aspect_ratio_policy="not_larger")
    check("Resize", X, None, None, ints(2, 3, 11, 5), mode=mode)


def test_constants_about_shapes(check: Check) -> None:
    check("Shape", X, start=1)
    check("Size", X)
    check("Compress", X, [np.array([True, False, True])], axis=1)
    check("NonZero", [INDICES])
    check("Unique", [np.array([3, 1, 3, 2])], outputs=4, sorted=0)
    check("ConstantOfShape", ints(2, 3))
    check("Range", [np.array(1)], [np.array(9)], [np.array(3)])


def test_tensors_without_elements_become_no_ops(check: Check) -> None:
    imported = check("ReduceSum", np.zeros((2, 0, 3), np.float32), ints(1))
    assert not imported.parameters
    empty = np.zeros((2, 0, 8, 8), np.float32)
    names = [op.name for op in check("Concat", empty, X, X, axis=1).module.walk()]
    assert names.count("braid.concat") == 1
    assert "braid.slice" not in [
        op.name for op in check("Slice", X, ints(9), ints(9)).module.walk()
    ]
