"""Invalid models are rejected, and those that compile access only their buffers.

None compiles that both onnx's checker and ONNX Runtime refuse, but for the classes in `ADMITTED`,
and whatever is refused is refused by an error of braid's own.
"""

import os
import random
import re
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from braid.frontends.onnx import import_onnx
from braid.support.errors import BraidError
from test.fuzz.invalid_models import Mutant, mutant, seeds
from test.fuzz.verdicts import Judge, Verdict
from test.guarded import Case, Side, run_guarded

EXAMPLES = int(os.environ.get("BRAID_FUZZ_EXAMPLES", "25"))

ADMITTED = {
    r"typestr: [\w()]+, has unsupported type|has unsupported type tensor": (
        "the newest version of the op takes the type, and so do importers of all versions"
    ),
    r"[Ii]nferred shape and existing shape differ|Inferred=\d+ Declared=\d+": (
        "declared shapes are hints, which models whose inputs were edited have wrong; ONNX Runtime "
        "warns of them where it has a kernel for the type"
    ),
    r"op_type:MeanVarianceNormalization\).*op_type:Add\).*inconsistent type": (
        "ONNX defines the op by a function with a constant of f32, which fits no other type that "
        "its schema allows"
    ),
    r"op outputs should be 1 when Training_mode = False": (
        "ONNX and ONNX Runtime keep 32 bits of this flag, so that 2^40 is false; braid keeps all"
    ),
}
"""Patterns of the checker's texts, with the reason why braid compiles the model all the same."""


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    process = Judge()
    yield process
    process.close()


def is_admitted(verdict: Verdict) -> bool:
    """Return whether `ADMITTED` has a reason why braid compiles the model."""
    return any(re.search(text, verdict.checker) for text in ADMITTED)


def is_imported(found: Mutant) -> bool:
    """Return whether the model is imported; a rejection must be an error of braid."""
    try:
        import_onnx(found.model).module.verify()
    except BraidError as error:
        assert str(error)
        return False
    return True


ONCE = settings(
    deadline=None,
    phases=[Phase.reuse, Phase.generate],  # numbers do not shrink to smaller models
    suppress_health_check=[HealthCheck.too_slow],
)


@settings(ONCE, max_examples=8 * EXAMPLES)
@given(number=st.integers(0, 2**40))
def test_invalid_models_are_refused(judge: Judge, number: int) -> None:
    choice = random.Random(number)
    found = mutant(choice.choice(seeds()), choice)
    if not is_imported(found):
        return
    verdict = judge.verdict(found.model.SerializeToString(), found.inputs)
    assert not verdict.is_invalid or is_admitted(verdict), (
        f"{found.seed}, {found.change}: the checker says {verdict.checker}, ONNX Runtime "
        f"{verdict.runtime}"
    )


@settings(ONCE, max_examples=max(1, EXAMPLES // 25))
@given(number=st.integers(0, 2**40))
def test_what_compiles_stays_within_its_buffers(number: int) -> None:
    choice = random.Random(number)
    cases: list[Case] = []
    while len(cases) < 4:
        seed = choice.choice(seeds())
        if len(cases) % 2:
            cases.append(Case(seed.name, seed.model.SerializeToString(), [seed.inputs]))
            continue
        found = mutant(seed, choice)
        if is_imported(found):
            name = f"{found.seed}, {found.change}"
            cases.append(Case(name, found.model.SerializeToString(), [found.inputs]))
    for case, outcome in zip(cases, run_guarded(cases), strict=True):
        assert not outcome.failure, f"{case.name}: {outcome.failure}"
        if not outcome.refusal:
            for one, other in zip(*(runs[0] for runs in outcome.outputs.values()), strict=True):
                assert one.tobytes() == other.tobytes(), case.name


def test_a_guard_is_seen() -> None:
    """Check that a plan with too small buffers crashes the process or changes the pattern."""
    kinds = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 64, 64]) for name in ("x", "y")
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["t"]),
        helper.make_node("MatMul", ["t", "x"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", kinds[:1], kinds[1:])
    imports = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()
    x = np.random.default_rng(0).standard_normal((2, 64, 64)).astype(np.float32)
    cases = [Case(f"{missing} bytes short", model, [[x]], missing=missing) for missing in (0, 4096)]
    whole, short = run_guarded(cases)
    assert not whole.failure and not whole.refusal
    for side in Side:
        np.testing.assert_allclose(whole.outputs[side][0][0], x @ x @ x, rtol=1e-3, atol=1e-3)
    assert "SIGSEGV" in short.failure
