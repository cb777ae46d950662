"""Measuring workers of a Ray cluster: an actor on each node, so that kernels do not disturb others.

Actors announce their machine. Kernels are compiled here, and measured by those on machines that the
kernels are for; a kernel whose worker is lost is searched again by another one.
"""

import logging
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from braid.dialects.braid.relayout import Array
from braid.support.diagnostics import Diagnostic, emit
from braid.support.distribution import install_command
from braid.support.errors import BraidError
from braid.support.option_names import option_text
from braid.support.toolchain import braid_version
from braid.targets.machines.cpus import NATIVE, cpu_machine
from braid.targets.machines.identity import processor, processor_name
from braid.targets.machines.machine import Machine
from braid.tuning.kernel_runs import RunRequest
from braid.tuning.measuring_workers import LostWorkerError, Search
from braid.tuning.timing import TimingRequest
from braid.tuning.timing_worker import MOST_SECONDS, timing_worker

_CONNECT_SECONDS = 10.0
_START_SECONDS = 120.0
"""The seconds until an actor has announced its machine; an environment may have to be set
up there."""


@dataclass(frozen=True)
class Announcement:
    """A description of an actor's node: the processor's own words, its name, and LLVM's terms."""

    processor: str
    name: str
    triple: str
    cpu: str
    version: str

    @staticmethod
    def of_this_machine() -> "Announcement":
        """Return what is true here."""
        here = cpu_machine(NATIVE)
        return Announcement(processor(), processor_name(), here.triple, here.cpu, braid_version())

    def measures(self, machine: Machine) -> bool:
        """Return whether times that are measured there are those of `machine`, by the same
        braid.
        """
        if self.version != braid_version():
            return False
        if machine.name == NATIVE:
            return self.processor == processor()
        return (self.triple, self.cpu) == (machine.triple, machine.cpu)


class MeasuringActor:
    """Measures in a separate process, which a kernel may crash."""

    def __init__(self) -> None:
        self._ending = ExitStack()
        self._worker = self._ending.enter_context(timing_worker())

    def announce(self) -> Announcement:
        """Return which machine this is."""
        return Announcement.of_this_machine()

    def answer(self, request: TimingRequest | RunRequest) -> object:
        """Return the seconds of one run, or the results of one; None where the kernel crashes or
        hangs.
        """
        if isinstance(request, RunRequest):
            return self._worker.results(request)
        return self._worker.seconds(request)


Ask = Callable[[TimingRequest | RunRequest], Any]
"""A function that returns an actor's answer to a request. Raises LostWorkerError."""


class RayWorkers:
    """Searches on several workers at once; each of `asks` represents one.

    All but measuring happens here, for one kernel at a time: compilers and stores are not made for
    several threads. Whoever waits for an answer lets others go on.
    """

    def __init__(self, asks: Sequence[Ask]) -> None:
        self.count = len(asks)
        self._asks = asks

    def for_each(self, numbers: int, search: Search) -> None:
        """Raise BraidError where all workers are lost, else what a search raises."""
        work = _Work(search, list(reversed(range(numbers))))
        with ThreadPoolExecutor(self.count, "measuring") as pool:
            futures = [pool.submit(copy_context().run, work.done_by, ask) for ask in self._asks]
        for future in futures:
            future.result()
        if work.waiting:
            left = len(work.waiting)
            raise BraidError(
                f"all {self.count} measuring workers are lost; {left} kernels are left",
                hint="what was found is recorded; the same command goes on from there",
            )


class _Work:
    """Kernels that are `waiting`, the last one first, and being searched by this many threads."""

    def __init__(self, search: Search, waiting: list[int]) -> None:
        self.waiting = waiting
        self._search, self._turn = search, threading.Condition(threading.Lock())
        self._running = 0

    def done_by(self, ask: Ask) -> None:
        """Search kernels until none is left, also of other workers, or this one is lost."""
        worker = _TakingTurns(ask, self._turn)
        with self._turn:
            while self.waiting or self._running:
                if not self.waiting:
                    self._turn.wait()
                elif not self._is_searched(self.waiting.pop(), worker):
                    return

    def _is_searched(self, number: int, worker: "_TakingTurns") -> bool:
        self._running += 1
        try:
            self._search(number, worker)
        except LostWorkerError as lost:
            self.waiting.append(number)
            emit(Diagnostic("warning", f"a measuring worker is lost: {lost}"))
            return False
        except BaseException:
            self.waiting.clear()
            raise
        finally:
            self._running -= 1
            self._turn.notify_all()
        return True


class _TakingTurns:
    """A worker whose answers are waited for out of turn."""

    def __init__(self, ask: Ask, turn: threading.Condition) -> None:
        self._ask, self._turn = ask, turn

    def seconds(self, request: TimingRequest) -> float | None:
        """See `MeasuringWorker`; so is `results`."""
        return self._answer(request)

    def results(self, request: RunRequest) -> tuple[Array, ...] | None:
        return self._answer(request)

    def _answer(self, request: TimingRequest | RunRequest) -> Any:
        self._turn.release()
        try:
            return self._ask(request)
        finally:
            self._turn.acquire()


@contextmanager
def ray_workers(address: str, machine: Machine) -> Generator[RayWorkers]:
    """Yield an actor on each node of the cluster at `address` whose times are those of `machine`.

    `address` is as for `ray.init`: `auto`, `HOST:PORT`, `ray://HOST:PORT`, or `local` for a cluster
    of this machine alone. Actors, and a cluster that was started, end with the block. Raises
    BraidError without Ray, a cluster there, or a node that fits.
    """
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise BraidError(
            f"{option_text('ray')} needs Ray, which is not installed", hint=install_command("ray")
        ) from error
    is_ours = not ray.is_initialized()
    if is_ours:
        try:
            _look_for(address)
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, namespace="braid")
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise BraidError(
                f"there is no Ray cluster at '{address}': {reason}",
                hint="'ray start --head' starts one, and the others get its address; "
                f"{option_text('ray', 'local')} takes this machine alone",
            ) from error
    actors: list[Any] = []
    try:
        actors += _actors(ray)
        fitting = list(_fitting(ray, actors, machine))
        yield RayWorkers([_asking(ray, actor) for actor in fitting])
    finally:
        for actor in actors:
            ray.kill(actor)
        if is_ours:
            ray.shutdown()


def _look_for(address: str) -> None:
    """Raise OSError where nothing listens at HOST:PORT: Ray would try again for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()


def _actors(ray: Any) -> Iterator[Any]:
    """Return one actor for each node, which reserves a CPU of it."""
    strategies: Any = import_module("ray.util.scheduling_strategies")
    actor = ray.remote(MeasuringActor)
    for node in ray.nodes():
        if node["Alive"] and node["Resources"].get("CPU", 0) >= 1:
            there = strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            yield actor.options(num_cpus=1, scheduling_strategy=there).remote()


def _fitting(ray: Any, actors: Sequence[Any], machine: Machine) -> Iterator[Any]:
    """Return the nodes that can measure kernels for `machine`. Raises BraidError if there
    are none.
    """
    said = [actor.announce.remote() for actor in actors]
    others: list[str] = []
    ready: list[Any] = []
    if said:
        ready = ray.wait(said, num_returns=len(said), timeout=_START_SECONDS)[0]
    found = False
    for actor, answer in zip(actors, said, strict=True):
        if answer not in ready:
            others.append("a node that does not answer")
            continue
        try:
            announced: Announcement = ray.get(answer)
        except ray.exceptions.RayError as error:
            others.append(f"a node without braid ({type(error).__name__})")
            continue
        if announced.measures(machine):
            found = True
            yield actor
        else:
            others.append(f"'{announced.name}' with {announced.version}")
    if not found:
        here = processor_name() if machine.name == NATIVE else machine.name
        there = ", ".join(others) or "it has no node with a CPU"
        raise BraidError(
            f"no node of the Ray cluster measures for '{here}' with {braid_version()}: {there}",
            hint="nodes need the same braid, and the CPU that kernels are for",
        )


def _asking(ray: Any, actor: Any) -> Ask:
    def ask(request: TimingRequest | RunRequest) -> Any:
        try:
            return ray.get(actor.answer.remote(request), timeout=2 * MOST_SECONDS)
        except ray.exceptions.RayError as error:
            raise LostWorkerError(type(error).__name__) from error

    return ask
