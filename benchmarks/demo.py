"""`make demo`: real models compiled, run, checked against ONNX Runtime, and timed.

The models are the light ones that come with the `onnx` package, with seeded random weights, and
a transformer block. Nothing is downloaded.
"""

import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.models.compare import Result, compare
from benchmarks.models.inputs import random_inputs
from benchmarks.models.make import make
from benchmarks.models.peers import PEERS

MODELS = ("squeezenet", "inception_v1", "transformer_block", "loop_if")
TOLERANCE = 1e-4
RUNS = 10


def measure(directory: Path, name: str) -> tuple[Result, Result]:
    """Make, compile and measure one model; return braid's figures and those of ONNX Runtime."""
    path = make(directory, name)
    inputs = random_inputs(path)
    candidates = [PEERS[runtime](path, inputs, 1) for runtime in ("braid", "ort")]
    ours, reference = compare(path, candidates, "ort", RUNS, warmup=2)
    return ours, reference


def main() -> int:
    """Print a table; the status is 1 if a result is wrong."""
    console = Console(width=100)
    table = Table(
        "model", "compile s", "again s", "braid ms", "ONNX Runtime ms", "arena", "error", ""
    )
    right = True
    with tempfile.TemporaryDirectory() as directory:
        for name in MODELS:
            with console.status(f"{name}: compiling and running"):
                ours, reference = measure(Path(directory), name)
            agrees = ours.error <= TOLERANCE
            right = right and agrees
            table.add_row(
                name,
                f"{ours.load_seconds:.1f}",
                f"{ours.details['warm_compile_seconds']:.1f}",
                f"{ours.median * 1e3:.2f}",
                f"{reference.median * 1e3:.2f}",
                f"{ours.details['arena_bytes'] / 2**20:.1f} MiB",
                f"{ours.error:.1e}",
                "[green]right" if agrees else "[red]WRONG",
            )
    console.print(table)
    console.print(
        f"One thread each, batch 1, medians of {RUNS} runs. The error is the largest difference "
        f"from ONNX Runtime in units of the largest output; up to {TOLERANCE:g} counts as right."
    )
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
