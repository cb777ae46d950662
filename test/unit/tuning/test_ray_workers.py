"""Searches on several workers, of which some are lost."""

import importlib.util
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from braid.frontends.mlir import parse_mlir
from braid.support.diagnostics import Diagnostic, handle_diagnostics
from braid.support.errors import BraidError
from braid.targets.costs.schedule_records import load_tuned
from braid.targets.machines.cpus import NATIVE, cpu_machine
from braid.tuning.measuring_workers import LostWorkerError, MeasuringWorker
from braid.tuning.ray_workers import Announcement, RayWorkers, ray_workers
from braid.tuning.search import Rule
from braid.tuning.timing import TimingRequest
from braid.tuning.tune_kernels import Tuning
from braid.tuning.tune_model import tune_model
from braid.universe import make_context
from test.machines import AVX2

REQUEST = TimingRequest(b"", "kernel", 1, 0, ())


@contextmanager
def collected() -> Generator[list[str]]:
    """Return the messages of diagnostics."""
    said: list[str] = []

    def handle(diagnostic: Diagnostic) -> None:
        said.append(diagnostic.message)

    with handle_diagnostics(handle):
        yield said


class Workers:
    """Each answers after a moment; the one of a number in `lives` only so often."""

    def __init__(self, count: int, lives: dict[int, int] | None = None) -> None:
        self.answered: Counter[int] = Counter()
        self.most_at_once = 0
        self._at_once, self._lives, self._lock = 0, lives or {}, threading.Lock()
        self.workers = RayWorkers([self._asking(number) for number in range(count)])

    def _asking(self, number: int) -> Callable[[Any], Any]:
        def ask(request: Any) -> float:
            with self._lock:
                self._at_once += 1
                self.most_at_once = max(self.most_at_once, self._at_once)
            time.sleep(0.01)
            with self._lock:
                self._at_once -= 1
                self.answered[number] += 1
                if self.answered[number] > self._lives.get(number, 1 << 30):
                    raise LostWorkerError("it is gone")
            return float(number)

        return ask


class Searches:
    """Counts the searches that ended, and how many ran between two answers at once."""

    def __init__(self) -> None:
        self.ended: Counter[int] = Counter()
        self.is_alone = True
        self._inside = 0

    def __call__(self, number: int, worker: MeasuringWorker) -> None:
        for _ in range(3):
            self._inside += 1
            time.sleep(0.001)
            self.is_alone &= self._inside == 1
            self._inside -= 1
            worker.seconds(REQUEST)
        self.ended[number] += 1


def test_workers_answer_at_once_and_all_else_is_done_in_turns() -> None:
    workers, searches = Workers(3), Searches()
    workers.workers.for_each(7, searches)
    assert searches.ended == Counter(range(7)) and searches.is_alone
    assert workers.most_at_once == 3 and workers.answered.total() == 21


@pytest.mark.parametrize("lives", [{0: 0}, {0: 1}, {0: 4, 1: 4}, {1: 2, 2: 0}])
def test_kernels_of_lost_workers_are_searched_by_others(lives: dict[int, int]) -> None:
    workers, searches = Workers(3, lives), Searches()
    with collected() as said:
        workers.workers.for_each(6, searches)
    assert searches.ended == Counter(range(6))
    assert said == ["a measuring worker is lost: it is gone"] * len(lives)


def test_the_last_kernel_is_searched_by_who_had_finished() -> None:
    workers, searches = Workers(2, {1: 2}), Searches()
    with collected():
        workers.workers.for_each(2, searches)
    assert searches.ended == Counter(range(2))


def test_without_workers_it_is_said_what_is_left() -> None:
    workers, searches = Workers(2, {0: 3, 1: 3}), Searches()
    left = pytest.raises(BraidError, match="all 2 measuring workers are lost; 3 kernels are left")
    with collected(), left:
        workers.workers.for_each(5, searches)
    assert searches.ended.total() == 2


def test_an_error_ends_the_others() -> None:
    def search(number: int, worker: MeasuringWorker) -> None:
        worker.seconds(REQUEST)
        if number == 1:
            raise BraidError("the disk is full")

    workers = Workers(2)
    with pytest.raises(BraidError, match="the disk is full"):
        workers.workers.for_each(1000, search)
    assert workers.answered.total() < 10


def test_machines_that_fit() -> None:
    here = Announcement.of_this_machine()
    assert here.measures(cpu_machine(NATIVE))
    other = Announcement("Cray-1", "Cray-1", here.triple, "cray1", here.version)
    assert not other.measures(cpu_machine(NATIVE))
    old = Announcement(here.processor, here.name, here.triple, here.cpu, "braid 0.0.1")
    assert not old.measures(cpu_machine(NATIVE))
    haswell = Announcement("Core i7", "Core i7", AVX2.triple, AVX2.cpu, here.version)
    assert haswell.measures(AVX2) and not haswell.measures(cpu_machine("skylake"))


MODEL = """
func.func @main(%x: tensor<24x40xf32>, %a: tensor<40x48xf32>, %b: tensor<48x64xf32>,
    %c: tensor<64x32xf32>) -> tensor<24x32xf32> {
  %1 = braid.matmul %x, %a : (tensor<24x40xf32>, tensor<40x48xf32>) -> tensor<24x48xf32>
  %2 = braid.matmul %1, %b : (tensor<24x48xf32>, tensor<48x64xf32>) -> tensor<24x64xf32>
  %3 = braid.matmul %2, %c : (tensor<24x64xf32>, tensor<64x32xf32>) -> tensor<24x32xf32>
  func.return %3 : tensor<24x32xf32>
}"""


@pytest.fixture
def cluster() -> Generator[Any]:
    """Return a cluster of two nodes on this machine."""
    pytest.importorskip("ray", reason="Ray is not installed")
    utilities: Any = import_module("ray.cluster_utils")
    made = utilities.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        made.add_node(num_cpus=1)
        yield made
    finally:
        made.shutdown()


def actors() -> list[int]:
    """Return the processes of measuring actors."""
    found: list[int] = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_bytes()
        except OSError:
            continue
        if command.startswith(b"ray::MeasuringActor"):
            found.append(int(directory.name))
    return found


def test_what_is_not_there_is_said() -> None:
    if importlib.util.find_spec("ray") is None:
        with pytest.raises(BraidError, match="needs Ray, which is not installed"):
            ray_workers("auto", cpu_machine(NATIVE)).__enter__()
        return
    with pytest.raises(BraidError, match=r"there is no Ray cluster at '127\.0\.0\.1:1'"):
        ray_workers("127.0.0.1:1", cpu_machine(NATIVE)).__enter__()


@pytest.mark.slow
@pytest.mark.parametrize("kills", [False, True])
def test_a_cluster(
    kills: bool, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))
    victims: list[int] = []

    def kill_one() -> None:
        while not (running := actors()):
            time.sleep(0.1)
        time.sleep(3.0)
        victims.append(running[0])
        os.kill(running[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one, daemon=True)
    if kills:
        killer.start()
    module = parse_mlir(make_context(), MODEL, "m.mlir").module
    tuning = Tuning(rule=Rule(trials=30), jobs=1, ray=cluster.address, seconds=300.0)
    with collected() as said:
        report = tune_model(module, tuning)
    assert (report.searched, report.left) == (2, 0) and len(load_tuned()) == 2
    assert len(victims) == kills
    assert len([each for each in said if "is lost" in each]) == kills
    end = time.monotonic() + 20.0
    while actors() and time.monotonic() < end:
        time.sleep(0.1)
    assert actors() == []
