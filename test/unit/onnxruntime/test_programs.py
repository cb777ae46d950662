"""The command that runs programs of packages with both modules."""

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import sessions
from benchmarks.sessions import apart, measure, plain

# A package as they are: its import is that of ONNX Runtime, and so are its session's arguments.
PACKAGE = """
import onnxruntime as rt
from onnxruntime.capi import _pybind_state as C


class Engine:
    def __init__(self, path):
        options = rt.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        providers = C.get_available_providers()[-1:]
        self.session = rt.InferenceSession(path, sess_options=options, providers=providers)
        self.names = [each.name for each in self.session.get_inputs()]
        self.characters = self.session.get_modelmeta().custom_metadata_map["character"]

    def __call__(self, x, factor):
        feed = dict(zip(self.names, (x, factor)))
        return self.characters.splitlines(), self.session.run(None, feed)
"""
# `-m benchmarks.sessions` with one more program.
WITH_ENGINE = """
import sys
from importlib import import_module
import numpy as np
from benchmarks import session_programs, sessions

path = sys.argv.pop()

def engine():
    made = import_module("engine_package").Engine(path)
    return lambda: made(np.ones((2, 3), np.float32), np.array(3, np.float32))

session_programs.PROGRAMS["engine"] = engine
sys.exit(sessions.main())
"""


def test_results_are_compared() -> None:
    one = plain({"a": [np.float32(1), "x"], "b": np.arange(3) / 2})
    assert apart(one, one) == (0, "")
    near = {"a": [1.0005, "x"], "b": [0.0, 0.5, 1.0]}
    assert apart(one, near)[0] == pytest.approx(5e-4) and not apart(one, near)[1]
    assert apart(one, {"a": [1.01, "x"], "b": [0.0, 0.5, 1.0]})[1].startswith("result['a'][0]")
    assert apart(one, {"a": [1.0, "y"], "b": [0.0, 0.5, 1.0]})[1].startswith("result['a'][1]")
    assert apart(one, {"a": [1.0, "x"], "b": [0.0, 0.5]})[1]
    assert apart([1.0], [float("nan")])[1]


def test_a_program_runs_with_both(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "engine_package.py").write_text(PACKAGE)
    (tmp_path / "with_engine.py").write_text(WITH_ENGINE)
    run = sessions.subprocess.run

    def run_with_engine(command: list[str], **options: object) -> object:
        assert command[1:3] == ["-m", "benchmarks.sessions"]
        inside = [sys.executable, str(tmp_path / "with_engine.py"), *command[3:], str(path)]
        return run(inside, **options)

    monkeypatch.setattr(sessions.subprocess, "run", run_with_engine)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    row = measure("engine", 2, [tmp_path])
    assert (row.program, row.differs) == ("engine", "")
    assert row.error < 1e-5 and min(row.ort, row.braid) > 0
