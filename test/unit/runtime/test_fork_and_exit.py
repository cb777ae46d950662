"""Forks while other threads load or run for the first time, and exits while they run."""

import subprocess
import sys
from pathlib import Path

import pytest

_START = """
import os, signal, sys, threading, time
import numpy as np
import braid

path = sys.argv[1]
x = np.random.default_rng(0).random((1000, 8), np.float32)
expected = 3 * x + np.arange(8, dtype=np.float32)

def check(model):
    np.testing.assert_allclose(model.run([x])[0], expected, rtol=1e-6)

check(braid.load(path))  # Python's own imports are not made for forks
stop = threading.Event()
"""

_FORKS = """
def fork():
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        status = 1
        try:
            for work in in_child:
                work()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0, status

def again(work):
    while not stop.is_set():
        work()

threads = [threading.Thread(target=again, args=(in_parent,)) for _ in range(3)]
for thread in threads:
    thread.start()
begin = time.monotonic()
for number in range(100):
    if number >= int(sys.argv[2]) and time.monotonic() - begin > 2:
        break
    fork()
stop.set()
for thread in threads:
    thread.join()
"""

_LOADS = """
in_parent = lambda: braid.load(path)
in_child = [lambda: check(braid.load(path, threads=2))]
"""

_FIRST_RUNS = """
class Fresh:
    model = braid.load(path, threads=2)

def in_parent():
    model = Fresh.model
    check(model)
    Fresh.model = braid.load(path, threads=2)

in_child = [lambda: check(Fresh.model)]
"""

_EXIT = """
model = braid.load(path, threads=3)

def run():
    while True:
        model.run([x])

for _ in range(4):
    threading.Thread(target=run, daemon=True).start()
time.sleep(0.05)
"""


QUICK, ALL = 25, 100


def run(program: str, path: Path, forks: int = 0) -> None:
    """Run it, which forks 100 times, or at least so often where it takes longer than a moment."""
    flags = ["-W", "ignore::DeprecationWarning", "-c"]
    command = [sys.executable, *flags, _START + program, path, str(forks)]
    subprocess.run(command, check=True, timeout=100)


at_least = pytest.mark.parametrize("forks", [QUICK, pytest.param(ALL, marks=pytest.mark.slow)])


@at_least
def test_fork_while_other_threads_load(artifact_path: Path, forks: int) -> None:
    run(_LOADS + _FORKS, artifact_path, forks)


@at_least
def test_fork_during_first_runs_of_the_same_model(artifact_path: Path, forks: int) -> None:
    run(_FIRST_RUNS + _FORKS, artifact_path, forks)


def test_exit_while_daemon_threads_run(artifact_path: Path) -> None:
    for _ in range(3):
        run(_EXIT, artifact_path)
