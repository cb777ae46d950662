"""Generator of products by weights, followed by ops with constants, with error bounds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, helper, numpy_helper

Array = NDArray[Any]

SCALES = (0.1, 10.0, 3.0, 0.5, 1e-30, 1e30, 1e-38, 7e-5, 300.0, 1e-41)
SHIFTS = (0.3, -2.0, 1.5 * 2.0**23, -1.5 * 2.0**23, 1e-40, 1e30)
UNIT = 2.0**-23
"""A last place of f32; products have four of the sum of the absolute values of their terms."""

LARGEST = 2.0**128 / 2.0**17
"""Larger numbers may overflow in another order of operations, and by a scale that is in the
weights."""


@dataclass(frozen=True)
class Scaled:
    """A model of x whose outputs are products, each followed by ops with constants, `chains`."""

    model: ModelProto
    x: Array
    weights: tuple[Array, ...]
    chains: tuple[tuple[tuple[str, Array], ...], ...]


def scaled(seed: int, count: int = 4) -> Scaled:
    """Return matrix products followed by one to four ops with a constant, scalar or per channel."""
    random = np.random.default_rng(seed)
    rows, depth, columns = (int(random.integers(1, 9)) for _ in range(3))
    constants: dict[str, Array] = {}
    nodes, weights, chains = [], [], []
    for number in range(count):
        size = random.choice([1.0, 1.0, 1e-3, 1e-20, 1e15])
        weight = (size * random.standard_normal((depth, columns))).astype(np.float32)
        constants[f"w{number}"] = weight
        nodes.append(helper.make_node("MatMul", ["x", f"w{number}"], [f"p{number}_0"]))
        chain: list[tuple[str, Array]] = []
        length = int(random.integers(1, 5))
        for place in range(length):
            op = str(random.choice(["Mul", "Div", "Add", "Sub"]))
            one = np.float32(random.choice(SCALES if op in ("Mul", "Div") else SHIFTS))
            if random.random() < 0.3:
                one = (one * random.uniform(0.5, 2, columns)).astype(np.float32)
            name = f"k{number}_{place}"
            constants[name] = np.asarray(one)
            chain.append((op, constants[name]))
            result = f"r{number}" if place == length - 1 else f"p{number}_{place + 1}"
            nodes.append(helper.make_node(op, [f"p{number}_{place}", name], [result]))
        weights.append(weight)
        chains.append(tuple(chain))
    sizes = 10.0 ** random.integers(-40, 30, (rows, depth)) if random.random() < 0.5 else 1.0
    x = (sizes * random.standard_normal((rows, depth))).astype(np.float32)
    special = random.choice(np.array([0, -0.0, 1e-40, np.inf, np.nan, 2.5], np.float32), x.shape)
    x = np.where(random.random(x.shape) < 0.1, special, x)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, x.shape)],
        [helper.make_tensor_value_info(f"r{n}", 1, (rows, columns)) for n in range(count)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return Scaled(model, x, tuple(weights), tuple(chains))


def bounds(case: Scaled, number: int) -> tuple[Array, Array, Array]:
    """Return exact results, the error that is allowed, and where the bound applies.

    Each op rounds what it makes, and below the normal numbers by a share of the least one.
    """
    wide, weight = case.x.astype(np.float64), case.weights[number].astype(np.float64)
    with np.errstate(all="ignore"):
        value, terms = wide @ weight, np.abs(wide) @ np.abs(weight)
        error = 4 * UNIT * terms + 1e-44
        said = np.isfinite(terms) & (terms < LARGEST)
        for op, known in case.chains[number]:
            constant = known.astype(np.float64)
            if op in ("Mul", "Div"):
                factor = constant if op == "Mul" else 1 / constant
                value, error, terms = value * factor, error * np.abs(factor), terms * np.abs(factor)
            else:
                value = value + (constant if op == "Add" else -constant)
                terms = terms + np.abs(constant)
            # A shift that is added to others first is rounded by its own size.
            error = error + 2 * UNIT * terms + 2e-45
            said = said & np.isfinite(terms) & (terms < LARGEST)
    return value, error, said
