"""Worker processes that may die: a crash or a hang is the failure of one case."""

import multiprocessing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import Any

from benchmarks.conformance.cases import load_cases
from benchmarks.conformance.executors import EXECUTORS
from benchmarks.conformance.outcomes import Outcome, Status, run_case


def _serve(channel: Connection, executor: str, kinds: Sequence[str]) -> None:
    cases = load_cases(kinds)
    channel.send(None)
    while (name := channel.recv()) is not None:
        channel.send(run_case(cases[name], EXECUTORS[executor]))


@dataclass
class _Worker:
    executor: str
    kinds: Sequence[str]
    process: BaseProcess = field(init=False)
    channel: Connection = field(init=False)
    case: str | None = None
    loaded: bool = False
    deadline: float = 0.0

    def start(self) -> None:
        """Starts a process, in place of one that died."""
        context: Any = multiprocessing.get_context("spawn")
        self.channel, far_end = context.Pipe()
        arguments = (far_end, self.executor, self.kinds)
        self.process = context.Process(target=_serve, args=arguments, daemon=True)
        self.process.start()
        far_end.close()
        self.loaded = False

    def give(self, case: str, seconds: float) -> None:
        """Lets it run a case; its seconds begin when the cases are loaded."""
        if not self.loaded:
            self.channel.recv()
            self.loaded = True
        self.case, self.deadline = case, monotonic() + seconds
        self.channel.send(case)

    def take(self) -> Outcome:
        """The outcome of its case; the process is replaced where there is none."""
        assert self.case is not None
        name, self.case = self.case, None
        try:
            return self.channel.recv()
        except EOFError:
            self.process.join()
            code = self.process.exitcode
            self.start()
            return Outcome(name, Status.FAILED, f"the process ended with status {code}")

    def stop_late(self) -> Outcome:
        """Ends a process whose time is over."""
        assert self.case is not None
        name, self.case = self.case, None
        self.process.kill()
        self.process.join()
        self.start()
        return Outcome(name, Status.FAILED, "took too long")


def run_in_workers(
    names: Sequence[str], executor: str, kinds: Sequence[str], *, jobs: int, seconds: float
) -> Iterator[Outcome]:
    """Runs cases in `jobs` processes; each may take `seconds`."""
    pending = list(reversed(names))
    workers = [_Worker(executor, kinds) for _ in range(min(jobs, len(names)))]
    for worker in workers:
        worker.start()
    while True:
        for worker in workers:
            if worker.case is None and pending:
                worker.give(pending.pop(), seconds)
        busy = [worker for worker in workers if worker.case is not None]
        if not busy:
            break
        ready = wait([worker.channel for worker in busy], timeout=1)
        for worker in busy:
            if worker.channel in ready:
                yield worker.take()
            elif monotonic() > worker.deadline:
                yield worker.stop_late()
    for worker in workers:
        worker.channel.send(None)
        worker.process.join()
