"""Memory of activations: braid's plan compared with ONNX Runtime's allocations and IREE's plan.

python -m benchmarks.arena --models DIR [--only resnet50 unet] [--json out.json]

braid's figure is what `plan-memory` puts into the arena, scratch of kernels included, and the
outputs; `bound` is the arena's lower bound for the chosen order, with the outputs. ONNX Runtime's
is measured: the most that its third run has allocated, with its memory pattern but without the
arena that would round blocks up, outputs included (`allocation_peak.c` counts, preloaded into a
process of its own). `reference` are MiB of ONNX Runtime and IREE 3.13 from sessions' statistics
and compiled modules, measured once on one machine. Inputs and weights never count.
"""

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table

import braid
from benchmarks.command import run_command
from benchmarks.models.inputs import random_inputs

MIB = 2**20
COUNTER = Path(__file__).with_name("allocation_peak.c")

REFERENCE: dict[str, tuple[float, float]] = {
    "resnet50": (6.89, 8.53),
    "mobilenet_v2": (6.51, 8.37),
    "squeezenet": (3.75, 3.75),
    "inception_v1": (9.69, 8.22),
    "unet": (48.2, 50.0),
    "nasnetish": (30.6, 37.4),
    "bert_base": (8.62, 2.62),
    "gpt2": (12.3, 13.6),
}
"""MiB of activations of ONNX Runtime and IREE, by the name of the model."""


def planned(path: Path) -> dict[str, float]:
    """Return the bytes of arena with outputs in braid's plan, and their lower bound."""
    (report,) = braid.compile(path).memory
    return {
        "arena_bytes": report.arena_bytes,
        "output_bytes": report.output_bytes,
        "activation_bytes": report.activation_bytes,
        "bound_bytes": report.lower_bound + report.output_bytes,
    }


def count_ort(path: Path) -> int:
    """In a process with the counter: bytes that a run of ONNX Runtime allocates at most."""
    import onnxruntime

    counter = ctypes.CDLL(None)
    counter.allocation_reset.restype = counter.allocation_peak.restype = ctypes.c_longlong
    options: Any = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    session: Any = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = random_inputs(path)
    # Shapes are seen in the first run; from then on memory is allocated by their pattern.
    results = [session.run(None, inputs) for _ in range(2)]
    results.clear()
    before: int = counter.allocation_reset()
    session.run(None, inputs)
    return int(counter.allocation_peak()) - before


def measure_ort(path: Path, library: Path) -> int:
    """`count_ort` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.arena", "--count", str(path)]
    environment = os.environ | {"LD_PRELOAD": str(library)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return int(done.stdout)


def measure(path: Path, library: Path) -> dict[str, Any]:
    """All figures of one model."""
    figures: dict[str, Any] = {"model": path.stem, **planned(path)}
    figures["ort_bytes"] = measure_ort(path, library)
    if path.stem in REFERENCE:
        figures["reference_ort_mib"], figures["reference_iree_mib"] = REFERENCE[path.stem]
    return figures


def table_of(results: list[dict[str, Any]]) -> Table:
    """Return the figures in MiB."""
    table = Table("model", "braid", "arena", "bound", "ort", "reference ort / iree")
    for row in results:
        sizes = [row[k] for k in ("activation_bytes", "arena_bytes", "bound_bytes", "ort_bytes")]
        reference = [row.get(f"reference_{peer}_mib", "–") for peer in ("ort", "iree")]
        texts = [f"{size / MIB:.2f}" for size in sizes]
        table.add_row(row["model"], *texts, f"{reference[0]} / {reference[1]}")
    return table


def main(
    *,
    models: Path | None = None,
    only: Sequence[str] = (*REFERENCE, "densenet121"),
    count: Annotated[Path | None, argparse.SUPPRESS] = None,
) -> object:
    """Measure the models of a folder."""
    if count is not None:
        print(count_ort(count))
        return None
    paths = [models / f"{name}.onnx" for name in only]
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "allocation_peak.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", COUNTER, "-o", library], check=True)
        results = [measure(path, library) for path in paths if path.exists()]
    Console().print(table_of(results))
    return results


if __name__ == "__main__":
    run_command(main)
