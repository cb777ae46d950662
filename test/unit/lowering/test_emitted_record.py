"""What small models become on each backend is what the record says, to the byte."""

import subprocess
import sys
from pathlib import Path

from benchmarks.emitted.record import Emitted, Record, differences, read_record

ROOT = Path(__file__).parents[3]
ANEW = "python -m benchmarks.emitted --small --record"


def test_small_models_become_what_they_did() -> None:
    command = [sys.executable, "-m", "benchmarks.emitted", "--small"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, (
        f"{done.stdout}{done.stderr}\nIf that is meant, raise the versions of the families whose "
        f"kernels have changed, then write the record anew: {ANEW}"
    )


def test_what_differs_is_named() -> None:
    before = Emitted("model", {"program 0": "a", "cpu:0 kernel_0": "b", "cpu:0 kernel_1": "c"})
    after = Emitted("model", {"program 0": "a", "cpu:0 kernel_0": "d", "cpu:0 kernel_2": "c"})
    assert list(differences("net host", before, before)) == []
    assert list(differences("net host", before, after)) == [
        "net host: changed cpu:0 kernel_0; new cpu:0 kernel_2; missing cpu:0 kernel_1 (of 3)"
    ]
    assert list(differences("net host", None, after)) == ["net host: is not in the record"]
    other = Emitted("another", before.files)
    (line,) = differences("net host", before, other)
    assert "the model differs" in line


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    own = read_record()
    path = tmp_path / "record.json"
    path.write_text(own.text(), encoding="utf-8")
    assert read_record(path) == own
    kept = Record({"xdsl": "0"}, own.cases).with_cases({"new host": Emitted("m", {"a b": "0"})})
    assert kept.cases.keys() == {*own.cases, "new host"} and kept.versions == own.versions
