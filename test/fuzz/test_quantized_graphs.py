"""Random QDQ graphs, converted to integers and compiled, are within documented error bounds."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from onnx import printer

import braid
from braid.analysis.interpreter import interpret
from braid.analysis.structure.model_context import ModelContext
from braid.frontends.onnx import import_onnx
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.universe import make_context
from test.fuzz.quantized_edges import edges
from test.fuzz.quantized_graphs import Draft, Value, draft

EXAMPLES = int(os.environ.get("BRAID_FUZZ_EXAMPLES", "25"))
PASSES = "simplify,convert-qdq-to-integers,simplify"

FORMS = pytest.mark.parametrize("form", [draft, edges])
Form = Callable[[int], tuple[Draft, list[Value]]]
Arrays = Sequence[np.ndarray[Any, Any]]


def assert_within_steps(found: Arrays, expected: Arrays, values: Sequence[Value]) -> None:
    """Assert that no result differs from the model's by more than `values` allow."""
    for value, one, other in zip(values, found, expected, strict=True):
        with np.errstate(all="ignore"):
            away = np.abs(one.astype(np.float64) - other.astype(np.float64))
        is_same = (one == other) | (np.isnan(one) & np.isnan(other))
        away = float(np.where(is_same, 0, away).max(initial=0))
        # Both are rounded to their type, which is coarse compared with steps of 16-bit integers.
        rounding = np.finfo(one.dtype).eps * value.size if one.dtype.kind == "f" else 0
        allowed = 1.001 * value.error + rounding
        assert away <= allowed, f"{value.name}: {away} away, {allowed} allowed"


def in_integers(graph: Draft, values: Sequence[Value]) -> Arrays:
    """Return the results of the model after its conversion to integers, interpreted."""
    imported = import_onnx(graph.model([value.name for value in values]))
    context = make_context()
    assert isinstance(context, ModelContext)
    context.parameters = imported.parameters
    run_pipeline(context, imported.module, parse_pipeline(PASSES))
    return list(interpret(imported.module, graph.inputs, parameters=imported.parameters))


def interpreted(graph: Draft, values: Sequence[Value]) -> Arrays:
    """Return the results of the unconverted model, interpreted."""
    imported = import_onnx(graph.model([value.name for value in values]))
    return list(interpret(imported.module, graph.inputs, parameters=imported.parameters))


@FORMS
@settings(max_examples=2 * EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_integers_are_within_their_steps(form: Form, seed: int) -> None:
    graph, values = form(seed)
    note(printer.to_text(graph.model([value.name for value in values])))
    assert_within_steps(in_integers(graph, values), interpreted(graph, values), values)


@FORMS
@settings(
    max_examples=max(1, EXAMPLES // 12),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(seed=st.integers(0, 2**32))
def test_compiled_graphs_are_within_their_steps(form: Form, seed: int) -> None:
    graph, values = form(seed)
    model = graph.model([value.name for value in values])
    note(printer.to_text(model))
    compiled = list(braid.compile(model, jobs=1).run_named(graph.inputs).values())
    assert_within_steps(compiled, interpreted(graph, values), values)
