"""`split-concats` on random graphs of channels that are joined: meaning, memory, execution."""

from random import Random

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import SSAValue

import braid
from braid.analysis.diagnostics.remarks import collect_remarks
from braid.analysis.interpreter import interpret
from braid.dialects.braid.base import TensorOp, shape_of
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.movement import ConcatOp, PadOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.ports import name_dictionaries
from braid.dialects.braid.reduction import ReduceOp
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.passes.order.split_concats import split_all
from braid.passes.pipelines import DEFAULT
from braid.universe import make_context

WINDOW = {"strides": (1, 1), "pad_low": (1, 1), "pad_high": (1, 1), "dilations": (1, 1)}


class Network:
    """A random `@main` on `[1, 4, 6, 6]` whose result is `[1, C, 1, 1]`, and its weights."""

    def __init__(self, seed: int, size: int = 14) -> None:
        self.random = Random(seed)
        self.weights: dict[str, np.ndarray] = {}
        names = name_dictionaries(["x"])
        self.main = func.FuncOp("main", ((TensorType(f32, [1, 4, 6, 6]),), ()), arg_attrs=names)
        self.module = ModuleOp([self.main])
        values: list[SSAValue] = [self.main.args[0]]
        for _ in range(size):
            values.append(self.grown(values))
        joined = self.add(ConcatOp.get(self.random.sample(values, 3), 1))
        filters = self.weight(4, shape_of(joined)[1], 3, 3)
        unused = [value for value in values if not value.uses]
        ends = [self.add(ConvOp.get(joined, filters, **WINDOW)), *unused]
        last = self.add(ReduceOp.get(self.add(ConcatOp.get(ends, 1)), "add", (2, 3)))
        self.main.body.block.add_op(func.ReturnOp(last))
        self.main.update_function_type()
        self.main.properties["res_attrs"] = name_dictionaries(["y"])

    def add(self, op: TensorOp) -> SSAValue:
        self.main.body.block.add_op(op)
        return op.results[0]

    def weight(self, *shape: int) -> SSAValue:
        key = f"w{len(self.weights)}"
        rng = np.random.default_rng(len(self.weights))
        self.weights[key] = rng.uniform(-0.3, 0.3, shape).astype(np.float32)
        return self.add(ParameterOp.of(key, TensorType(f32, shape)))

    def grown(self, values: list[SSAValue]) -> SSAValue:
        x = self.random.choice(values[-4:])
        channels = shape_of(x)[1]
        match self.random.randrange(8):
            case 0 | 1 | 2:
                return self.add(ConcatOp.get([x, *self.random.sample(values[-4:], 1)], 1))
            case 3:
                filters = self.weight(self.random.randint(1, 5), channels, 3, 3)
                return self.add(ConvOp.get(x, filters, **WINDOW))
            case 4:
                filters = self.weight(channels * self.random.randint(1, 2), 1, 3, 3)
                return self.add(ConvOp.get(x, filters, **WINDOW, groups=channels))
            case 5:
                return self.add(PoolOp.get(x, "max", (3, 3), **WINDOW))
            case 6:
                padded = self.add(PadOp.get(x, (0, 0, 1, 0), (0, 0, 1, 2), 1.0))
                filters = self.weight(channels, 1, 3, 3)
                window = WINDOW | {"pad_low": (0, 0), "pad_high": (0, 0)}
                short = self.add(ConvOp.get(padded, filters, **window, groups=channels))
                return self.add(elementwise("tanh", short))
            case _:
                return self.add(elementwise("mul", x, self.weight(1, channels, 1, 1)))

    def run(self) -> np.ndarray:
        x = np.random.default_rng(0).standard_normal((1, 4, 6, 6)).astype(np.float32)
        (y,) = interpret(self.module, [x], parameters=self.weights)
        return y


def close(actual: np.ndarray, expected: np.ndarray) -> None:
    tolerance = 1e-4 * float(np.abs(expected).max())
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("seed", range(40))
def test_parts_compute_the_same(seed: int) -> None:
    network = Network(seed)
    expected = network.run()
    whole = sum(isinstance(op, ConcatOp) for op in network.module.walk())
    split = split_all(network.main)
    network.module.verify()
    close(network.run(), expected)
    assert split > 0 and whole > 0
    assert split_all(network.main) == 0


@pytest.mark.parametrize("seed", range(6))
def test_the_peak_never_grows(seed: int) -> None:
    peaks: list[float] = []
    hoist = "cse,hoist-parameter-expressions"
    for passes in (f"{hoist},search-order", f"split-concats,{hoist},search-order"):
        module = Network(seed, size=8).module
        with collect_remarks() as remarks:
            run_pipeline(make_context(), module, passes)
        peaks.append(next(r.data["cost"] for r in reversed(remarks) if "before" in r.data))
    assert peaks[1] <= peaks[0]


def test_compiled() -> None:
    """The first networks whose concatenations are split, from the pass to machine code."""
    at = DEFAULT.index("prepare-backends")
    passes = parse_pipeline(",".join((*DEFAULT[:at], "split-concats", *DEFAULT[at:])))
    split = 0
    for seed in range(2):
        network = Network(seed, size=6)
        expected = network.run()
        with collect_remarks() as remarks:
            model = braid.compile(network.module, passes=passes, parameters=network.weights)
        split += sum(bool(r.data["split"]) for r in remarks if r.pass_name == "split-concats")
        x = np.random.default_rng(0).standard_normal((1, 4, 6, 6)).astype(np.float32)
        close(model.run([x])[0], expected)
    assert split > 0
