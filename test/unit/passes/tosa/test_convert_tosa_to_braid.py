"""What `convert-tosa-to-braid` makes of each op computes what the TOSA specification says."""

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import braid
from braid.analysis.structure.verification import verify_module
from braid.dialects.tosa import TosaOp
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.support.errors import SourceLocation, UnsupportedError
from braid.support.mlir_bindings import ir
from braid.universe import make_context
from test.unit.passes.tosa import elementwise, movement, windows
from test.unit.passes.tosa.case import Case, module_of, random_inputs

CASES = elementwise.CASES | windows.CASES | movement.CASES


def converted(text: str) -> ModuleOp:
    """Return the module after the conversion."""
    context = make_context()
    module = parse_mlir(context, text, "tosa.mlir").module
    verify_module(module)
    run_pipeline(context, module, "convert-tosa-to-braid")
    assert not any(isinstance(op, TosaOp) for op in module.walk())
    return module


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_an_op_means_the_same(case: Case) -> None:
    text = module_of(case)
    inputs = random_inputs(case.types)
    expected = np.asarray(case.expected(*inputs))
    with ir.Context():
        # Upstream says whether this is TOSA, and gives both of its forms.
        upstream = ir.Module.parse(text).operation
        forms = [str(upstream), upstream.get_asm(print_generic_op_form=True)]
    for form in forms:
        actual = braid.interpret(converted(form))(*inputs)
        assert isinstance(actual, np.ndarray)
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=1e-6)


def test_a_cast_to_integers_saturates() -> None:
    text = """func.func @main(%a: tensor<6xf32>) -> tensor<6xi32> {
  %y = tosa.cast %a : (tensor<6xf32>) -> tensor<6xi32>
  return %y : tensor<6xi32>
}"""
    x = np.array([-3e9, 3e9, 2.5, 3.5, -0.5, 2147483520.0], np.float32)
    result = braid.interpret(converted(text))(x)
    np.testing.assert_array_equal(result, [-(2**31), 2**31 - 1, 2, 4, 0, 2147483520])


def test_a_cast_of_half_precision_to_integers_saturates() -> None:
    text = """func.func @main(%a: tensor<4xf16>) -> tensor<4xi32> {
  %y = tosa.cast %a : (tensor<4xf16>) -> tensor<4xi32>
  return %y : tensor<4xi32>
}"""
    x = np.array([-np.inf, np.inf, 65504.0, -1.5], np.float16)
    result = braid.interpret(converted(text))(x)
    np.testing.assert_array_equal(result, [-(2**31), 2**31 - 1, 65504, -2])


BRANCH_AND_LOOP = """
func.func @main(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  %one = "tosa.const"() <{values = dense<1.0> : tensor<4xf32>}> : () -> tensor<4xf32>
  %limit = "tosa.const"() <{values = dense<10.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %start = tosa.cond_if %c (%a = %x) : tensor<i1> (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    tosa.yield %a : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>):
    %d = tosa.add %a, %one : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    tosa.yield %d : tensor<4xf32>
  }
  %y = tosa.while_loop (%v = %start) : (tensor<4xf32>) -> tensor<4xf32> {
    %most = tosa.reduce_max %v {axis = 0 : i32} : (tensor<4xf32>) -> tensor<1xf32>
    %less = tosa.greater %limit, %most : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %s = tosa.const_shape {values = dense<> : tensor<0xindex>} : () -> !tosa.shape<0>
    %go = tosa.reshape %less, %s : (tensor<1xi1>, !tosa.shape<0>) -> tensor<i1>
    tosa.yield %go : tensor<i1>
  } do {
  ^bb0(%v: tensor<4xf32>):
    %w = tosa.add %v, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    tosa.yield %w : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
"""


@pytest.mark.parametrize("condition", [True, False])
def test_control_flow_runs(condition: bool) -> None:
    with ir.Context():
        generic = ir.Module.parse(BRANCH_AND_LOOP).operation.get_asm(print_generic_op_form=True)
    x = np.array([0.5, 1.0, 2.0, 3.0], np.float32)
    start = x if condition else x + 1
    for text in (BRANCH_AND_LOOP, generic):
        result = braid.interpret(converted(text))(x, np.array(condition))
        np.testing.assert_allclose(result, start * 4)


def test_a_condition_may_be_one_bool_of_any_rank() -> None:
    text = BRANCH_AND_LOOP.replace("%c: tensor<i1>", "%c: tensor<1x1xi1>")
    text = text.replace("(%a = %x) : tensor<i1>", "(%a = %x) : tensor<1x1xi1>")
    x = np.array([0.5, 1.0, 2.0, 3.0], np.float32)
    result = braid.interpret(converted(text))(x, np.array([[True]]))
    np.testing.assert_allclose(result, x * 4)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "%y = tosa.fft2d %a : (tensor<2x3xf32>) -> tensor<2x3xf32>",
            "op tosa.fft2d is not supported",
        ),
        (
            "%y = tosa.reduce_max %a {axis = 1 : i32, nan_mode = IGNORE} "
            ": (tensor<2x3xf32>) -> tensor<2x1xf32>",
            "NaNs are ignored",
        ),
        (
            "%y = tosa.pad %a, %a, %a : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) "
            "-> tensor<2x3xf32>",
            "operand 1 is not a constant",
        ),
    ],
)
def test_what_has_no_counterpart_is_said_with_its_place(line: str, message: str) -> None:
    text = f"func.func @main(%a: tensor<2x3xf32>) {{\n  {line}\n  return\n}}"
    with pytest.raises(UnsupportedError, match=message) as caught:
        converted(text)
    assert caught.value.location == SourceLocation("tosa.mlir", 2, 8)


def test_a_wrong_result_type_is_an_error() -> None:
    text = """func.func @main(%a: tensor<2x3xf32>) {
  %y = tosa.transpose %a {perms = array<i32: 1, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}"""
    with pytest.raises(braid.BraidError, match="expected tensor<3x2xf32>"):
        converted(text)


NETWORK = """
func.func @main(%x: tensor<2x16x16x3xf32>) -> tensor<2x10xf32> {{
  %z = "tosa.const"() <{{values = dense<0.0> : tensor<1xf32>}}> : () -> tensor<1xf32>
  %b0 = "tosa.const"() <{{values = dense<0.1> : tensor<16xf32>}}> : () -> tensor<16xf32>
  %w0 = "tosa.const"() <{{values = dense<{w0}> : tensor<16x3x3x3xf32>}}>
    : () -> tensor<16x3x3x3xf32>
  %w1 = "tosa.const"() <{{values = dense<{w1}> : tensor<3x3x16x1xf32>}}>
    : () -> tensor<3x3x16x1xf32>
  %w2 = "tosa.const"() <{{values = dense<{w2}> : tensor<1x16x10xf32>}}>
    : () -> tensor<1x16x10xf32>
  %c = tosa.conv2d %x, %w0, %b0, %z, %z {{acc_type = f32, dilation = array<i64: 1, 1>,
    pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>}} : (tensor<2x16x16x3xf32>,
    tensor<16x3x3x3xf32>, tensor<16xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x16x16x16xf32>
  %r = tosa.clamp %c {{min_val = 0.0 : f32, max_val = 6.0 : f32}}
    : (tensor<2x16x16x16xf32>) -> tensor<2x16x16x16xf32>
  %d = tosa.depthwise_conv2d %r, %w1, %b0, %z, %z {{acc_type = f32, dilation = array<i64: 1, 1>,
    pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>}} : (tensor<2x16x16x16xf32>,
    tensor<3x3x16x1xf32>, tensor<16xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x16x16x16xf32>
  %s = tosa.add %d, %r : (tensor<2x16x16x16xf32>, tensor<2x16x16x16xf32>) -> tensor<2x16x16x16xf32>
  %p = tosa.avg_pool2d %s, %z, %z {{acc_type = f32, kernel = array<i64: 16, 16>,
    pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 16, 16>}}
    : (tensor<2x16x16x16xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x1x1x16xf32>
  %h = tosa.const_shape {{values = dense<[1, 2, 16]> : tensor<3xindex>}} : () -> !tosa.shape<3>
  %f = tosa.reshape %p, %h : (tensor<2x1x1x16xf32>, !tosa.shape<3>) -> tensor<1x2x16xf32>
  %m = tosa.matmul %f, %w2, %z, %z : (tensor<1x2x16xf32>, tensor<1x16x10xf32>, tensor<1xf32>,
    tensor<1xf32>) -> tensor<1x2x10xf32>
  %k = tosa.const_shape {{values = dense<[2, 10]> : tensor<2xindex>}} : () -> !tosa.shape<2>
  %y = tosa.reshape %m, %k : (tensor<1x2x10xf32>, !tosa.shape<2>) -> tensor<2x10xf32>
  return %y : tensor<2x10xf32>
}}
"""


def test_a_network_is_compiled_and_run(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    x, w0, w1, w2 = (
        random.standard_normal(shape, np.float32)
        for shape in ([2, 16, 16, 3], [16, 3, 3, 3], [3, 3, 16, 1], [1, 16, 10])
    )
    path = tmp_path / "network.mlir"
    path.write_text(NETWORK.format(w0=w0.tolist(), w1=w1.tolist(), w2=w2.tolist()))
    bias = np.full(16, 0.1, np.float32)
    r = np.clip(windows.convolved(x, w0, bias, 1, 1), 0, 6)
    padded = np.pad(r, [(0, 0), (1, 1), (1, 1), (0, 0)])
    expected = np.mean(windows.depthwise(padded, w1, bias) + r, (1, 2)) @ w2[0]
    for model in (braid.compile(path, jobs=1), braid.interpret(path)):
        result = model(x)
        assert isinstance(result, np.ndarray)
        assert np.abs(result - expected).max() <= 1e-5 * np.abs(expected).max()
