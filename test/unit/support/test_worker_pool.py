import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from braid.support import worker_pool
from braid.support.worker_pool import WorkerPool
from braid.support.worker_process import WorkerEndedError

T = TypeVar("T")

WORKER = """
import os
import subprocess
import sys
from braid.support.worker_process import serve

def answer(request):
    if request == "end":
        print("last words", file=sys.stderr, flush=True)
        os.abort()
    if request == "say":
        print("much", file=sys.stderr, flush=True)
    if request == "wait":
        child = subprocess.Popen(["sleep", "600"])
        print(os.getpid(), child.pid, file=open("pids", "w"), flush=True)
        child.wait()
    return os.getpid()

serve(answer, idle_seconds={idle})
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "answering.py").write_text(WORKER.format(idle=30))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "answering"


@pytest.fixture
def pool():
    own = WorkerPool()
    yield own
    own.close()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_worker_is_kept_for_the_next_block(pool: WorkerPool, module: str) -> None:
    with pool.worker(module) as worker:
        first = worker.ask("hello")
    with pool.worker(module) as worker:
        assert worker.ask("hello") == first
    pool.close()
    assert not is_running(first)


def test_blocks_at_once_have_workers_of_their_own(pool: WorkerPool, module: str) -> None:
    with pool.worker(module) as one, pool.worker(module) as other:
        assert one.ask("hello") != other.ask("hello")


def test_no_more_than_some_are_kept(pool: WorkerPool, module: str, monkeypatch) -> None:
    monkeypatch.setattr(worker_pool, "_KEPT", 1)
    with pool.worker(module) as one, pool.worker(module) as other:
        pids = [one.ask("hello"), other.ask("hello")]
    assert [is_running(pid) for pid in pids] == [False, True]


def test_one_that_ends_is_not_lent_again(pool: WorkerPool, module: str) -> None:
    with pool.worker(module) as worker:
        first = worker.ask("say")
    with (
        pytest.raises(WorkerEndedError, match=r"last words .*SIGABRT"),
        pool.worker(module) as worker,
    ):
        worker.ask("end")
    with pool.worker(module) as worker:
        assert worker.ask("hello") != first


def test_one_that_was_idle_too_long_is_not_lent_again(
    pool: WorkerPool, module: str, monkeypatch
) -> None:
    with pool.worker(module) as worker:
        first = worker.ask("hello")
    monkeypatch.setattr(worker_pool, "_FRESH_SECONDS", 0.0)
    with pool.worker(module) as worker:
        assert worker.ask("hello") != first
    assert not is_running(first)


def test_a_worker_without_requests_ends(pool: WorkerPool, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "leaving.py").write_text(WORKER.format(idle=0.1))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pool.worker("leaving") as worker:
        pid = worker.ask("hello")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and b"Z" not in state(pid):
        time.sleep(0.02)
    assert b"Z" in state(pid)  # it has ended, and nobody has asked how


def state(pid: int) -> bytes:
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]


@pytest.mark.skipif(sys.platform != "linux", reason="looks at descriptors by /proc")
def test_a_child_of_fork_has_none_and_holds_none(pool: WorkerPool, module: str) -> None:
    with pool.worker(module) as worker:
        first = worker.ask("hello")
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            with pool.worker(module) as worker:
                own = worker.ask("hello")
            os.write(writer, str(own).encode())
            pool.close()
            time.sleep(60)  # outlives the parent's worker, which must not wait for it
        finally:
            os._exit(0)
    try:
        assert int(os.read(reader, 20)) != first
        pool.close()
        assert not is_running(first)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)


ASKING = """
from braid.support.worker_process import worker_process
with worker_process("answering") as worker:
    worker.ask("wait")
"""


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_a_worker_ends_with_whoever_asks(module: str, tmp_path: Path, ending: int) -> None:
    """Nothing may stay behind when a service manager, or memory that runs out, ends a program."""
    with subprocess.Popen([sys.executable, "-P", "-c", ASKING], cwd=tmp_path) as program:
        pids = wait_for(lambda: (tmp_path / "pids").exists() and (tmp_path / "pids").read_text())
        program.send_signal(ending)
    wait_for(lambda: not any(is_running(int(pid)) for pid in pids.split()))


def wait_for(found: Callable[[], T]) -> T:
    end = time.monotonic() + 60
    while not (value := found()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return value
