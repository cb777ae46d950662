"""Names that are loaded on first use."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from braid.support.lazy import LazyModule, lazy_names


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'm' has no attribute 'y'"):
        lazy_names("m", {"x": "os"})("y")


def test_fork_while_another_thread_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_to_load.py").write_text("import time\ntime.sleep(0.3)\nname = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    load = lazy_names("m", {"name": "slow_to_load"})
    thread = threading.Thread(target=load, args=["name"])
    thread.start()
    while "slow_to_load" not in sys.modules:
        time.sleep(0.01)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        os._exit(load("name"))
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_a_module_is_loaded_when_a_name_is_asked_for() -> None:
    loads: list[str] = []

    def load() -> object:
        loads.append("loaded")
        return os.path

    module = LazyModule(load)
    assert loads == []
    assert [module.basename("a/b"), module.basename("a/c")] == ["b", "c"]
    assert loads == ["loaded"]
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = module.nothing_like_it
