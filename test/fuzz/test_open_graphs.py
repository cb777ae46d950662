"""Models whose buffers are placed at run time access only these, and have the right results."""

import os
import random
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from onnx import ModelProto

import braid
from benchmarks.generators.data_decided_models import data_decided_model
from benchmarks.generators.random_models import Draft, drafts
from braid.interpreted import interpret
from braid.support.errors import BraidError
from test.fuzz.open_graphs import Inputs, OpenGraph, opened
from test.fuzz.test_models import Arrays, assert_close, run_onnxruntime
from test.guarded import Case, Outcome, Side, run_guarded
from test.run.models.test_data_sizes import MODELS, parsed
from test.unit.api.test_state_sessions import STATE, Peer, floats
from test.unit.api.test_state_sessions import proto as decoder

T, U = TypeVar("T"), TypeVar("U")
EXAMPLES = int(os.environ.get("BRAID_FUZZ_EXAMPLES", "25"))
SEED = int(os.environ.get("BRAID_FUZZ_SEED", "0")) * 10_000

DECIDED_BY_DATA = (
    "Compress",
    "Unique",
    "Range",
    "Slice that goes back",
    "a mask after a mask",
    "Pad, and cut",
    "durations that repeat frames",
    "a loop that collects",
    "branches of other extents",
)

PRODUCTS = """(float[N,M] x) => (float[N,N] y) {
  t = Transpose (x)  a = MatMul (x, t)  b = Softmax (a)  y = MatMul (b, a) }"""

RETURNED = """(float[N,3] x) => (float[] u, float[] y) {
  u = Unique (x)  y = Transpose <perm = [0, 1]> (x) }"""
"""A result lies in the memory of the input."""


def case(name: str, model: ModelProto, runs: list[Inputs]) -> Case:
    names = [port.name for port in model.graph.input]
    arrays = [[inputs[name] for name in names] for inputs in runs]
    return Case(name, model.SerializeToString(), arrays)


def check(found: Outcome, expected: list[Arrays | None], name: str) -> None:
    """Check that both sides have equal results, and the expected ones if these are known."""
    assert not found.failure, f"{name}: {found.failure}"
    end, begin = found.outputs[Side.END], found.outputs[Side.BEGIN]
    for one, other, wanted in zip(end, begin, expected, strict=True):
        assert [a.tobytes() for a in one] == [a.tobytes() for a in other], name
        if wanted is not None:
            assert_close(one, wanted, name)


def reference(model: ModelProto, inputs: Inputs) -> Arrays | None:
    """Return what the interpreter computes, or ONNX Runtime where it refuses the model."""
    try:
        return list(interpret(model).run_named(inputs).values())
    except BraidError:
        return run_onnxruntime(model, inputs)


def random_graphs(count: int) -> tuple[list[OpenGraph], list[list[Arrays | None]]]:
    """Return drawn graphs, and what each gives in each of its runs, where that is known."""
    graphs: list[OpenGraph] = []
    expected: list[list[Arrays | None]] = []

    @settings(
        max_examples=max(1, count),
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(drafts(), st.integers(0, 2**32 - 1))
    def draw(draft: Draft, number: int) -> None:
        if draft.nodes:
            graphs.append(opened(draft, random.Random(number)))
            expected.append([reference(graphs[-1].model, run) for run in graphs[-1].runs])

    draw()
    return graphs, expected


def test_random_graphs_at_several_sizes() -> None:
    graphs, expected = random_graphs(EXAMPLES // 4)
    cases = [case(f"graph {i}", own.model, own.runs) for i, own in enumerate(graphs)]
    outcomes = run_guarded(cases)
    for own, outcome, wanted in zip(cases, outcomes, expected, strict=True):
        if not outcome.refusal:
            check(outcome, wanted, own.name)
    assert any(not outcome.refusal for outcome in outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gpu-emulated", "npu-small"])
def test_random_graphs_on_other_devices(target: str) -> None:
    """Compare devices, which run what has fixed sizes, and all at those of a run, with the host."""
    graphs, _ = random_graphs(EXAMPLES)
    launches = 0
    for number, own in enumerate(graphs):
        sizes = {
            dim.dim_param: own.runs[0][port.name].shape[i]
            for port in own.model.graph.input
            for i, dim in enumerate(port.type.tensor_type.shape.dim)
            if dim.dim_param
        }
        special = [sizes] if sizes else []
        host = attempt(braid.compile, own.model)
        model = attempt(partial(braid.compile, target=target, specialize=special), own.model)
        assert (host is None) == (model is None), f"graph {number}: {own.model}"
        if host is None or model is None:
            continue
        launches += bool(model.devices)
        for inputs in own.runs:
            wanted = attempt(host.run_named, inputs)
            found = attempt(model.run_named, inputs)
            # Code for some sizes takes what code for all refuses, such as a broadcast of 1.
            assert found is not None or wanted is None, f"graph {number}: {own.model}"
            if wanted is not None and found is not None:
                assert_close([*found.values()], [*wanted.values()], f"graph {number}")
    assert launches


def attempt(run: Callable[[U], T], argument: U) -> T | None:
    """Return what `run` returns, or None where it is refused."""
    try:
        return run(argument)
    except BraidError:
        return None


def test_models_whose_data_decide_sizes() -> None:
    models = {name: (parsed(MODELS[name][0]), MODELS[name][1]) for name in DECIDED_BY_DATA}
    models["an input returned"] = parsed(RETURNED), [{"x": floats(n, 3)} for n in (5, 1)]
    runs = {name: [dict(inputs) for inputs in found] for name, (_, found) in models.items()}
    cases = [case(name, model, runs[name]) for name, (model, _) in models.items()]
    for own, outcome in zip(cases, run_guarded(cases), strict=True):
        assert not outcome.refusal, outcome.refusal
        wanted = [run_onnxruntime(models[own.name][0], inputs) for inputs in runs[own.name]]
        check(outcome, wanted, own.name)


def test_random_graphs_whose_data_decide_sizes() -> None:
    count = max(1, EXAMPLES // 8)
    drawn = [data_decided_model(SEED + i) for i in range(count)]
    runs = [[own.draw(random.Random(i)) for _ in range(5)] for i, own in enumerate(drawn)]
    cases = [
        case(f"seed {SEED + i}", own.model, inputs_of)
        for i, (own, inputs_of) in enumerate(zip(drawn, runs, strict=True))
    ]
    for own, inputs_of, outcome in zip(cases, runs, run_guarded(cases), strict=True):
        assert not outcome.refusal, f"{own.name}: {outcome.refusal}"
        model = onnx.load_from_string(own.model)
        interpreted = interpret(model)
        wanted = [run_onnxruntime(model, inputs) for inputs in inputs_of]
        check(outcome, wanted, own.name)
        for inputs, expected in zip(inputs_of, wanted, strict=True):
            assert expected is not None
            assert_close(list(interpreted.run_named(inputs).values()), expected, own.name)


def test_steps_that_append_to_a_state() -> None:
    peer = Peer(2)
    steps = [floats(2, length, 8) for length in (5, 1, 1, 3, 1)]
    model = decoder().SerializeToString()
    (outcome,) = run_guarded([Case("steps", model, [[x] for x in steps], state=STATE)])
    assert not outcome.refusal, outcome.refusal
    wanted: list[Arrays | None] = []
    for x in steps:
        results = peer(x)
        wanted.append([*results, *(peer.state[name] for name in sorted(peer.state))])
    check(outcome, wanted, "steps")


@pytest.mark.parametrize("name", ["an arena", "phases"])
def test_guards_are_seen(name: str) -> None:
    """Check that intermediates that lack 4 bytes are seen on both sides."""
    phases = MODELS["a mask after a mask"][0]
    model = parsed(PRODUCTS if name == "an arena" else phases).SerializeToString()
    runs = [[np.ones((5, 3), np.float32)]]
    cases = [Case(f"at the {side}", model, runs, sides=(side,), missing=4) for side in Side]
    end, begin = run_guarded(cases)
    assert "SIGSEGV" in end.failure
    assert "SIGABRT" in begin.failure and "memory beside it was written" in begin.failure
