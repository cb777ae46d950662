"""Measure how `braid.compile` scales with the number of ops, in graphs of several shapes.

``python -m benchmarks.compile_scaling --sizes 100 1000 10000 --json o.json`` compiles ONNX models
with an empty cache, each in a process of its own, and prints CPU seconds (of the compiler and its
workers) and milliseconds an op. With ``--pythons before=A after=B``, the interpreters of several
installations take turns under these names; the least time of ``--rounds`` counts.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from benchmarks.command import run_command
from benchmarks.provenance import provenance

COMPILE = """
import os, sys, braid
before = os.times()
braid.compile(sys.argv[1], jobs=1)
print(sum(os.times()[:4]) - sum(before[:4]))
"""
"""Prints the CPU seconds of a compilation, without the start of Python."""
SHAPE = (64, 64)
UNARY = ("Relu", "Tanh", "Neg", "Abs", "Sigmoid")
BINARY = ("Add", "Mul", "Max", "Sub", "Min")


@dataclass(frozen=True)
class Measurement:
    """Compilations by one interpreter: the least CPU seconds."""

    family: str
    ops: int
    python: str
    cpu_seconds: float
    milliseconds_an_op: float


def model_of(
    nodes: list[NodeProto],
    constants: dict[str, np.ndarray],
    shape: tuple[int, ...] = SHAPE,
    type: int = TensorProto.FLOAT,
    functions: tuple[FunctionProto, ...] = (),
) -> ModelProto:
    """Return the model from `x`, of this shape and type, to the result of the last node."""
    value = helper.make_tensor_value_info("x", type, shape)
    result = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "scaling", [value], [result], weights)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("functions", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=list(functions))


def chain(size: int) -> ModelProto:
    """Elementwise ops, one after the other."""
    names = ["x", *(f"v{i}" for i in range(size))]
    nodes = [helper.make_node(UNARY[i % 5], [names[i]], [names[i + 1]]) for i in range(size)]
    return model_of(nodes, {})


def products(size: int) -> ModelProto:
    """Products and activations in turns."""
    names = ["x", *(f"v{i}" for i in range(size))]
    nodes = [
        helper.make_node(
            *(("Relu", [names[i]]) if i % 2 else ("MatMul", [names[i], "w"])), [names[i + 1]]
        )
        for i in range(size)
    ]
    return model_of(nodes, {"w": np.eye(SHAPE[0], dtype=np.float32)})


def fan(size: int) -> ModelProto:
    """Branches of two ops from one value, whose results are summed as a tree."""
    nodes: list[NodeProto] = []
    constants = {f"c{i}": np.array(i + 0.5, np.float32) for i in range(size // 3)}
    leaves: list[str] = []
    for i, scale in enumerate(constants):
        nodes.append(helper.make_node("Mul", ["x", scale], [f"a{i}"]))
        nodes.append(helper.make_node(UNARY[i % 5], [f"a{i}"], [f"b{i}"]))
        leaves.append(f"b{i}")
    while len(leaves) > 1:
        a, b, *leaves = leaves
        leaves.append(f"s{len(nodes)}")
        nodes.append(helper.make_node("Add", [a, b], [leaves[-1]]))
    return model_of(nodes, constants)


def grid(size: int) -> ModelProto:
    """Ops of two operands, from above and from the left; nearly all results have two readers."""
    side = int(size**0.5)
    nodes = [
        helper.make_node(
            BINARY[(i + j) % 5],
            [f"g{i - 1}_{j}" if i else "x", f"g{i}_{j - 1}" if j else "x"],
            [f"g{i}_{j}"],
        )
        for i in range(side)
        for j in range(side)
    ]
    return model_of(nodes, {})


def concat(size: int) -> ModelProto:
    """Return a model that applies an op to each row of a matrix and concatenates the results."""
    rows = [f"r{i}" for i in range(size)]
    split = helper.make_node("Split", ["x"], rows, axis=0, num_outputs=size)
    branches = [helper.make_node("Exp", [row], [f"e{row}"]) for row in rows]
    join = helper.make_node("Concat", [f"e{row}" for row in rows], ["y"], axis=0)
    return model_of([split, *branches, join], {}, (size, 4))


def gathers(size: int) -> ModelProto:
    """Columns of categories, each of which selects rows of a table, as in models of tabular
    data."""
    count = size // 2
    nodes: list[NodeProto] = []
    constants: dict[str, np.ndarray] = {}
    for i in range(count):
        constants[f"i{i}"] = np.array(i, np.int64)
        constants[f"t{i}"] = np.full((10 + i % 7, 4), i, np.float32)
        nodes.append(helper.make_node("Gather", ["x", f"i{i}"], [f"c{i}"], axis=1))
        nodes.append(helper.make_node("Gather", [f"t{i}", f"c{i}"], [f"e{i}"]))
    nodes.append(helper.make_node("Concat", [f"e{i}" for i in range(count)], ["y"], axis=1))
    return model_of(nodes, constants, (2, count), TensorProto.INT64)


def branches(size: int) -> ModelProto:
    """Choices between two ops, one after the other, by the sum of the input."""
    zero = {"zero": np.array(0, np.float32)}
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["is_positive"]),
    ]
    value = "x"
    for i in range(size // 3):
        parts: list[GraphProto] = []
        for kind in ("Relu", "Neg"):
            result = helper.make_tensor_value_info(f"{kind}{i}", TensorProto.FLOAT, SHAPE)
            node = helper.make_node(kind, [value], [result.name])
            parts.append(helper.make_graph([node], kind, [], [result]))
        value = f"v{i}"
        nodes.append(
            helper.make_node(
                "If", ["is_positive"], [value], then_branch=parts[0], else_branch=parts[1]
            )
        )
    return model_of(nodes, zero)


def functions(size: int) -> ModelProto:
    """Return a model of sequential calls of one function of three ops."""
    body = [
        helper.make_node("MatMul", ["a", "w"], ["product"]),
        helper.make_node("Relu", ["product"], ["positive"]),
        helper.make_node("Add", ["positive", "a"], ["sum"]),
    ]
    opset = [helper.make_opsetid("", 21)]
    block = helper.make_function("functions", "Block", ["a", "w"], ["sum"], body, opset)
    names = ["x", *(f"v{i}" for i in range(size // 3))]
    nodes = [
        helper.make_node("Block", [name, "w"], [after], domain="functions")
        for name, after in pairwise(names)
    ]
    return model_of(nodes, {"w": np.eye(SHAPE[0], dtype=np.float32) / 2}, functions=(block,))


FAMILIES: dict[str, Callable[[int], ModelProto]] = {
    "chain": chain,
    "products": products,
    "fan": fan,
    "grid": grid,
    "concat": concat,
    "gathers": gathers,
    "branches": branches,
    "functions": functions,
}


def cpu_seconds(python: str, model: Path) -> float:
    """CPU seconds of a compilation by this interpreter, with a cache of its own."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "BRAID_CACHE_DIR": cache}
        command = [python, "-c", COMPILE, str(model)]
        run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(run.stdout.split()[-1])


def measure(family: str, size: int, pythons: dict[str, str], rounds: int) -> list[Measurement]:
    """Compile in turns, each time in a new process, by named interpreters."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{family}.onnx")
        path.write_bytes(FAMILIES[family](size).SerializeToString())
        seconds = [
            [cpu_seconds(python, path) for python in pythons.values()] for _ in range(rounds)
        ]
    least = map(min, zip(*seconds, strict=True))
    return [
        Measurement(family, size, name, own, 1000 * own / size)
        for name, own in zip(pythons, least, strict=True)
    ]


def named(text: str) -> tuple[str, str]:
    """Return the name of an interpreter and its path; the name may be omitted."""
    name, _, path = text.rpartition("=")
    return name or path, path


def main(
    *,
    families: Annotated[Sequence[str], [*FAMILIES]] = tuple(FAMILIES),
    sizes: Sequence[int] = (100, 1000, 10_000),
    pythons: Annotated[Sequence[tuple[str, str]], named] = (named(sys.executable),),
    rounds: int = 1,
) -> object:
    """Parse the arguments, measure, print the table."""
    print(f"{'family':<10} {'ops':>6} {'CPU s':>8} {'ms an op':>9}")
    measured: list[Measurement] = []
    for family in families:
        for size in sizes:
            for own in measure(family, size, dict(pythons), rounds):
                measured.append(own)
                print(
                    f"{family:<10} {size:>6} {own.cpu_seconds:>8.2f} "
                    f"{own.milliseconds_an_op:>9.2f}  {own.python}",
                    flush=True,
                )
    facts = provenance(["xdsl", "torch-mlir", "llvmlite", "numpy", "onnx"])
    return {**facts, "measured": measured}


if __name__ == "__main__":
    run_command(main)
