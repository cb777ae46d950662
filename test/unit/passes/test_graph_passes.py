"""Graph passes keep the meaning of random programs, alone and together."""

import numpy as np
import pytest
from hypothesis import given, settings

from braid.analysis.interpreter import interpret
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.movement import ReshapeOp
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
    assert all(isinstance(op, of_weights) for op in in_main)


def _function_attributes(op: TensorOp) -> dict[str, object]:
    parent = op.parent_op()
    while parent is not None and parent.name != "func.func":
        parent = parent.parent_op()
    assert parent is not None
    return dict(parent.attributes)
