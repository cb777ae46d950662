"""Convolutions of bytes in groups: integers are exact, whatever groups are merged, on every CPU."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import braid
from braid.dialects.braid.attribute_names import MERGED_GROUPS
from braid.dialects.braid.base import integer
from braid.dialects.braid.convolution import ConvOp
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.universe import make_context
from test.run.test_computed_bytes import CPUS, compiled_for, numbers


def model_of(weight: np.ndarray, shape: Sequence[int], groups: int, pads: Sequence[int]):
    """`ConvInteger` with a zero point of the input."""
    graph = helper.make_graph(
        [helper.make_node("ConvInteger", ["x", "w", "z"], ["y"], group=groups, pads=pads)],
        "groups",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, shape)],
        [helper.make_tensor_value_info("y", TensorProto.INT32, None)],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.uint8(3), "z")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("cpu", CPUS)
@settings(max_examples=8, deadline=None)
@given(
    groups=st.sampled_from([2, 3, 6, 7, 16]),
    depth=st.sampled_from([1, 2, 3, 4, 5, 8, 12, 20]),
    outputs=st.sampled_from([1, 2, 3, 4, 8, 12, 20, 24, 40]),
    window=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_sums_are_exact(cpu, groups, depth, outputs, window, seed) -> None:
    rng = np.random.default_rng(seed)
    weight = numbers(rng, np.int8, (groups * outputs, depth, window, window))
    x = numbers(rng, np.uint8, (2, groups * depth, 6, 6))
    model = model_of(weight, x.shape, groups, [1, 0, 1, 2])
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(compiled_for(cpu, model)(x), expected)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("depth", [4, 64])
def test_groups_of_one_output(cpu, depth) -> None:
    rng = np.random.default_rng(0)
    weight = numbers(rng, np.int8, (3, depth, 3, 3))
    x = numbers(rng, np.uint8, (1, 3 * depth, 5, 6))
    model = model_of(weight, x.shape, 3, [0] * 4)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(compiled_for(cpu, model)(x), expected)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("size", [(2, 1), (1,), (3, 1, 1)])
@pytest.mark.parametrize(("groups", "outputs"), [(1, 32), (4, 12)])
def test_images_one_pixel_wide(cpu, size, groups, outputs) -> None:
    """Pixels of a row are as far apart as with the other channels."""
    rng = np.random.default_rng(0)
    weight = rng.integers(-8, 8, (groups * outputs, 20, *[1] * len(size))).astype(np.int8)
    x = numbers(rng, np.uint8, (1, groups * 20, *size))
    model = model_of(weight, x.shape, groups, [0] * 2 * len(size))
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(compiled_for(cpu, model)(x), expected)


@settings(max_examples=20, deadline=None)
@given(
    groups=st.sampled_from([2, 6, 12]),
    depth=st.integers(1, 5),
    outputs=st.integers(1, 5),
    dims=st.integers(1, 3),
    number=st.integers(0, 9),
)
def test_merged_groups_mean_the_same(groups, depth, outputs, dims, number) -> None:
    counts = [count for count in range(1, groups + 1) if groups % count == 0]
    x, w = (1, groups * depth, *[3] * dims), (groups * outputs, depth, *[2] * dims)
    types = ["x".join(map(str, shape)) for shape in (x, w, (1, w[0], *[2] * dims))]
    parts = [
        f"{name} = array<i64: {', '.join([value] * dims)}>"
        for name, value in (("strides", "1"), ("dilations", "1"), ("pad_low", "0"))
    ]
    parts += [parts[-1].replace("low", "high"), f"groups = {groups} : i64", "accumulator = i32"]
    text = f"""func.func @main(%x: tensor<{types[0]}xui8>, %w: tensor<{types[1]}xi8>)
    -> tensor<{types[2]}xi32> {{
  %y = braid.conv %x, %w {{{", ".join(parts)}}}
    : (tensor<{types[0]}xui8>, tensor<{types[1]}xi8>) -> tensor<{types[2]}xi32>
  func.return %y : tensor<{types[2]}xi32>
}}"""
    context = make_context()
    module = parse_mlir(context, text, "groups.mlir").module
    rng = np.random.default_rng(number)
    arrays = numbers(rng, np.uint8, x), numbers(rng, np.int8, w)
    expected = braid.interpret(module)(*arrays)
    (conv,) = (op for op in module.walk() if isinstance(op, ConvOp))
    conv.attributes[MERGED_GROUPS] = integer(counts[number % len(counts)])
    run_pipeline(context, module, "apply-convolution-groups")
    np.testing.assert_array_equal(braid.interpret(module)(*arrays), expected)
