"""Runs cases in processes that may die: a crash or a hang is the failure of one case."""

from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from time import monotonic

from benchmarks.case_process import READY, CaseLost, CaseProcess
from benchmarks.conformance.cases import load_cases
from benchmarks.conformance.executors import EXECUTORS
from benchmarks.conformance.outcomes import Outcome, Status, run_case


def _serve(channel: Connection, executor: str, kinds: Sequence[str]) -> None:
    cases = load_cases(kinds)
    channel.send(READY)
    while (name := channel.recv()) is not None:
        channel.send(run_case(cases[name], EXECUTORS[executor]))


def run_in_workers(
    names: Sequence[str], executor: str, kinds: Sequence[str], *, jobs: int, seconds: float
) -> Iterator[Outcome]:
    """Runs cases in `jobs` processes; each may take `seconds`."""
    pending = list(reversed(names))
    workers = [CaseProcess(_serve, (executor, kinds)) for _ in range(min(jobs, len(names)))]
    for worker in workers:
        worker.start()
    while True:
        for worker in workers:
            if worker.request is None and pending:
                worker.give(pending.pop(), seconds)
        busy = [worker for worker in workers if worker.request is not None]
        if not busy:
            break
        ready = wait([worker.channel for worker in busy], timeout=1)
        for worker in busy:
            if worker.channel in ready:
                yield _taken(worker)
            elif monotonic() > worker.deadline:
                name = worker.request
                worker.restart()
                yield Outcome(name, Status.FAILED, "took too long")
    for worker in workers:
        worker.end()


def _taken(worker: CaseProcess) -> Outcome:
    name = worker.request
    try:
        return worker.take()
    except CaseLost as lost:
        return Outcome(name, Status.FAILED, str(lost))
