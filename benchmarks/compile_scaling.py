"""Measure how `braid.compile` scales with the number of ops, for chains, fans and grids.

``python -m benchmarks.compile_scaling --sizes 100 1000 10000 --json o.json`` compiles ONNX models
of elementwise ops, and of products, with an empty cache, each in a process of its own, and prints
CPU seconds (of the compiler and its workers) and milliseconds an op.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from benchmarks.arguments import output_file

SHAPE = (64, 64)
UNARY = ("Relu", "Tanh", "Neg", "Abs", "Sigmoid")
BINARY = ("Add", "Mul", "Max", "Sub", "Min")


@dataclass(frozen=True)
class Measurement:
    """One compilation."""

    family: str
    ops: int
    cpu_seconds: float
    milliseconds_an_op: float


def model_of(nodes: list[NodeProto], constants: dict[str, np.ndarray]) -> ModelProto:
    """The model from `x` to the result of the last node."""
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)
    result = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, SHAPE)
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "scaling", [value], [result], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


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


FAMILIES: dict[str, Callable[[int], ModelProto]] = {
    "chain": chain,
    "products": products,
    "fan": fan,
    "grid": grid,
}


def compile_one(family: str, size: int) -> None:
    """Compile and print the CPU seconds that it took, without importing braid."""
    import braid

    model = FAMILIES[family](size)
    before = os.times()
    braid.compile(model, jobs=1)
    after = os.times()
    print(sum(after[:4]) - sum(before[:4]))


def measure(family: str, size: int) -> Measurement:
    """Compile in another process, with a cache of its own."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "benchmarks.compile_scaling", "--one", family, str(size)]
        environment = {**os.environ, "BRAID_CACHE_DIR": cache}
        run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    seconds = float(run.stdout.split()[-1])
    return Measurement(family, size, seconds, 1000 * seconds / size)


def main() -> None:
    """Parse the arguments, measure, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", nargs="+", choices=[*FAMILIES], default=[*FAMILIES])
    parser.add_argument("--sizes", nargs="+", type=int, default=[100, 1000, 10_000])
    parser.add_argument("--json", type=output_file)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        compile_one(options.one[0], int(options.one[1]))
        return
    print(f"{'family':<10} {'ops':>6} {'CPU s':>8} {'ms an op':>9}")
    measured: list[Measurement] = []
    for family in options.families:
        for size in options.sizes:
            m = measure(family, size)
            measured.append(m)
            print(
                f"{family:<10} {size:>6} {m.cpu_seconds:>8.2f} {m.milliseconds_an_op:>9.2f}",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps([asdict(m) for m in measured], indent=2) + "\n")


if __name__ == "__main__":
    main()
