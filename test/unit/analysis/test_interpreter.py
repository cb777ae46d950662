"""Running modules: control flow, calls, parameters, lifetimes, and users' errors."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from braid.analysis.interpreter import evaluate_prepare, interpret, interpret_measured
from braid.analysis.structure.verification import verify_module
from braid.frontends.mlir import parse_mlir
from braid.support.errors import BraidError
from braid.universe import make_context


def parsed(text: str) -> ModuleOp:
    module = parse_mlir(make_context(), text, "model.mlir").module
    verify_module(module)
    return module


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_if_takes_the_branch_of_its_condition() -> None:
    module = parsed("""
func.func @main(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %b = tensor.extract %c[] : tensor<i1>
  %y = scf.if %b -> (tensor<2xf32>) {
    %n = braid.neg %x : (tensor<2xf32>) -> tensor<2xf32>
    scf.yield %n : tensor<2xf32>
  } else {
    scf.yield %x : tensor<2xf32>
  }
  func.return %y : tensor<2xf32>
}""")
    x = f32(1, 2)
    assert interpret(module, [np.array(True), x])[0].tolist() == [-1, -2]
    assert interpret(module, [np.array(False), x])[0].tolist() == [1, 2]


def test_switch_takes_the_case_of_its_argument() -> None:
    module = parsed("""
func.func @main(%k: tensor<i64>, %x: tensor<1xf32>) -> tensor<1xf32> {
  %e = tensor.extract %k[] : tensor<i64>
  %i = arith.index_cast %e : i64 to index
  %y = scf.index_switch %i -> tensor<1xf32>
  case 5 {
    %n = braid.neg %x : (tensor<1xf32>) -> tensor<1xf32>
    scf.yield %n : tensor<1xf32>
  }
  case 2 {
    %d = braid.add %x, %x : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    scf.yield %d : tensor<1xf32>
  }
  default {
    scf.yield %x : tensor<1xf32>
  }
  func.return %y : tensor<1xf32>
}""")
    results = [interpret(module, [np.array(k), f32(3)])[0].item() for k in (5, 2, 0, -1)]
    assert results == [-3, 6, 3, 3]


FOR = """
func.func @main(%x: tensor<1xf32>) -> (tensor<1xf32>, tensor<1xi64>) {
  %lower = arith.constant 2 : index
  %upper = arith.constant 9 : index
  %step = arith.constant 3 : index
  %zero = braid.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %y, %s = scf.for %i = %lower to %upper step %step iter_args(%a = %x, %t = %zero)
      -> (tensor<1xf32>, tensor<1xi64>) {
    %b = braid.add %a, %a : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %j = arith.index_cast %i : index to i64
    %e = tensor.from_elements %j : tensor<1xi64>
    %u = braid.add %t, %e : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
    scf.yield %b, %u : tensor<1xf32>, tensor<1xi64>
  }
  func.return %y, %s : tensor<1xf32>, tensor<1xi64>
}"""


def test_for_carries_values() -> None:
    doubled, indices = interpret(parsed(FOR), [f32(1)])
    assert doubled.tolist() == [8]
    assert indices.tolist() == [2 + 5 + 8]


def test_while_runs_until_its_condition_is_false() -> None:
    module = parsed("""
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %limit = arith.constant 100.0 : f32
  %y = scf.while (%a = %x) : (tensor<f32>) -> tensor<f32> {
    %v = tensor.extract %a[] : tensor<f32>
    %c = arith.cmpf olt, %v, %limit : f32
    scf.condition(%c) %a : tensor<f32>
  } do {
  ^bb0(%a: tensor<f32>):
    %b = braid.add %a, %a : (tensor<f32>, tensor<f32>) -> tensor<f32>
    scf.yield %b : tensor<f32>
  }
  func.return %y : tensor<f32>
}""")
    assert interpret(module, [np.array(3, np.float32)])[0] == 192
    assert interpret(module, [np.array(300, np.float32)])[0] == 300


GROUPS = """
func.func private @kernel_0(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = braid.exp %a : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
func.func @main(%x: tensor<2xf32> {braid.name = "x"}) -> tensor<2xf32> {
  %0 = func.call @kernel_0(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = braid.copy %0 {memory = "fast"} : (tensor<2xf32>) -> tensor<2xf32>
  %2 = braid.fused (%1) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb1(%b: tensor<2xf32>):
    %4 = braid.log %b : (tensor<2xf32>) -> tensor<2xf32>
    %5 = braid.neg %4 : (tensor<2xf32>) -> tensor<2xf32>
    braid.yield %5 : tensor<2xf32>
  }
  func.return %2 : tensor<2xf32>
}"""


def test_calls_and_groups() -> None:
    (y,) = interpret(parsed(GROUPS), {"x": f32(1, 2)})
    np.testing.assert_allclose(y, [-1, -2], rtol=1e-6)


def test_observer_sees_every_op_with_its_values() -> None:
    seen: list[str] = []

    def observe(op, operands, results) -> None:
        seen.append(op.name.removeprefix("braid."))
        if op.name == "braid.neg":
            np.testing.assert_array_equal(results[0], -operands[0])

    interpret(parsed(GROUPS), {"x": f32(1, 2)}, observer=observe)
    assert seen == [
        *("exp", "func.return", "func.call", "copy"),
        *("log", "neg", "yield", "fused", "func.return"),
    ]


PREPARED = """
func.func private @prepare() -> tensor<2xf32> attributes {braid.keys = ["prepared/0"]} {
  %w = braid.parameter {key = "w"} : tensor<2xf32>
  %0 = braid.neg %w : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %w = braid.parameter {key = "prepared/0"} : tensor<2xf32>
  %0 = braid.mul %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}"""


def test_prepared_parameters_are_made_from_the_others() -> None:
    module, parameters = parsed(PREPARED), {"w": f32(2, 3)}
    assert evaluate_prepare(module, parameters)["prepared/0"].tolist() == [-2, -3]
    assert interpret(module, [f32(1, 1)], parameters=parameters)[0].tolist() == [-2, -3]


def test_peak_is_that_of_the_values_alive() -> None:
    module = parsed("""
func.func @main(%x: tensor<256xf32>) -> tensor<1xf32> {
  %a = braid.exp %x : (tensor<256xf32>) -> tensor<256xf32>
  %b = braid.neg %a : (tensor<256xf32>) -> tensor<256xf32>
  %c = braid.exp %b : (tensor<256xf32>) -> tensor<256xf32>
  %d = braid.reduce %c {kind = "add", dims = array<i64: 0>} : (tensor<256xf32>) -> tensor<1xf32>
  func.return %d : tensor<1xf32>
}""")
    assert interpret_measured(module, [np.ones(256, np.float32)]).peak_bytes == 2 * 1024


def test_carried_values_of_a_loop_count_once() -> None:
    peak = interpret_measured(parsed(FOR), [f32(1)]).peak_bytes
    # The new float, the counter as a tensor, and the old and the new sum.
    assert peak == 4 + 8 + 8 + 8


def test_an_input_that_is_passed_through_is_not_counted() -> None:
    module = parsed("""
func.func @main(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %b = tensor.extract %c[] : tensor<i1>
  %y = scf.if %b -> (tensor<2xf32>) {
    scf.yield %x : tensor<2xf32>
  } else {
    %n = braid.neg %x : (tensor<2xf32>) -> tensor<2xf32>
    scf.yield %n : tensor<2xf32>
  }
  func.return %y : tensor<2xf32>
}""")
    assert interpret_measured(module, [np.array(True), f32(1, 2)]).peak_bytes == 0
    assert interpret_measured(module, [np.array(False), f32(1, 2)]).peak_bytes == 8


MULTIPLY = """
func.func @main(%x: tensor<2xf32> {braid.name = "x"}) -> tensor<2xf32> {
  %w = braid.parameter {key = "w"} : tensor<2xf32>
  %0 = braid.mul %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}"""


@pytest.mark.parametrize(
    ("inputs", "parameters", "message"),
    [
        ([], {}, "got 0 inputs, expected 1: x"),
        ({"y": f32(1, 2)}, {}, "no input 'y'"),
        ({}, {}, "'x' is not given"),
        ([f32(1, 2, 3)], {}, r"input 'x' is float32\[3\], expected float32\[2\]"),
        ([np.ones(2)], {}, r"input 'x' is float64\[2\], expected float32\[2\]"),
        ([f32(1, 2)], {}, "model.mlir:3:8: error: parameter 'w' has no value"),
        ([f32(1, 2)], {"w": f32(1)}, r"parameter 'w' is float32\[1\], expected tensor<2xf32>"),
    ],
)
def test_wrong_values(inputs, parameters, message: str) -> None:
    with pytest.raises(BraidError, match=message):
        interpret(parsed(MULTIPLY), inputs, parameters=parameters)


def test_what_has_no_semantics_is_named_with_its_location() -> None:
    opaque = parsed("""
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = braid.opaque "attention"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}""")
    with pytest.raises(BraidError, match=r"model.mlir:3:8: error: opaque op 'attention'"):
        interpret(opaque, [f32(1, 2)])
    foreign = parsed("""
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "test.op"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}""")
    with pytest.raises(BraidError, match=r"model.mlir:3:8: error: 'test.op' op cannot be"):
        interpret(foreign, [f32(1, 2)])


def test_an_index_outside_is_the_nearest_inside() -> None:
    module = parsed("""
func.func @main(%x: tensor<2xf32>, %i: tensor<1xi64>) -> tensor<1xf32> {
  %0 = braid.gather %x, %i {dim = 0 : i64} : (tensor<2xf32>, tensor<1xi64>) -> tensor<1xf32>
  func.return %0 : tensor<1xf32>
}""")
    assert interpret(module, [f32(1, 2), np.array([-1])])[0].tolist() == [2]
    assert interpret(module, [f32(1, 2), np.array([2])])[0].tolist() == [2]
    assert interpret(module, [f32(1, 2), np.array([-9])])[0].tolist() == [1]


def test_missing_function() -> None:
    with pytest.raises(BraidError, match="no function '@main'"):
        interpret(parsed("func.func @other() {\n func.return\n}"), [])
