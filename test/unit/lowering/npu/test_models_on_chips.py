"""Models as streams that run, in the orders that are proposed: what the interpreter gives."""

import numpy as np
import pytest
from onnx import ModelProto

from benchmarks.models import light
from benchmarks.models.hand_written import make_transformer_block
from braid.analysis.interpreter.interpret import evaluate_prepare
from braid.driver.read_source import read_source
from braid.lowering.npu.lower_block import lower_to_run
from braid.lowering.npu.stream_schedule import DEFAULT
from braid.passes.infrastructure.manager import run_pipeline
from braid.targets.machines.load import load_target
from braid.targets.simulator.instructions import Kind
from braid.universe import make_context
from test.run.models.conftest import FLOAT, Writer, as_model
from test.unit.lowering.npu.random_tiles import (
    Case,
    case_of,
    main_of,
    proposed_orders,
    with_memory,
)


def inception_block(size: int = 14, channels: int = 32) -> ModelProto:
    """Four branches of convolutions, one behind pooling, that are concatenated."""
    w = Writer()

    def conv(x: str, o: int, i: int, k: int) -> str:
        return w.op("Relu", w.op("Conv", x, w.weight(o, i, k, k), pads=[k // 2] * 4))

    pooled = w.op("MaxPool", "x", kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1])
    branches = [
        conv("x", 16, channels, 1),
        conv(conv("x", 8, channels, 1), 16, 8, 3),
        conv(conv("x", 4, channels, 1), 8, 4, 5),
        conv(pooled, 8, channels, 1),
    ]
    w.op("Concat", *branches, name="y", axis=1)
    shape = [1, channels, size, size]
    return as_model(w.graph([("x", FLOAT, shape)], [("y", FLOAT, [1, 48, size, size])]))


def case_of_model(proto: ModelProto, memory: int) -> Case:
    """Return the model, split as for a chip with so many bytes."""
    context = make_context()
    source = read_source(context, proto, target="npu-small")
    select = f"select-splits{{memory={memory // DEFAULT.parts} follow-readers}}"
    split = f"{select},apply-splits{{through-concats}}"
    run_pipeline(context, source.module, f"{split},hoist-parameter-expressions")
    parameters = dict(source.parameters)
    parameters |= evaluate_prepare(source.module, parameters)
    random = np.random.default_rng(0)
    inputs = [
        random.normal(size=value.type.get_shape()).astype(np.float32)  # pyright: ignore
        for value in main_of(source.module).body.block.args
    ]
    return case_of(source.module, parameters, inputs)


def check_model(proto: ModelProto, target: str, memory: int, candidates: int) -> int:
    """Run the model in the proposed orders; return their number."""
    case = case_of_model(proto, memory)
    backend = with_memory(load_target(target).default_backend, memory)
    orders = proposed_orders(case.block, backend, candidates, 1.0)
    for order in orders:
        program = lower_to_run(case.block, backend, order)
        assert not program.homeless
        for made, expected in zip(program.run(backend, case.values), case.expected, strict=True):
            np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-6)
        assert Kind.MATRIX in {i.kind for i in program.stream.instructions}
    return len(orders)


@pytest.mark.parametrize("target", ["npu-small", "npu-davinci"])
def test_a_block_of_a_transformer(target: str) -> None:
    assert check_model(make_transformer_block(16, 32, 2, 64), target, 40_000, 2) >= 2


@pytest.mark.parametrize("target", ["npu-small", "npu-davinci"])
def test_a_block_of_inception(target: str) -> None:
    assert check_model(inception_block(), target, 120_000, 3) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("target", ["npu-small", "npu-davinci"])
def test_squeezenet(target: str) -> None:
    memory = load_target(target).default_backend.memories[0].bytes
    assert check_model(light.make_light("squeezenet"), target, memory, 1) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("target", ["npu-small", "npu-davinci"])
def test_blocks_in_many_orders(target: str) -> None:
    memory = load_target(target).default_backend.memories[0].bytes
    assert check_model(make_transformer_block(), target, memory, 20) >= 2
    assert check_model(inception_block(28, 64), target, memory, 20) > 4
