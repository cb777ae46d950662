"""Models that are split at random over the host and the device of a chip, by ids on their ops."""

import threading
from random import Random

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

import braid
from braid.frontends.mlir import parse_mlir
from braid.universe import make_context
from test.unit.passes.partition.random_clusters import split_at_random
from test.unit.passes.random_graphs import programs

TARGET = "npu-small"
DEVICES = ["cpu:0", "npu:0"]
Parameters = dict[str, np.ndarray]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRAID_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def parse(text: str) -> ModuleOp:
    return parse_mlir(make_context(), text, "f.mlir").module


def split(text: str, seed: int) -> ModuleOp:
    module = parse(text)
    split_at_random(module, DEVICES, Random(seed))
    return module


def run_at_once(model: braid.Model, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """The results for each input, from a thread of its own."""
    results: list[np.ndarray] = [np.empty(0)] * len(inputs)

    def run(index: int) -> None:
        for _ in range(3):
            results[index] = np.asarray(model(inputs[index]))

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@settings(max_examples=20, deadline=None, phases=[Phase.generate])
@given(programs(), st.integers(0, 999))
def test_random_programs(program: tuple[str, Parameters], seed: int) -> None:
    text, parameters = program
    module = split(text, seed)
    whole = braid.compile(parse(text), parameters=parameters, target=TARGET)
    parts = braid.compile(module, parameters=parameters, target=TARGET, profile=seed % 2 == 1)
    again = braid.compile(module, parameters=parameters, target=TARGET, threads=2)
    interpreted = braid.interpret(parse(text), parameters=parameters)
    rng = np.random.default_rng(seed)
    xs = [rng.normal(size=(1, 4, 6, 6)).astype(np.float32) for _ in range(2)]
    for model in (parts, again):
        for x, y in zip(xs, run_at_once(model, xs), strict=True):
            np.testing.assert_allclose(y, interpreted(x), rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(y, whole(x), rtol=1e-4, atol=1e-4)
