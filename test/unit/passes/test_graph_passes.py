"""Graph passes keep the meaning of random programs, alone and together."""

import numpy as np
import pytest
from hypothesis import example, given, settings

from braid.analysis.interpreter import interpret
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import TensorOp, shape_of
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.movement import ReshapeOp, TransposeOp
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.regions import FusedOp
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.universe import make_context
from test.unit.passes.random_graphs import programs

BEFORE_LAYOUTS = (
    "simplify,fold-scale-into-weights,expand-padding,simplify,hoist-parameter-expressions,"
    "select-fusion,apply-fusion"
)
PIPELINES = [
    "simplify",
    "fold-scale-into-weights",
    "expand-padding",
    "hoist-parameter-expressions",
    "select-fusion,apply-fusion",
    f"{BEFORE_LAYOUTS},select-layouts,apply-layouts,hoist-parameter-expressions",
    f"{BEFORE_LAYOUTS},select-layouts{{algorithm=fixed:NHWC}},apply-layouts",
    f"{BEFORE_LAYOUTS},select-layouts{{algorithm=greedy}},apply-layouts",
]


TRANSPOSED_IN_A_LOOP = """
func.func @main(%x: tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32> {
  %start = arith.constant 0 : index
  %stop = arith.constant 2 : index
  %step = arith.constant 1 : index
  %y = scf.for %i = %start to %stop step %step iter_args(%c = %x) -> (tensor<1x4x6x6xf32>) {
    %z = braid.transpose %x {permutation = array<i64: 0, 1, 3, 2>}
      : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
    scf.yield %z : tensor<1x4x6x6xf32>
  }
  func.return %y : tensor<1x4x6x6xf32>
}
"""
"""A transpose that is a view in the loop, of what is reordered once before it."""


@pytest.mark.parametrize("pipeline", PIPELINES)
@settings(max_examples=8, deadline=None)
@given(programs())
def test_the_meaning_stays(pipeline: str, program: tuple[str, dict[str, np.ndarray]]) -> None:
    text, parameters = program
    context = make_context()
    module = parse_mlir(context, text, "p.mlir").module
    x = np.random.default_rng(0).standard_normal((1, 4, 6, 6)).astype(np.float32)
    (expected,) = interpret(module, [x], parameters=parameters)
    run_pipeline(context, module, pipeline)
    (actual,) = interpret(module, [x], parameters=parameters)
    tolerance = 1e-4 * max(float(np.abs(expected).max()), 1e-6)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


@settings(max_examples=8, deadline=None)
@given(programs())
@example((TRANSPOSED_IN_A_LOOP, {}))
def test_all_that_computes_is_in_a_group(program: tuple[str, dict[str, np.ndarray]]) -> None:
    context = make_context()
    module = parse_mlir(context, program[0], "p.mlir").module
    run_pipeline(context, module, f"{BEFORE_LAYOUTS},select-layouts,apply-layouts")
    outside = [
        op
        for op in module.walk()
        if isinstance(op, TensorOp) and not isinstance(op.parent_op(), FusedOp)
    ]
    of_weights = (ConstantOp, ParameterOp, ReshapeOp, ReorderOp)
    in_main = [op for op in outside if "braid.keys" not in _function_attributes(op)]
    assert all(isinstance(op, of_weights) or _moves_nothing(op) for op in in_main)


def _moves_nothing(op: TensorOp) -> bool:
    """Whether each element is stored where it was before a transpose."""
    if not isinstance(op, TransposeOp):
        return False
    places = np.arange(np.prod(shape_of(op.input))).reshape(shape_of(op.input))
    before = places.transpose([dim.dim for dim in layout_of(op.input.type).dims])
    after = places.transpose(op.permutation.get_values())
    after = after.transpose([dim.dim for dim in layout_of(op.output.type).dims])
    return np.array_equal(before.ravel(), after.ravel())


def _function_attributes(op: TensorOp) -> dict[str, object]:
    parent = op.parent_op()
    while parent is not None and parent.name != "func.func":
        parent = parent.parent_op()
    assert parent is not None
    return dict(parent.attributes)
