"""The collector is called rarely within blocks, and as before behind them."""

import gc
import json
import subprocess
import sys
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from threading import Event, Thread

import pytest

from braid.support.collector import rare_collections


@pytest.fixture(autouse=True)
def threshold() -> Generator[None]:
    before = gc.get_threshold()
    gc.set_threshold(600, 11, 12)
    yield
    gc.set_threshold(*before)


def test_collections_are_rare_in_blocks() -> None:
    with rare_collections():
        young, *older = gc.get_threshold()
        assert young > 10_000 and older == [11, 12]
        with rare_collections():
            assert gc.get_threshold()[0] == young
        assert gc.get_threshold()[0] == young
    assert gc.get_threshold() == (600, 11, 12)


def test_an_error_ends_the_block() -> None:
    with pytest.raises(ValueError), rare_collections():
        raise ValueError
    assert gc.get_threshold() == (600, 11, 12)


def test_the_last_of_overlapping_blocks_restores() -> None:
    inside, leave = Event(), Event()

    def work() -> None:
        with rare_collections():
            inside.set()
            leave.wait()

    thread = Thread(target=work)
    with rare_collections():
        thread.start()
        inside.wait()
    assert gc.get_threshold()[0] > 10_000
    leave.set()
    thread.join()
    assert gc.get_threshold() == (600, 11, 12)


def test_what_is_turned_off_stays_off() -> None:
    gc.set_threshold(0, 11, 12)
    with rare_collections():
        assert gc.get_threshold()[0] == 0


def test_imports_of_what_is_there_do_not_look_at_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting the objects that a program froze takes milliseconds, `braid.load` microseconds."""
    counted: list[None] = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counted.append(None) or 1)
    for _ in range(3):
        with rare_collections(imports=True):
            assert json is import_module("json")
    assert counted == []
    with rare_collections(imports=True):
        monkeypatch.setitem(sys.modules, "new_one", json)
    assert counted == [None]


def test_compiling_collects_rarely() -> None:
    from braid.support.forks import compiling

    with compiling():
        assert gc.get_threshold()[0] > 10_000
    assert gc.get_threshold() == (600, 11, 12)


def test_thresholds_that_are_set_meanwhile_stay() -> None:
    with rare_collections():
        gc.set_threshold(700, 11, 12)
    assert gc.get_threshold() == (700, 11, 12)


_FORKS = """
import gc, os, threading
from braid.support.collector import rare_collections
gc.set_threshold(600, 11, 12)
inside, leave = threading.Event(), threading.Event()

def work():
    with rare_collections():
        inside.set()
        leave.wait()

def child_has(expected):
    child = os.fork()
    if not child:
        os._exit(0 if (gc.get_threshold()[0] == 600) is expected else 1)
    assert os.waitpid(child, 0)[1] == 0

thread = threading.Thread(target=work, daemon=True)
thread.start()
inside.wait()
child_has(True)
with rare_collections():
    child_has(False)
assert gc.get_threshold()[0] > 600
leave.set()
thread.join()
assert gc.get_threshold()[0] == 600
"""


def test_children_of_fork_leave_the_blocks_of_threads_that_they_have_not() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", _FORKS], check=True)


def test_programs_of_others_end_as_they_would_without_braid(tmp_path: Path) -> None:
    """A file that only garbage refers to is written at the end, after a compilation too."""
    program = f"""
from braid.support.forks import compiling
file = open({str(tmp_path / "kept")!r}, "w")
file.write("kept")
class Cycle:
    def __init__(self):
        self.file, self.own = file, self
cycle = Cycle()
del file
with compiling():
    pass
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert (tmp_path / "kept").read_text() == "kept"


@pytest.mark.parametrize("tool", ["cli", "braid_opt"])
def test_what_lives_at_the_end_of_a_tool_is_not_looked_at(tool: str) -> None:
    program = f"""
import atexit, gc, sys
atexit.register(lambda: print(gc.get_freeze_count() > 0))
from braid.tools.{tool} import main
sys.argv[1:] = ["--version"]
sys.exit(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[-1] == "True"
