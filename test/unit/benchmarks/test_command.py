"""Benchmarks as commands: the command line that follows from a function's signature."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated

import pytest

from benchmarks.arguments import count
from benchmarks.command import Judged, UsageError, keep, status_of


@dataclass(frozen=True)
class Row:
    name: str
    seconds: float


@dataclass(frozen=True)
class Settings:
    part: Annotated[str, ["first", "second"]]
    files: Sequence[Path] = ()
    _: KW_ONLY
    time_limit: Annotated[float, "seconds"] = 1.5
    sizes: Sequence[int] = (1, 2)
    runs: Annotated[int, count] = 3
    quick: bool = False
    name: str | None = None


def test_fields_are_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    given: list[Settings] = []

    def main(settings: Settings) -> None:
        given.append(settings)

    status_of(main, ["first"])
    status_of(main, ["second", "a", "b", "--time-limit", "2", "--sizes", "4", "5", "--quick"])
    status_of(main, ["first", "--runs", "7", "--name", "x"])
    assert given == [
        Settings("first"),
        Settings("second", [Path("a"), Path("b")], time_limit=2.0, sizes=[4, 5], quick=True),
        Settings("first", runs=7, name="x"),
    ]
    for words in ("third", "first --runs 0", "first --time-limit soon", "", "first --json x.json"):
        with pytest.raises(SystemExit):
            status_of(main, words.split())
    assert "expected a number of at least 1, got '0'" in capsys.readouterr().err


def test_parameters_without_default_are_needed() -> None:
    def main(models: Sequence[Path], *, data: Path) -> object:
        return [len(models), data.name]

    assert status_of(main, ["m.onnx", "--data", "d"]) == 0
    for words in (["--data", "d"], ["m.onnx"]):
        with pytest.raises(SystemExit):
            status_of(main, words)


def test_figures_are_kept(tmp_path: Path) -> None:
    def main(*, wrong: bool = False) -> Judged:
        return Judged({"rows": [Row("a", 0.5)]}, not wrong)

    path = tmp_path / "new" / "figures.json"
    assert status_of(main, ["--json", str(path)]) == 0
    assert json.loads(path.read_text()) == {"rows": [{"name": "a", "seconds": 0.5}]}
    assert status_of(main, ["--wrong"]) == 1


def test_records_are_shown_as_they_come(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def main() -> Iterator[dict[str, object]]:
        yield {"size": 1, "seconds": 0.5}
        assert capsys.readouterr().out == "size=1 seconds=0.5\n"
        yield {"size": 2, "seconds": 1.0}

    path = tmp_path / "records.json"
    assert status_of(main, ["--json", str(path)]) == 0
    assert [record["size"] for record in json.loads(path.read_text())] == [1, 2]


def test_what_a_benchmark_refuses_is_said_as_argparse_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def main() -> object:
        raise UsageError("there is nothing")

    with pytest.raises(SystemExit) as ended:
        status_of(main, [])
    assert ended.value.code == 2 and "error: there is nothing" in capsys.readouterr().err


def test_other_objects_are_not_kept(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"JSON has no .*Path"):
        keep(tmp_path / "figures.json", tmp_path)


FOLDER = Path(__file__).parents[3] / "benchmarks"
COMMANDS = sorted(
    path.stem for path in FOLDER.glob("*.py") if "\n    run_command(" in path.read_text()
)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_benchmark_says_how_it_is_called(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        module = import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as missing:  # of a peer that is not installed
        pytest.skip(str(missing))
    main = getattr(module, "measured" if name == "order_models" else "main")
    with pytest.raises(SystemExit) as ended:
        status_of(main, ["--help"])
    assert ended.value.code == 0 and f"benchmarks.{name}" in capsys.readouterr().out
