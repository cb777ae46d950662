"""The numpy semantics of the ops against ONNX's reference evaluator."""

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import from_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.indexing import GatherElementsOp, GatherNdOp, GatherOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.resampling import COORDINATES, NEAREST, Resampling
from braid.dialects.braid.resize import ResizeOp
from braid.dialects.braid.scan import ScanOp
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterNdOp
from braid.dialects.braid.sorting import TopKOp
from braid.dialects.braid.transposed_convolution import ConvTransposeOp

Array = np.ndarray
RNG = np.random.default_rng(11)


def floats(*shape: int) -> Array:
    return RNG.uniform(-2, 2, shape).astype(np.float32)


def onnx_results(
    op_type: str, inputs: Sequence[Array | None], count: int = 1, **attributes: object
) -> list[Array]:
    """Return the results of one node; omitted inputs are None."""
    names = [f"i{k}" if x is not None else "" for k, x in enumerate(inputs)]
    outputs = [f"o{k}" for k in range(count)]
    node = helper.make_node(op_type, names, outputs, **attributes)
    graph = helper.make_graph(
        [node],
        "test",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in zip(names, inputs, strict=True)
            if x is not None
        ],
        [helper.make_value_info(n, onnx.TypeProto()) for n in outputs],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    feeds = {n: x for n, x in zip(names, inputs, strict=True) if x is not None}
    return ReferenceEvaluator(model).run(None, feeds)


def check(op_class: type[TensorOp], build, operands: Sequence[Array], expected: Sequence[Array]):
    """`build` applied to block arguments evaluates to `expected` on `operands`, and verifies."""
    block = Block(arg_types=[TensorType(from_numpy(x.dtype), x.shape) for x in operands])
    op = build(*block.args)
    assert isinstance(op, op_class)
    op.verify()
    actual = op.evaluate(*operands)
    for index, (left, right) in enumerate(zip(actual, expected, strict=True)):
        assert left.shape == right.shape == op.result_type(index).get_shape()
        assert left.dtype == right.dtype
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5)


UNARY = {
    **{name: name.capitalize() for name in ("neg", "abs", "sign", "ceil", "floor", "round")},
    **{name: name.capitalize() for name in ("sqrt", "reciprocal", "exp", "log", "erf", "tanh")},
    **{name: name.capitalize() for name in ("sin", "cos", "tan", "sinh", "cosh", "asinh")},
    **{name: name.capitalize() for name in ("asin", "acos", "atan", "acosh", "atanh")},
    "isnan": "IsNaN",
    "isinf": "IsInf",
}
BELOW_ONE = {"asin", "acos", "atanh"}
ABOVE_ONE = {"sqrt", "log", "acosh"}


@pytest.mark.parametrize("name", sorted(UNARY))
def test_unary(name: str) -> None:
    x = floats(4, 5)
    if name in BELOW_ONE:
        x = x / 3
    elif name in ABOVE_ONE:
        x = np.abs(x) + 1
    elif name == "round":
        x = np.array([[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49, -0.51]], np.float32)
    elif name in ("isnan", "isinf"):
        x = np.array([[np.nan, np.inf, -np.inf, 0]], np.float32)
    check(TensorOp, lambda v: elementwise(name, v), [x], onnx_results(UNARY[name], [x]))


def test_rsqrt() -> None:
    x = np.abs(floats(5)) + 0.1
    check(TensorOp, lambda v: elementwise("rsqrt", v), [x], [(1 / np.sqrt(x)).astype(np.float32)])


BINARY = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "pow": "Pow",
    "maximum": "Max",
    "minimum": "Min",
    "eq": "Equal",
    "lt": "Less",
    "le": "LessOrEqual",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
}


@pytest.mark.parametrize("name", sorted(BINARY))
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_binary(name: str, dtype: type) -> None:
    a, b = (RNG.integers(1, 5, shape).astype(dtype) for shape in ((3, 1, 4), (1, 2, 4)))
    build = lambda x, y: elementwise(name, x, y)  # noqa: E731
    check(TensorOp, build, [a, b], onnx_results(BINARY[name], [a, b]))


@pytest.mark.parametrize("name", ["div", "rem"])
def test_integer_division_rounds_toward_zero(name: str) -> None:
    a, b = np.array([7, -7, 7, -7], np.int32), np.array([2, 2, -2, -2], np.int32)
    expected = {"div": [3, -3, -3, 3], "rem": [1, -1, 1, -1]}[name]
    build = lambda x, y: elementwise(name, x, y)  # noqa: E731
    check(TensorOp, build, [a, b], [np.array(expected, np.int32)])


def test_integer_division_at_the_edges() -> None:
    divide = lambda x, y: elementwise("div", x, y)  # noqa: E731
    least = np.array([-128, -128, 127, 5], np.int8)
    by = np.array([3, -127, -128, 0], np.int8)
    check(TensorOp, divide, [least, by], [np.array([-42, 1, 0, 0], np.int8)])
    large, two = np.array([2**64 - 1], np.uint64), np.array([2], np.uint64)
    check(TensorOp, divide, [large, two], [np.array([2**63 - 1], np.uint64)])


def test_integer_power_is_exact() -> None:
    a = np.array([3, -3, 1, -1, -1, 2, 7], np.int64)
    b = np.array([39, 3, -2, -2, -3, -1, 0], np.int64)
    expected = np.array([3**39, -27, 1, 1, -1, 0, 1], np.int64)
    check(TensorOp, lambda x, y: elementwise("pow", x, y), [a, b], [expected])


@pytest.mark.parametrize(("name", "op_type"), [("and", "And"), ("or", "Or"), ("xor", "Xor")])
def test_logic(name: str, op_type: str) -> None:
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    build = lambda x, y: elementwise(name, x, y)  # noqa: E731
    check(TensorOp, build, [a, b], onnx_results(op_type, [a, b]))


def test_select_and_cast() -> None:
    condition, a, b = np.array([True, False]), floats(2), floats(2)
    check(
        TensorOp,
        lambda *x: elementwise("select", *x),
        [condition, a, b],
        onnx_results("Where", [condition, a, b]),
    )
    to_i32 = lambda x: elementwise("cast", x, element_type=from_numpy(np.int32))  # noqa: E731
    check(TensorOp, to_i32, [a * 9], onnx_results("Cast", [a * 9], to=onnx.TensorProto.INT32))


def test_matmul() -> None:
    a, b = floats(2, 3, 4), floats(1, 4, 5)
    check(MatmulOp, MatmulOp.on, [a, b], onnx_results("MatMul", [a, b]))


def test_movement() -> None:
    x, y = floats(2, 3, 4), floats(2, 1, 4)
    check(
        TransposeOp,
        lambda v: TransposeOp.get(v, [2, 0, 1]),
        [x],
        onnx_results("Transpose", [x], perm=[2, 0, 1]),
    )
    check(
        ReshapeOp,
        lambda v: ReshapeOp.get(v, [4, 6]),
        [x],
        onnx_results("Reshape", [x, np.array([4, 6])]),
    )
    check(
        ConcatOp,
        lambda *v: ConcatOp.get(v, 1),
        [x, y],
        onnx_results("Concat", [x, y], axis=1),
    )
    bounds = [np.array(v) for v in ([3, 0], [0, 2], [2, 1], [-2, 1])]
    starts, ends, axes, steps = bounds
    check(
        SliceOp,
        lambda v: SliceOp.get(v, [0, 0, 3], [2, 2, 2], [1, 1, -2]),
        [x],
        onnx_results("Slice", [x, starts, ends, axes, steps]),
    )
    check(
        PadOp,
        lambda v: PadOp.get(v, [0, 1, 2], [3, 0, 1], 1.5),
        [x],
        onnx_results("Pad", [x, np.array([0, 1, 2, 3, 0, 1]), np.float32(1.5)]),
    )


@pytest.mark.parametrize("groups", [1, 2])
def test_conv(groups: int) -> None:
    x, w = floats(2, 4, 7, 8), floats(6, 4 // groups, 3, 2)
    expected = onnx_results(
        "Conv", [x, w], strides=[2, 1], dilations=[1, 2], pads=[1, 0, 2, 1], group=groups
    )
    windows = {"strides": [2, 1], "dilations": [1, 2], "pad_low": [1, 0], "pad_high": [2, 1]}
    check(ConvOp, lambda *v: ConvOp.get(*v, **windows, groups=groups), [x, w], expected)


@pytest.mark.parametrize("groups", [1, 2])
def test_conv_transpose(groups: int) -> None:
    x, w = floats(2, 4, 3, 4), floats(4, 3, 3, 2)
    options = {"strides": [2, 3], "dilations": [1, 2], "output_padding": [1, 0]}
    # The reference evaluator fails on groups, so it is given one at a time.
    parts = [
        onnx_results("ConvTranspose", [xs, ws], **options, pads=[1, 0, 0, 1])[0]
        for xs, ws in zip(np.split(x, groups, 1), np.split(w, groups, 0), strict=True)
    ]
    expected = [np.concatenate(parts, 1)]
    pads = {"pad_low": [1, 0], "pad_high": [0, 1]}
    check(
        ConvTransposeOp,
        lambda *v: ConvTransposeOp.get(*v, **options, **pads, groups=groups),
        [x, w],
        expected,
    )


def test_pool() -> None:
    x = floats(1, 2, 7, 6)
    windows = {"strides": [2, 1], "pad_low": [1, 0], "pad_high": [0, 1], "dilations": [1, 1]}
    onnx_windows = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]}
    expected = onnx_results("MaxPool", [x], **onnx_windows)
    check(PoolOp, lambda v: PoolOp.get(v, "max", [3, 2], **windows), [x], expected)
    average = onnx_results("AveragePool", [x], **onnx_windows, count_include_pad=1)
    check(PoolOp, lambda v: PoolOp.get(v, "add", [3, 2], **windows), [x], [6 * average[0]])


@pytest.mark.parametrize(
    ("kind", "op_type"),
    [
        ("add", "ReduceSum"),
        ("mul", "ReduceProd"),
        ("maximum", "ReduceMax"),
        ("minimum", "ReduceMin"),
    ],
)
def test_reduce(kind: str, op_type: str) -> None:
    x, axes = floats(2, 3, 4), np.array([0, 2])
    expected = onnx_results(op_type, [x, axes])
    check(ReduceOp, lambda v: ReduceOp.get(v, kind, [0, 2]), [x], expected)


@pytest.mark.parametrize("select_last", [False, True])
@pytest.mark.parametrize(("kind", "op_type"), [("max", "ArgMax"), ("min", "ArgMin")])
def test_arg_reduce(kind: str, op_type: str, select_last: bool) -> None:
    x = RNG.integers(0, 3, (4, 7)).astype(np.float32)
    expected = onnx_results(op_type, [x], axis=1, select_last_index=int(select_last))
    build = lambda v: ArgReduceOp.get(v, kind, 1, select_last=select_last)  # noqa: E731
    check(ArgReduceOp, build, [x], expected)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan(exclusive: bool, reverse: bool) -> None:
    x = floats(2, 5)
    expected = onnx_results(
        "CumSum", [x, np.array(1)], exclusive=int(exclusive), reverse=int(reverse)
    )
    build = lambda v: ScanOp.get(v, "add", 1, exclusive=exclusive, reverse=reverse)  # noqa: E731
    check(ScanOp, build, [x], expected)


def test_normalization() -> None:
    x, scale, bias = floats(2, 3, 4), floats(1, 3, 4), floats(1, 3, 4)
    expected = onnx_results("Softmax", [100 * x], axis=1)
    check(SoftmaxOp, lambda v: SoftmaxOp.get(v, 1), [100 * x], expected)
    expected = onnx_results("LayerNormalization", [x, scale[0], bias[0]], axis=1, epsilon=0.01)
    build = lambda *v: LayerNormOp.get(*v, first_dim=1, epsilon=0.01)  # noqa: E731
    check(LayerNormOp, build, [x, scale, bias], expected)


def test_gather() -> None:
    x, i = floats(4, 3, 5), RNG.integers(-3, 3, (2, 6))
    expected = onnx_results("Gather", [x, i], axis=1)
    check(GatherOp, lambda *v: GatherOp.get(*v, 1), [x, i], expected)
    j = RNG.integers(-3, 3, (4, 2, 5))
    expected = onnx_results("GatherElements", [x, j], axis=1)
    check(GatherElementsOp, lambda *v: GatherElementsOp.get(*v, 1), [x, j], expected)
    k = RNG.integers(0, 3, (7, 2))
    check(GatherNdOp, GatherNdOp.get, [x, k], onnx_results("GatherND", [x, k]))
    m = RNG.integers(0, 3, (4, 6, 1))
    expected = onnx_results("GatherND", [x, m], batch_dims=1)
    check(GatherNdOp, lambda *v: GatherNdOp.get(*v, batch_dims=1), [x, m], expected)


REDUCTIONS = {"none": "none", "add": "add", "mul": "mul", "maximum": "max", "minimum": "min"}


@pytest.mark.parametrize("kind", sorted(REDUCTIONS))
def test_scatter(kind: str) -> None:
    data, updates = floats(4, 5), floats(2, 5)
    rows = np.array([[0, 1, 2, 3, 0], [1, 2, 3, -4, 2]])
    if kind == "none":
        rows[1, 3] = 0  # of two updates of one element either may stay
    expected = onnx_results(
        "ScatterElements", [data, rows, updates], axis=0, reduction=REDUCTIONS[kind]
    )
    build = lambda *v: ScatterElementsOp.get(*v, 0, kind)  # noqa: E731
    check(ScatterElementsOp, build, [data, rows, updates], expected)
    at = np.array([[2], [0]]) if kind == "none" else np.array([[2], [2]])
    expected = onnx_results("ScatterND", [data, at, updates], reduction=REDUCTIONS[kind])
    check(ScatterNdOp, lambda *v: ScatterNdOp.get(*v, kind), [data, at, updates], expected)


@pytest.mark.parametrize("largest", [False, True])
def test_top_k(largest: bool) -> None:
    x = RNG.permutation(24).reshape(2, 12).astype(np.float32)
    expected = onnx_results("TopK", [x, np.array([5])], 2, axis=1, largest=int(largest))
    check(TopKOp, lambda v: TopKOp.get(v, 5, 1, largest=largest), [x], expected)


def test_top_k_of_equals_takes_the_first() -> None:
    x = np.array([1, 3, 3, 1, 3], np.float32)
    expected = [np.array([3, 3], np.float32), np.array([1, 2])]
    check(TopKOp, lambda v: TopKOp.get(v, 2, 0), [x], expected)


@pytest.mark.parametrize("largest", [False, True])
def test_top_k_of_nan(largest: bool) -> None:
    """It is above all numbers in types that are not numpy's own, too."""
    x = np.array([1, np.nan, 3, -2, np.nan, 7], ml_dtypes.bfloat16)
    order = [1, 4, 5] if largest else [3, 0, 2]
    check(TopKOp, lambda v: TopKOp.get(v, 3, 0, largest=largest), [x], [x[order], np.array(order)])


def resized(x: Array, sizes: Sequence[int], how: Resampling, region: Sequence[float] = ()) -> None:
    expected = onnx_results(
        "Resize",
        [x, np.array(region, np.float32) if region else None, None, np.array(sizes)],
        mode=how.mode,
        coordinate_transformation_mode=how.coordinates,
        nearest_mode=how.nearest_mode,
        cubic_coeff_a=how.cubic_a,
        exclude_outside=int(how.exclude_outside),
        antialias=int(how.antialias),
        extrapolation_value=how.extrapolation,
    )
    scales = [size / extent for size, extent in zip(sizes, x.shape, strict=True)]
    check(ResizeOp, lambda v: ResizeOp.get(v, sizes, scales, how, region), [x], expected)


@pytest.mark.parametrize("coordinates", sorted({*COORDINATES} - {"tf_half_pixel_for_nn"}))
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize(mode: str, coordinates: str) -> None:
    region = (0, 0, 0.1, 0.2, 1, 1, 0.8, 1.3) if coordinates == "tf_crop_and_resize" else ()
    how = Resampling(mode, coordinates, extrapolation=7.5)
    for sizes in ((1, 1, 7, 5), (1, 1, 2, 3)):
        resized(floats(1, 1, 4, 4), sizes, how, region)


@pytest.mark.parametrize("nearest_mode", sorted(NEAREST))
def test_resize_nearest_modes(nearest_mode: str) -> None:
    resized(floats(6, 5), (4, 8), Resampling("nearest", "half_pixel", nearest_mode))


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_resize_filters(mode: str) -> None:
    resized(floats(8, 9), (3, 4), Resampling(mode, antialias=True))
    resized(floats(4, 5), (7, 9), Resampling(mode, exclude_outside=True, cubic_a=-0.5))


def test_16_bit_floats_are_summed_in_32_bits() -> None:
    ones = np.ones((1, 1, 4096), np.float16)
    total = np.full((1, 1, 1), 4096, np.float16)
    windows = {"strides": [1], "dilations": [1], "pad_low": [0], "pad_high": [0]}
    check(ReduceOp, lambda v: ReduceOp.get(v, "add", [2]), [ones], [total])
    check(PoolOp, lambda v: PoolOp.get(v, "add", [4096], **windows), [ones], [total])
    check(ConvOp, lambda *v: ConvOp.get(*v, **windows), [ones, ones], [total])
    column = ones.reshape(1, 4096, 1)
    check(MatmulOp, MatmulOp.on, [ones, column], [total])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_results_keep_the_element_type(dtype: type) -> None:
    x, one = floats(2, 3, 4).astype(dtype), np.ones((1, 1, 1), dtype)
    softmax = onnx_results("Softmax", [x.astype(np.float32)], axis=2)[0].astype(dtype)
    check(SoftmaxOp, lambda v: SoftmaxOp.get(v, 2), [x], [softmax])
    norm = lambda *v: LayerNormOp.get(*v, first_dim=2, epsilon=0.0)  # noqa: E731
    wide = x.astype(np.float32)
    mean, deviation = wide.mean(2, keepdims=True), wide.std(2, keepdims=True)
    expected = ((wide - mean) / deviation + 1).astype(dtype)
    check(LayerNormOp, norm, [x, one, one], [expected])
    check(TensorOp, lambda v: elementwise("erf", v), [x], onnx_results("Erf", [x]))
