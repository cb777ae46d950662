"""Models of all kinds say how their control flow is counted, so that a profile tells about it."""

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import FloatAttr

import braid
from braid.analysis.profile.profile_file import OpRecord, ProfileRecord
from braid.dialects.braid.attribute_names import BRANCH_PROBABILITY, TRIP_COUNT
from braid.driver.read_source import read_source
from braid.passes.profile.annotate_profile import AnnotateProfilePass
from braid.universe import make_context

LOOPS = {
    "tosa": """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = "tosa.const"() {values = dense<0> : tensor<i32>} : () -> tensor<i32>
  %one = "tosa.const"() {values = dense<1> : tensor<i32>} : () -> tensor<i32>
  %n = "tosa.const"() {values = dense<5> : tensor<i32>} : () -> tensor<i32>
  %i, %y = tosa.while_loop (%v = %zero, %a = %x)
      : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
    %g = tosa.greater %n, %v : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tosa.yield %g : tensor<i1>
  } do {
  ^bb0(%v: tensor<i32>, %a: tensor<4xf32>):
    %w = tosa.add %v, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %b = tosa.tanh %a : (tensor<4xf32>) -> tensor<4xf32>
    tosa.yield %w, %b : tensor<i32>, tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}""",
    "stablehlo": """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<5> : tensor<i32>
  %i, %y = stablehlo.while(%v = %zero, %a = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %g = stablehlo.compare LT, %v, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %g : tensor<i1>
    } do {
      %w = stablehlo.add %v, %one : tensor<i32>
      %b = stablehlo.tanh %a : tensor<4xf32>
      stablehlo.return %w, %b : tensor<i32>, tensor<4xf32>
    }
  func.return %y : tensor<4xf32>
}""",
    "scf": """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = arith.constant 5 : i64
  %i, %y = scf.while (%v = %zero, %a = %x) : (i64, tensor<4xf32>) -> (i64, tensor<4xf32>) {
    %g = arith.cmpi slt, %v, %n : i64
    scf.condition(%g) %v, %a : i64, tensor<4xf32>
  } do {
  ^bb0(%v: i64, %a: tensor<4xf32>):
    %w = arith.addi %v, %one : i64
    %b = braid.tanh %a : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %w, %b : i64, tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}""",
}

BRANCH = """func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = "tosa.cond_if"(%c, %x) ({
  ^bb0(%a: tensor<4xf32>):
    %b = tosa.tanh %a : (tensor<4xf32>) -> tensor<4xf32>
    tosa.yield %b : tensor<4xf32>
  }, {
  ^bb0(%a: tensor<4xf32>):
    %b = tosa.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    tosa.yield %b : tensor<4xf32>
  }) : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}"""


def annotated(model: Path, profiled: braid.Model) -> list[scf.IfOp | scf.WhileOp]:
    """Return the control flow of the model, annotated from the profile of its runs."""
    ops = {n: OpRecord(e.count, e.seconds) for n, e in profiled.profile().items()}
    file = model.with_suffix(".json")
    file.write_bytes(ProfileRecord(model.name, {}, ops).to_bytes())
    context = make_context()
    module = read_source(context, model).module
    AnnotateProfilePass(str(file)).apply(context, module)
    return [op for op in module.walk() if isinstance(op, scf.IfOp | scf.WhileOp)]


def number(op: scf.IfOp | scf.WhileOp, name: str) -> float:
    attribute = op.attributes[name]
    assert isinstance(attribute, FloatAttr)
    return attribute.value.data


@pytest.mark.parametrize("kind", LOOPS)
def test_iterations_of_a_loop_without_names_are_counted(kind: str, tmp_path: Path) -> None:
    model = tmp_path / f"{kind}.mlir"
    model.write_text(LOOPS[kind])
    profiled = braid.compile(model, profile=True)
    for _ in range(3):
        profiled(np.ones(4, np.float32))
    (loop,) = annotated(model, profiled)
    assert number(loop, TRIP_COUNT) == 5.0


def test_branches_without_names_are_counted(tmp_path: Path) -> None:
    model = tmp_path / "branch.mlir"
    model.write_text(BRANCH)
    profiled = braid.compile(model, profile=True)
    for run in range(8):
        profiled(np.array(run < 2), np.ones(4, np.float32))
    (branch,) = annotated(model, profiled)
    assert number(branch, BRANCH_PROBABILITY) == 0.25
