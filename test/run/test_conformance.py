"""A fixed sample of ONNX's node tests through the interpreter, against the committed list."""

import pytest

from benchmarks.conformance.cases import load_cases
from benchmarks.conformance.executors import by_interpreter
from benchmarks.conformance.expectations import read_expected
from benchmarks.conformance.outcomes import Status, run_case

CASES = load_cases()
SAMPLE = sorted(CASES)[:: len(CASES) // 150]
EXPECTED = read_expected()


def test_the_list_names_existing_cases() -> None:
    assert set(EXPECTED) <= set(CASES)


@pytest.mark.parametrize("name", SAMPLE)
def test_node(name: str) -> None:
    outcome = run_case(CASES[name], by_interpreter)
    if name in EXPECTED:
        assert outcome.status != Status.PASSED, f"remove {name} from unsupported.txt"
    else:
        assert outcome.status == Status.PASSED, outcome.reason
