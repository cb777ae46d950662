from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime import InferenceSession

from braid.analysis.interpreter import interpret
from braid.frontends.onnx import ImportedModel, import_onnx

Array = np.ndarray[Any, np.dtype[Any]]


def value_info(name: str, array: Array) -> Any:
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
    )


def model_of(graph: GraphProto, opset: int = 18) -> ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def graph_of(
    nodes: Sequence[Any],
    inputs: dict[str, Array],
    outputs: Sequence[str],
    constants: dict[str, Array] | None = None,
) -> GraphProto:
    """Return a graph with these inputs; the types of its outputs are left to be inferred."""
    return helper.make_graph(
        list(nodes),
        "g",
        [value_info(name, array) for name, array in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )


def reference(model: ModelProto, inputs: dict[str, Array]) -> Any:
    """Return the results of ONNX's evaluator."""
    return ReferenceEvaluator(model).run(None, inputs)


def onnx_runtime(model: ModelProto, inputs: dict[str, Array]) -> Any:
    """Return the results of ONNX Runtime.

    Not for products of unsigned and signed bytes, whose sums of two saturate on CPUs without VNNI.
    """
    return InferenceSession(model.SerializeToString()).run(None, inputs)


def check_model(
    model: ModelProto,
    inputs: dict[str, Array],
    tolerance: float = 1e-5,
    oracle: Callable[[ModelProto, dict[str, Array]], Any] = reference,
) -> ImportedModel:
    """Import and interprets the model; its results must be those of the oracle."""
    imported = import_onnx(model)
    imported.module.verify()
    results = interpret(imported.module, inputs, parameters=imported.parameters)
    for result, expected in zip(results, oracle(model, inputs), strict=True):
        expected = np.asarray(expected)
        assert result.shape == expected.shape
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
    return imported


def check_node(
    op_type: str,
    *operands: Array | list[Array] | None,
    opset: int = 18,
    outputs: int = 1,
    tolerance: float = 1e-5,
    oracle: Callable[[ModelProto, dict[str, Array]], Any] = reference,
    **attributes: Any,
) -> ImportedModel:
    """Check one node: `check("Relu", x, opset=13, attribute=…)`.

    Arrays are inputs; those wrapped in a list are initializers, None is a left-out input.
    """
    names = ["" if x is None else f"x{i}" for i, x in enumerate(operands)]
    pairs = list(zip(names, operands, strict=True))
    inputs = {name: x for name, x in pairs if isinstance(x, np.ndarray)}
    constants = {name: x[0] for name, x in pairs if isinstance(x, list)}
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op_type, names, results, name="node", **attributes)
    model = model_of(graph_of([node], inputs, results, constants), opset)
    return check_model(model, inputs, tolerance, oracle)


@pytest.fixture
def check() -> Callable[..., ImportedModel]:
    """`check_node` against ONNX's evaluator."""
    return check_node


@pytest.fixture
def check_session() -> Callable[..., ImportedModel]:
    """`check_node` against ONNX Runtime."""
    return partial(check_node, oracle=onnx_runtime)


@pytest.fixture
def check_graph() -> Callable[..., ImportedModel]:
    """Check a graph of nodes: `check_graph(nodes, inputs, outputs, constants)`."""

    def check(
        nodes: Sequence[Any],
        inputs: dict[str, Array],
        outputs: Sequence[str],
        constants: dict[str, Array] | None = None,
        opset: int = 18,
    ) -> ImportedModel:
        return check_model(model_of(graph_of(nodes, inputs, outputs, constants), opset), inputs)

    return check


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
