"""Constants applied after products and elementwise ops give the results of the model as written."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper

import braid
from braid.driver.compile_source import emit_model
from braid.driver.options import CompileOptions

Array = NDArray[Any]
Step = tuple[Any, ...]
"""An op and the known numbers that it takes."""


def one_model(
    nodes: Sequence[NodeProto], constants: dict[str, Array], x: Array, results: Sequence[str]
) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, x.shape)],
        [helper.make_tensor_value_info(result, 1, None) for result in results],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def activations(image: bool) -> Array:
    x = np.random.default_rng(3).standard_normal((1, 4, 5, 5) if image else (5, 4))
    return (3 * x).astype(np.float32)


def scaled_products(chains: Sequence[Sequence[Step]], image: bool) -> ModelProto:
    """Products by a weight, each followed by ops by known numbers."""
    weight = np.random.default_rng(2).standard_normal((8, 4, 3, 3) if image else (4, 8))
    constants: dict[str, Array] = {"w": weight.astype(np.float32)}
    nodes: list[NodeProto] = []
    for number, steps in enumerate(chains):
        value = f"p{number}"
        nodes.append(helper.make_node("Conv" if image else "MatMul", ["x", "w"], [value]))
        for index, (op, *others) in enumerate(steps):
            names = [f"c{number}_{index}_{place}" for place in range(len(others))]
            constants |= {n: np.asarray(o, np.float32) for n, o in zip(names, others, strict=True)}
            result = f"r{number}" if index == len(steps) - 1 else f"v{number}_{index}"
            nodes.append(helper.make_node(op, [value, *names], [result]))
            value = result
    results = [f"r{number}" for number in range(len(chains))]
    return one_model(nodes, constants, activations(image), results)


ROUNDING = 1.5 * 2.0**23
CHAINS: tuple[tuple[Step, ...], ...] = (
    (("Add", ROUNDING), ("Sub", ROUNDING)),
    (("Sub", ROUNDING), ("Add", ROUNDING)),
    (("Mul", 10.0), ("Add", ROUNDING), ("Add", -ROUNDING), ("Mul", 0.1)),
    (("Add", ROUNDING), ("Sub", ROUNDING), ("Div", 10.0)),
    (("Mul", 1e30), ("Mul", 1e30), ("Mul", 1e-30)),
    (("Mul", 1e-30), ("Div", 1e30), ("Mul", 1e30)),
    (("Div", 0.0), ("Mul", 1e-3)),
    (("Div", 1e-41), ("Mul", 1e-41)),
    (("Add", np.inf), ("Add", -np.inf)),
)
"""Rounds to integers and tenths; overflows and vanishes; divides by numbers without a
reciprocal."""


@pytest.mark.parametrize(("numerics", "image"), [("strict", 0), ("fast", 0), ("fast", 1)])
def test_chains_of_numbers_behind_products_are_as_written(numerics: str, image: bool) -> None:
    model, x = scaled_products(CHAINS, image), activations(image)
    results = braid.compile(model, numerics=numerics)(x)
    for chain, actual, expected in zip(CHAINS, results, braid.interpret(model)(x), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6, err_msg=str(chain))


@pytest.mark.parametrize("numerics", ["strict", "fast"])
def test_elementwise_chains_are_as_written(numerics: str) -> None:
    special = [0.0, -0.0, 1e-40, -1e-40, 3e38, np.inf, -np.inf, np.nan, 0.5, 1.5, -2.5, 0.1]
    x, results = np.array(special, np.float32), list[str]()
    nodes, constants = list[NodeProto](), dict[str, Array]()
    for first, second in (("Add", "Sub"), ("Sub", "Add"), ("Mul", "Div"), ("Div", "Mul")):
        for number in (ROUNDING, 1e30, 3.0):
            name = f"{first}{number}"
            constants[f"{name}k"] = np.asarray(number, np.float32)
            nodes.append(helper.make_node(first, ["x", f"{name}k"], [f"{name}y"]))
            nodes.append(helper.make_node(second, [f"{name}y", f"{name}k"], [name]))
            results.append(name)
    model = one_model(nodes, constants, x, results)
    actual, expected = braid.compile(model, numerics=numerics)(x), braid.interpret(model)(x)
    for name, one, other in zip(results, actual, expected, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=name)


@pytest.mark.parametrize("numerics", ["strict", "fast"])
@pytest.mark.parametrize("image", [True, False])
def test_normalizations_are_folded_unless_strict(numerics: str, image: bool) -> None:
    generator = np.random.default_rng(4)
    between = ((0.5, 2), (-1, 1), (-1, 1), (0.1, 3))
    known = [generator.uniform(low, high, 8) for low, high in between]
    model = scaled_products([(("Add", 0.5), ("BatchNormalization", *known))], image)
    text = emit_model(model, "mlir", CompileOptions(numerics=numerics))
    assert isinstance(text, str)
    computed = [part for part in text.split("func.func") if "@prepare" not in part]
    assert any("braid.mul" in part for part in computed) == (numerics == "strict")
    x = activations(image)
    results = braid.compile(model, numerics=numerics)(x), braid.interpret(model)(x)
    result, expected = cast(tuple[Array, Array], results)
    assert np.abs(result - expected).max() <= 1e-6 * np.abs(expected).max()
