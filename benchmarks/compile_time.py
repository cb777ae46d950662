"""CPU seconds of compiling whole models in fresh processes.

With an empty cache, with all kernels in the cache, and with the model itself in it.

``python -m benchmarks.compile_time MODEL.onnx… --rounds 5 --json o.json`` starts a process for each
compilation, and counts all that it and the processes it started took, from the start of Python to
its end. With ``--pythons A B``, the interpreters of several installations take turns, for
comparisons before and after a change. Bytecode of modules is cached, as where braid is installed,
whatever ``PYTHONDONTWRITEBYTECODE`` says.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command import run_command
from benchmarks.provenance import provenance

COMPILE = "import sys, braid; braid.compile(sys.argv[1])"
LIMIT = "BRAID_CACHE_LIMIT"
"""The environment variable that limits the bytes of kept models, not those of kernels."""


@dataclass(frozen=True)
class Measurement:
    """CPU seconds of each round: with nothing, the kernels, or the model in the cache."""

    model: str
    python: str
    cold: tuple[float, ...]
    warm: tuple[float, ...]
    again: tuple[float, ...]

    def line(self) -> str:
        """Return a row of the table: medians, and the least and the most."""
        columns = [
            f"{statistics.median(own):>6.2f} ({min(own):.2f} to {max(own):.2f})"
            for own in (self.cold, self.warm, self.again)
        ]
        return f"{self.model:<18} {' '.join(f'{own:>24}' for own in columns)}  {self.python}"


def cpu_seconds(command: list[str], cache: str, **given: str) -> float:
    """Return the CPU seconds of a process and its children; `given` adds environment variables.

    Raises:
        CalledProcessError: it failed.

    """
    environment = {**os.environ, "BRAID_CACHE_DIR": cache, **given}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_utime + usage.ru_stime


def measure(model: Path, pythons: list[str], rounds: int) -> list[Measurement]:
    """Compile in turns, each time first without and then with the results of the first
    compilation."""
    rows: dict[str, list[tuple[float, float, float]]] = {python: [] for python in pythons}
    for _ in range(rounds):
        for python in pythons:
            command = [python, "-c", COMPILE, str(model.resolve())]
            with tempfile.TemporaryDirectory() as cache:
                cold = cpu_seconds(command, cache)
                warm = cpu_seconds(command, cache, **{LIMIT: "0"})
                rows[python].append((cold, warm, cpu_seconds(command, cache)))
    return [Measurement(model.stem, python, *zip(*rows[python], strict=True)) for python in pythons]


def main(
    models: Sequence[Path], *, rounds: int = 3, pythons: Sequence[str] = (sys.executable,)
) -> object:
    """Parse the arguments, measure, print the table."""
    columns = ("nothing cached, CPU s", "kernels cached", "the model cached")
    print(f"{'model':<18} {' '.join(f'{name:>24}' for name in columns)}")
    measured: list[Measurement] = []
    for model in models:
        for own in measure(model, pythons, rounds):
            measured.append(own)
            print(own.line(), flush=True)
    facts = provenance(["xdsl", "torch-mlir", "llvmlite", "numpy", "onnx"])
    return {**facts, "measured": measured}


if __name__ == "__main__":
    run_command(main)
