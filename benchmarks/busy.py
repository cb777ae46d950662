"""Threads on a busy machine: several threads compared with one, with and without a competitor.

    python -m benchmarks.busy MODEL.onnx… [--threads 2] [--rounds 10] [--competitors 1]
        [--python OLD/.venv/bin/python] [--quiet SHARE] [--json FILE]

Every candidate compiles the model in a separate process and sleeps while another one runs. A
competitor is a process that spins, without affinity. `--python` names the interpreter of another
braid, such as that of the commit before, which takes part on as many threads. The load of the rest
of the machine is measured, too: with `--quiet`, a turn in which it took more than this fraction of
a CPU is repeated. Ratios are to one thread in the same situation.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from benchmarks.command import run_command

TURN_SECONDS = 0.3
REST_SECONDS = 0.05
"""Longer than threads of any pool spin after a run."""
MOST_REPEATS = 50

_SPIN = "while True: pass"

_RUNNER = """
import sys, time
import numpy as np
import braid

model = braid.compile(sys.argv[1], threads=int(sys.argv[2]))
rng = np.random.default_rng(0)
inputs = [
    rng.standard_normal(spec.shape).astype(spec.dtype) if "float" in spec.dtype
    else rng.integers(0, 100, spec.shape).astype(spec.dtype)
    for spec in model.inputs
]
for _ in range(3):
    model.run(inputs)
print("ready", flush=True)
for line in sys.stdin:
    seconds = []
    for _ in range(int(line)):
        start = time.perf_counter()
        model.run(inputs)
        seconds.append(time.perf_counter() - start)
    print(*seconds, flush=True)
"""


class Runner:
    """A model in a separate process, which runs it on request."""

    def __init__(self, name: str, python: str, model: Path, threads: int) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [python, "-c", _RUNNER, str(model), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid

    def wait_until_ready(self) -> None:
        """Wait until it is ready; raises SystemExit if the model does not run."""
        if self._answer() != "ready":
            raise SystemExit(f"{self.name}: the model does not run")

    def run(self, count: int) -> list[float]:
        """Return the seconds of each of `count` runs."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        return [float(text) for text in self._answer().split()]

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def busy_seconds() -> float:
    """CPU seconds of all processes since the machine started."""
    user, nice, system, _, _, *interrupts = map(int, _first_line("/proc/stat").split()[1:8])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def process_seconds(pids: Iterable[int]) -> float:
    """CPU seconds of these processes."""
    fields = (_first_line(f"/proc/{pid}/stat").rpartition(")")[2].split() for pid in pids)
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def _first_line(path: str) -> str:
    return Path(path).read_text().splitlines()[0]


@contextmanager
def competitors(count: int) -> Generator[list[int]]:
    """Yield while processes spin."""
    processes = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(count)]
    try:
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure(
    runners: Sequence[Runner], rounds: int, spinning: Sequence[int], quiet: float
) -> dict[str, Any]:
    """Return the times of all candidates, which take turns; `others` is the CPUs that others
    used."""
    known = [os.getpid(), *spinning, *(runner.pid for runner in runners)]
    count = max(2, round(TURN_SECONDS / statistics.median(runners[0].run(3))))
    times: dict[str, list[float]] = {runner.name: [] for runner in runners}
    shares: list[float] = []
    for _ in range(rounds):
        for runner in runners:
            taken, share = _turn(runner, count, known, quiet)
            times[runner.name] += taken
            shares.append(share)
    base = statistics.median(times[runners[0].name])
    return {"others": statistics.mean(shares)} | {
        name: _summary(sorted(taken), base) for name, taken in times.items()
    }


def _turn(
    runner: Runner, count: int, known: Sequence[int], quiet: float
) -> tuple[list[float], float]:
    """Return the seconds of `count` runs, and the CPUs unknown processes used meanwhile."""
    repeats = 0
    while True:
        time.sleep(REST_SECONDS)
        before, start = busy_seconds() - process_seconds(known), time.perf_counter()
        taken = runner.run(count)
        others = busy_seconds() - process_seconds(known) - before
        share = max(others / (time.perf_counter() - start), 0.0)
        repeats += 1
        if share <= quiet or repeats > MOST_REPEATS:
            return taken, share


def _summary(taken: Sequence[float], base: float) -> dict[str, float]:
    median, late = statistics.median(taken), taken[int(0.9 * len(taken))]
    return {
        "runs": len(taken),
        "median": median,
        "p90": late,
        "ratio": median / base,
        "p90_ratio": late / base,
    }


@dataclass(frozen=True)
class Settings:
    """The models to measure, and how."""

    models: Sequence[Path]
    _: KW_ONLY
    threads: int = 2
    rounds: int = 10
    competitors: int = 1
    python: str | None = None
    quiet: float = float("inf")


def compare(model: Path, options: Settings) -> dict[str, Any]:
    """All candidates of one model, first alone and then with competitors."""
    runners = [Runner("1 thread", sys.executable, model, 1)]
    try:
        runners[0].wait_until_ready()  # it also fills the cache of kernels
        many = f"{options.threads} threads"
        runners.append(Runner(many, sys.executable, model, options.threads))
        if options.python is not None:
            runners.append(Runner(f"{many}, other", options.python, model, options.threads))
        for runner in runners[1:]:
            runner.wait_until_ready()
        alone = measure(runners, options.rounds, (), options.quiet)
        with competitors(options.competitors) as spinning:
            beside = measure(runners, options.rounds, spinning, options.quiet)
    finally:
        for runner in runners:
            runner.close()
    return {"alone": alone, f"beside {options.competitors}": beside}


def main(options: Settings) -> object:
    """Measures and prints a table."""
    results: dict[str, Any] = {}
    for model in options.models:
        results[model.stem] = compare(model, options)
        for situation, record in results[model.stem].items():
            print(f"{model.stem}, {situation} (others: {record['others']:.2f} CPUs)")
            for name, row in list(record.items())[1:]:
                print(
                    f"  {name:17} median {1e3 * row['median']:8.2f} ms ({row['ratio']:.2f})  "
                    f"p90 {1e3 * row['p90']:8.2f} ms ({row['p90_ratio']:.2f})",
                    flush=True,
                )
    return results


if __name__ == "__main__":
    run_command(main)
