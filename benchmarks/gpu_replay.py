"""Runs kept cases on this machine's GPU, which needs no compiler: only `braid-runtime` and numpy.

``python -m benchmarks.gpu_replay DIRECTORY --json FILE``

Cases are what ``pytest test/run/gpu --keep-gpu-cases DIRECTORY`` and ``python -m
benchmarks.gpu_kept_models DIRECTORY`` have compiled. Each runs several times, with other inputs
behind the first time, in one of several processes: a crash, a hang or an error that stays in the
driver costs one case. Results have to be the same bits each time, since no kernel adds in an order
that may change: other bits are a race. Errors are printed with the largest error, the tolerance,
and the first position.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from benchmarks.arguments import count, no_case
from benchmarks.case_process import READY, CaseLost, CaseProcess, run_side_by_side
from benchmarks.command import Judged, UsageError, run_command
from benchmarks.kept_cases import Array, KeptCase, kept_names
from braid.support.errors import BraidError

CASE_SECONDS = 20.0
JOBS = 8
RUNS = 3


@dataclass(frozen=True)
class Replayed:
    """The outcome of a case; `lost` where there are no results."""

    name: str
    right: bool
    of_allowed: float = 0.0
    note: str = ""
    lost: bool = False
    seconds: float = 0.0


def serve(channel: Connection, folder: Path, runs: int) -> None:
    """Answers names of cases, for a `CaseProcess`."""
    first: list[Any] = []
    channel.send(READY)
    while (name := channel.recv()) is not None:
        try:
            case = KeptCase.of(folder, name)
            # A context of the driver, which takes longest to make, stays as long as a model.
            first = first or [case.model]
            answer = replay(name, case, runs)
        except BraidError as error:
            answer = Replayed(name, False, note=str(error).splitlines()[0], lost=True)
        channel.send(answer)


def replay(name: str, case: KeptCase, runs: int) -> Replayed:
    """Run a case `runs` times, with other inputs behind the first time, and compare."""
    begin = time.perf_counter()
    results = case.model.run(case.inputs)
    found, bits = case.difference(results), _bits(results)
    note = str(found) if found.wrong else ""
    case.model.run(case.others())
    for number in range(1, runs):
        again = case.model.run(case.inputs)
        if _bits(again) != bits:
            note = f"{note} other bits in run {number}: {case.difference(again)}".strip()
            break
    took = time.perf_counter() - begin
    return Replayed(name, not note, found.of_allowed, note, seconds=took)


def _bits(results: Sequence[Array]) -> list[bytes]:
    return [np.ascontiguousarray(one).tobytes() for one in results]


def replay_all(
    processes: Sequence[CaseProcess], names: Sequence[str], seconds: float
) -> list[Replayed]:
    """Replays all of them in processes of `serve`; prints errors as they are found."""
    found: list[Replayed] = []
    deadline = time.monotonic() + seconds
    for process, name, answer in run_side_by_side(processes, names, CASE_SECONDS, deadline):
        if isinstance(answer, CaseLost):
            answer = Replayed(name, False, note=str(answer), lost=True)
        elif answer.lost:
            process.restart()  # An error in a context of the driver persists.
        found.append(answer)
        if not answer.right:
            print(f"WRONG {answer.name}: {answer.note}", flush=True)
    return found


def main(
    folder: Path,
    *,
    jobs: Annotated[int, count] = JOBS,
    seconds: Annotated[float, "after which no case begins"] = 300.0,
    runs: Annotated[int, count, "of each case"] = RUNS,
    only: Annotated[str, "cases whose names have it"] = "",
) -> object:
    """Run as a program; 1 where something is wrong."""
    begin = time.monotonic()
    kept = kept_names(folder)
    names = [name for name in kept if only in name]
    if not names:
        raise UsageError(f"{folder}: {no_case(only, kept)}")
    processes = [CaseProcess(serve, (folder, runs)) for _ in names[:jobs]]
    found = replay_all(processes, names, seconds)
    wrong, lost = sum(not own.right for own in found), sum(own.lost for own in found)
    print(
        f"{len(found)} of {len(names)} cases in {time.monotonic() - begin:.0f} s: "
        f"{len(found) - wrong} right, {wrong - lost} wrong, {lost} without results"
    )
    return Judged(found, not wrong)


if __name__ == "__main__":
    run_command(main)
