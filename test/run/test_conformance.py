"""Fixed samples of ONNX's backend tests, against the committed list of those that do not pass."""

import pytest

from benchmarks.conformance.cases import load_cases
from benchmarks.conformance.executors import EXECUTORS, by_interpreter
from benchmarks.conformance.expectations import read_expected
from benchmarks.conformance.outcomes import Status, run_case
from benchmarks.conformance.peers import missing_module

CASES = load_cases()
SAMPLE = sorted(CASES)[:: len(CASES) // 150]
EXPECTED = read_expected()
FROM_PYTORCH = load_cases(["pytorch-operator", "pytorch-converted"])


def test_the_list_names_existing_cases() -> None:
    assert set(EXPECTED) <= set(CASES)


@pytest.mark.parametrize("name", SAMPLE)
def test_node(name: str) -> None:
    outcome = run_case(CASES[name], by_interpreter)
    if name in EXPECTED:
        assert outcome.status != Status.PASSED, f"remove {name} from unsupported.txt"
    else:
        assert outcome.status == Status.PASSED, outcome.reason


@pytest.mark.parametrize("name", sorted(FROM_PYTORCH)[::5])
def test_model_from_pytorch(name: str) -> None:
    outcome = run_case(FROM_PYTORCH[name], by_interpreter)
    assert outcome.status == Status.PASSED, outcome.reason


@pytest.mark.parametrize("peer", ["ort", "reference", "torch-mlir"])
def test_peers_run_the_same_cases(peer: str) -> None:
    if module := missing_module(peer):
        pytest.skip(f"'{module}' is not installed")
    outcome = run_case(CASES["test_gemm_all_attributes"], EXECUTORS[peer])
    assert outcome.status == Status.PASSED, outcome.reason
