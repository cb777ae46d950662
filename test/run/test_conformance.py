"""Fixed samples of ONNX's backend tests, against the committed list of those that do not pass."""

from pathlib import Path

import pytest

from benchmarks.conformance.__main__ import main
from benchmarks.conformance.cases import load_cases
from benchmarks.conformance.executors import EXECUTORS, by_interpreter
from benchmarks.conformance.expectations import read_expected
from benchmarks.conformance.outcomes import Outcome, Status, run_case
from benchmarks.conformance.peers import missing_module
from benchmarks.conformance.records import read_records, recorded
from benchmarks.conformance.samples import sample

# Cases are tried by their place among all, since ONNX takes many seconds to compute them: those
# who only collect tests need none.
SAMPLED = 150
EXPECTED = read_expected()
FROM_PYTORCH = load_cases(["pytorch-operator", "pytorch-converted"])


def test_the_list_names_existing_cases() -> None:
    assert set(EXPECTED) <= set(load_cases())


@pytest.mark.parametrize("part", range(SAMPLED))
def test_node(part: int) -> None:
    cases = load_cases()
    name = sorted(cases)[part * len(cases) // SAMPLED]
    outcome = run_case(cases[name], by_interpreter)
    if name in EXPECTED:
        assert outcome.status != Status.PASSED, f"remove {name} from unsupported.txt"
    else:
        assert outcome.status == Status.PASSED, f"{name}: {outcome.reason}"


OF_OPEN_SIZES = 12


def check_open(name: str) -> None:
    """Compile a case with all dims open, unless what it is about has no form of open sizes."""
    outcome = run_case(load_cases()[name], EXECUTORS["open"])
    is_right = name in EXPECTED or outcome.status in (Status.PASSED, Status.UNSUPPORTED)
    assert is_right, f"{name}: {outcome.reason}"


@pytest.mark.parametrize("part", range(OF_OPEN_SIZES))
def test_node_of_open_sizes(part: int) -> None:
    cases = sorted(load_cases())
    check_open(cases[part * len(cases) // OF_OPEN_SIZES])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SAMPLED))
def test_more_nodes_of_open_sizes(part: int) -> None:
    cases = sorted(load_cases())
    check_open(cases[(2 * part + 1) * len(cases) // (2 * SAMPLED)])


@pytest.mark.parametrize("name", sorted(FROM_PYTORCH)[::5])
def test_model_from_pytorch(name: str) -> None:
    outcome = run_case(FROM_PYTORCH[name], by_interpreter)
    assert outcome.status == Status.PASSED, outcome.reason


@pytest.mark.parametrize("peer", ["ort", "reference", "torch-mlir"])
def test_peers_run_the_same_cases(peer: str) -> None:
    if module := missing_module(peer):
        pytest.skip(f"'{module}' is not installed")
    outcome = run_case(load_cases()["test_gemm_all_attributes"], EXECUTORS[peer])
    assert outcome.status == Status.PASSED, outcome.reason


def test_records_survive_a_cut(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    outcomes = [Outcome("a", Status.PASSED), Outcome("b", Status.FAILED, "differs")]
    assert list(recorded(outcomes, path, "1234", "compile")) == outcomes
    path.write_bytes(path.read_bytes()[:-20])
    assert read_records(path, "1234", "compile") == {"a": outcomes[0]}
    assert list(recorded(outcomes[1:], path, "1234", "compile")) == outcomes[1:]
    assert read_records(path, "1234", "compile") == {o.name: o for o in outcomes}
    for commit, executor in (("1234", "interpret"), ("5678", "compile"), ("1234-dirty", "compile")):
        assert not read_records(path, commit, executor)


def test_the_command_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.conformance.__main__.commit", lambda: "1234")
    path = tmp_path / "records.jsonl"
    arguments = ["test_add*", "--sample", "2", "--records", str(path), "--resume"]
    assert main(arguments) == 0
    assert len(path.read_text().splitlines()) == 2
    first = capsys.readouterr().out
    assert main(arguments) == 0
    assert len(path.read_text().splitlines()) == 2
    assert capsys.readouterr().out == first


def test_a_pattern_of_no_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test_nothing*"]) == 1
    assert "'test_nothing*' names none of" in capsys.readouterr().err


def test_samples_grow_by_cases_at_their_end() -> None:
    assert sample(list(load_cases()), 60)[:40] == sample(list(load_cases()), 40)
    assert sample(list(load_cases()), None) == list(load_cases())
