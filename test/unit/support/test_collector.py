"""The collector is called rarely within blocks, and as before behind them."""

import gc
import subprocess
import sys
from collections.abc import Generator
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


def test_compiling_collects_rarely() -> None:
    from braid.support.forks import compiling

    with compiling():
        assert gc.get_threshold()[0] > 10_000
    assert gc.get_threshold() == (600, 11, 12)


def test_what_lives_at_the_end_is_not_looked_at() -> None:
    """Once for a process, whatever the number of blocks."""
    program = """
import atexit, gc
atexit.register(lambda: print(gc.get_freeze_count() > 0))
from braid.support.collector import rare_collections
for _ in range(2):
    with rare_collections():
        pass
print(gc.get_freeze_count())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["0", "True"]
