"""Runs cases in processes that may die: a crash or a hang is the failure of one case."""

from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection

from benchmarks.case_process import READY, CaseLost, CaseProcess, run_side_by_side
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
    """Run cases in `jobs` processes; each may take `seconds`."""
    workers = [CaseProcess(_serve, (executor, kinds)) for _ in range(min(jobs, len(names)))]
    for _, name, answer in run_side_by_side(workers, names, seconds):
        lost = isinstance(answer, CaseLost)
        yield Outcome(name, Status.FAILED, str(answer)) if lost else answer
