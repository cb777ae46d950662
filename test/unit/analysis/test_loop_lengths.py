"""Inputs that determine the iterations of loops, and their values in runs for timing only."""

import numpy as np
import pytest

import braid
from braid.analysis.profile.execution_counts import DEFAULT_TRIP_COUNT
from braid.analysis.profile.loop_lengths import lengths_of_inputs
from braid.dialects.braid.variants import public_functions
from braid.frontends.mlir import parse_mlir
from braid.tuning.synthetic_inputs import synthetic_array, synthetic_inputs, synthetic_lengths
from braid.universe import make_context

COUNTED = """
func.func @main(%x: tensor<4xf32>, %n: tensor<i64>, %ids: tensor<2xi64>, %c: tensor<i1>)
    -> (tensor<4xf32>, tensor<2xi64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %scalar = tensor.extract %n[] : tensor<i64>
  %end = arith.index_cast %scalar : i64 to index
  %y, %z = scf.for %i = %zero to %end step %one iter_args(%s = %x, %t = %ids)
      -> (tensor<4xf32>, tensor<2xi64>) {
    %next = braid.add %s, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %next, %t : tensor<4xf32>, tensor<2xi64>
  } ATTRIBUTES
  func.return %y, %z : tensor<4xf32>, tensor<2xi64>
}
"""

WHILE = """
func.func @main(%x: tensor<4xf32>, %n: tensor<i64>, %ids: tensor<2xi64>, %c: tensor<i1>)
    -> (tensor<4xf32>, tensor<i64>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %end = tensor.extract %n[] : tensor<i64>
  %y, %count, %going, %z = scf.while (%s = %x, %i = %zero, %go = %c, %t = %ids)
      : (tensor<4xf32>, i64, tensor<i1>, tensor<2xi64>)
      -> (tensor<4xf32>, i64, tensor<i1>, tensor<2xi64>) {
    %within = arith.cmpi slt, %i, %end : i64
    %wanted = tensor.extract %go[] : tensor<i1>
    %more = arith.andi %within, %wanted : i1
    scf.condition(%more) %s, %i, %go, %t : tensor<4xf32>, i64, tensor<i1>, tensor<2xi64>
  } do {
  ^bb0(%s: tensor<4xf32>, %i: i64, %go: tensor<i1>, %t: tensor<2xi64>):
    %next = braid.add %s, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %following = arith.addi %i, %one : i64
    scf.yield %next, %following, %go, %t : tensor<4xf32>, i64, tensor<i1>, tensor<2xi64>
  } ATTRIBUTES
  %turns = tensor.from_elements %count : tensor<i64>
  func.return %y, %turns : tensor<4xf32>, tensor<i64>
}
"""


def lengths(text: str, attributes: str = "") -> dict[int, int]:
    module = parse_mlir(make_context(), text.replace("ATTRIBUTES", attributes), "m.mlir").module
    return lengths_of_inputs(public_functions(module)[0])


@pytest.mark.parametrize(
    ("attributes", "trips"),
    [
        ("", int(DEFAULT_TRIP_COUNT)),
        ("{braid.trip_count = 3.0 : f64}", 3),
        ("{braid.trip_count = 0.4 : f64}", 1),
        ("{braid.trip_count = 0.0 : f64}", 0),
    ],
)
def test_lengths_are_trips(attributes: str, trips: int) -> None:
    """Other carried values, such as indices, and floats are none."""
    assert lengths(COUNTED, attributes) == {1: trips}
    conditions = f"attributes {attributes}" if attributes else ""
    assert lengths(WHILE, conditions) == {1: trips, 3: min(trips, 1)}


def test_constant_bounds_need_no_input() -> None:
    text = COUNTED.replace("%zero to %end", "%zero to %one")
    assert lengths(text) == {}


@pytest.mark.parametrize(("trips", "turns"), [(7, 7), (0, 0)])
def test_loops_turn_as_expected(trips: int, turns: int) -> None:
    """By a run: the loop doubles its halves, and counts."""
    text = WHILE.replace("ATTRIBUTES", f"attributes {{braid.trip_count = {trips}.0 : f64}}")
    module = parse_mlir(make_context(), text, "m.mlir").module
    values = synthetic_lengths(module)
    model = braid.compile(module)
    doubled, count = model.run(synthetic_inputs(model.inputs, values))
    assert count == turns and np.all(doubled == 0.5 * 2**turns)


@pytest.mark.parametrize(
    ("dtype", "integer", "value"),
    [("int64", 300, 300), ("int8", 300, 127), ("bool", 1, True), ("bool", 0, False)],
)
def test_lengths_are_as_long_as_types_hold(dtype: str, integer: int, value: int) -> None:
    assert synthetic_array((2,), np.dtype(dtype), integer).tolist() == [value, value]
    assert synthetic_array((2,), np.dtype("float32"), integer).tolist() == [0.5, 0.5]
