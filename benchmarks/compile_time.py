"""CPU seconds of compiling whole models in fresh processes: nothing cached, and all kernels cached.

``python -m benchmarks.compile_time MODEL.onnx… --rounds 5 --json o.json`` starts a process for each
compilation, and counts all that it and the processes it started took, from the start of Python to
its end. With ``--pythons A B``, the interpreters of several installations take turns, for before
and after. Bytecode of modules is cached, as where braid is installed, whatever
``PYTHONDONTWRITEBYTECODE`` says.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.arguments import output_file
from benchmarks.provenance import provenance

COMPILE = "import sys, braid; braid.compile(sys.argv[1])"
IMPORT = "import braid"


@dataclass(frozen=True)
class Measurement:
    """CPU seconds of each round."""

    model: str
    python: str
    cold: tuple[float, ...]
    warm: tuple[float, ...]

    def line(self) -> str:
        """A row of the table: medians, and the least and the most."""
        columns = [
            f"{statistics.median(own):>6.2f} ({min(own):.2f} to {max(own):.2f})"
            for own in (self.cold, self.warm)
        ]
        return f"{self.model:<18} {columns[0]:>24} {columns[1]:>24}  {self.python}"


def cpu_seconds(command: list[str], cache: str) -> float:
    """Of a process and its children, all that they took.

    Raises:
        CalledProcessError: it failed.

    """
    environment = {**os.environ, "BRAID_CACHE_DIR": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_utime + usage.ru_stime


def measure(model: Path, pythons: list[str], rounds: int) -> list[Measurement]:
    """Compile in turns, each time without and then with what the first compilation left."""
    cold: dict[str, list[float]] = {python: [] for python in pythons}
    warm: dict[str, list[float]] = {python: [] for python in pythons}
    for _ in range(rounds):
        for python in pythons:
            command = [python, "-c", COMPILE, str(model.resolve())]
            with tempfile.TemporaryDirectory() as cache:
                cold[python].append(cpu_seconds(command, cache))
                warm[python].append(cpu_seconds(command, cache))
    return [Measurement(model.stem, p, tuple(cold[p]), tuple(warm[p])) for p in pythons]


def main() -> None:
    """Parse the arguments, measure, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pythons", nargs="+", default=[sys.executable])
    parser.add_argument("--json", type=output_file)
    options = parser.parse_args()
    print(f"{'model':<18} {'cold CPU s':>24} {'warm CPU s':>24}")
    measured: list[Measurement] = []
    for model in options.models:
        for own in measure(model, options.pythons, options.rounds):
            measured.append(own)
            print(own.line(), flush=True)
    if options.json:
        facts = provenance(["xdsl", "torch-mlir", "llvmlite", "numpy", "onnx"])
        result = {**facts, "measured": [asdict(own) for own in measured]}
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
