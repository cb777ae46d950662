"""Random models: what is compiled, interpreted and run by ONNX Runtime is the same."""

import os
from typing import Any

import numpy as np
import onnxruntime
from hypothesis import HealthCheck, event, given, note, settings
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, printer
from onnx.reference import ReferenceEvaluator

import braid
from benchmarks.generators.random_models import Draft, drafts
from braid.interpreted import interpret

EXAMPLES = int(os.environ.get("BRAID_FUZZ_EXAMPLES", "25"))

TOLERANCES = {"float16": (2e-2, 4.0), "bfloat16": (0.1, 4.0)}
"""Relative tolerances, and the least scale: others round after every op, or sum in 16 bits."""

WRONG_IN_REFERENCE = {"LpNormalization", "LRN", "Slice"}
"""Sums instead of sums of absolute values; as many channels as the batch has entries; nothing
where a slice goes back from before the first entry, at which ONNX lets it begin."""

Arrays = list[NDArray[Any]]


def run_onnxruntime(model: ModelProto, inputs: dict[str, NDArray[Any]]) -> Arrays | None:
    """Return the outputs, None if ONNX Runtime lacks some ops for these types."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        return session.run(None, inputs)
    except Exception as error:
        event(f"ONNX Runtime: {type(error).__name__}")
        return None


def run_reference(model: ModelProto, inputs: dict[str, NDArray[Any]]) -> Arrays | None:
    """Return the outputs of ONNX's reference evaluator, None if it fails or is known to be
    wrong."""
    if any(node.op_type in WRONG_IN_REFERENCE or _collects(node) for node in model.graph.node):
        return None
    if any(array.dtype.name == "bfloat16" for array in inputs.values()):
        return None  # It adds up in bf16: hundreds of numbers lose a fifth of their sum.
    try:
        with np.errstate(all="ignore"):
            found = ReferenceEvaluator(model).run(None, inputs)
    except Exception as error:
        event(f"reference: {type(error).__name__}")
        return None
    return [np.asarray(array) for array in found]


def _collects(node: NodeProto) -> bool:
    """Whether this is a loop that collects outputs, which the reference joins instead."""
    return node.op_type == "Loop" and len(node.output) > len(node.input) - 2


def assert_close(actual: Arrays, expected: Arrays, who: str) -> None:
    for index, (a, e) in enumerate(zip(actual, expected, strict=True)):
        assert a.dtype == e.dtype and a.shape == e.shape, f"{who}: output {index}"
        if e.dtype.kind in "biu":
            np.testing.assert_array_equal(a, e, err_msg=f"{who}: output {index}")
            continue
        tolerance, least = TOLERANCES.get(e.dtype.name, (1e-4, 1e-2))
        a, e = a.astype(np.float64), e.astype(np.float64)
        scale = np.abs(e[np.isfinite(e)]).max(initial=least)
        np.testing.assert_allclose(
            a,
            e,
            rtol=tolerance,
            atol=tolerance * scale,
            equal_nan=True,
            err_msg=f"{who}: output {index}",
        )


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(drafts())
def test_three_ways_to_run_a_model_agree(draft: Draft) -> None:
    if not draft.nodes:
        return
    model = draft.model()
    note(printer.to_text(model))
    inputs = {
        value.name: draft.inputs[value.name] for value in draft.values if value.name in draft.inputs
    }
    compiled = list(braid.compile(model, jobs=1).run_named(inputs).values())
    interpreted = list(interpret(model).run_named(inputs).values())
    assert_close(compiled, interpreted, "compiled against interpreted")
    if not draft.is_portable:
        return
    reference = run_onnxruntime(model, inputs)
    if reference is not None:
        assert_close(interpreted, reference, "interpreted against ONNX Runtime")
        return
    defined = run_reference(model, inputs)
    if defined is not None:
        assert_close(interpreted, defined, "interpreted against ONNX's reference")
