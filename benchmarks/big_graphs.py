"""Measure the time and memory of `braid-opt -p canonicalize,cse` on graphs of very many ops.

``python -m benchmarks.big_graphs --sizes 10000 100000 --json o.json`` measures the whole process:
start, reading, verifying, both passes with verification behind them, and writing. `flat-generic`
and the like are the same modules in generic form. `--timing` adds the table of `braid-opt`.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from benchmarks.command import run_command
from benchmarks.generators.big_modules import FAMILIES

_COLUMNS = "{:<18} {:>8} {:>9} {:>9} {:>9} {:>8} {:>8}"
_BRAID_OPT = [sys.executable, "-m", "braid.tools.braid_opt"]


@dataclass(frozen=True)
class Measurement:
    """One run of `braid-opt`; `ops` counts those with results, `seconds` are of wall time."""

    family: str
    ops: int
    seconds: float
    cpu_seconds: float
    ops_per_second: float
    peak_mib: float
    input_mib: float


def measure(family: str, size: int, directory: Path, timing: bool) -> Measurement:
    """Write the module, run `braid-opt` on it, and check that nothing got lost."""
    name, _, form = family.partition("-")
    source = directory / "source.mlir"
    source.write_text(FAMILIES[name](size), encoding="utf-8")
    if form:
        generic = directory / "generic.mlir"
        _run([*_BRAID_OPT, "--print-op-generic", str(source), "-o", str(generic)])
        source = generic
    output = directory / "output.mlir"
    extra = ["--timing"] if timing else []
    began = time.perf_counter()
    used = _run([*_BRAID_OPT, str(source), "-p", "canonicalize,cse", "-o", str(output), *extra])
    seconds = time.perf_counter() - began
    ops, left = _count_ops(source), _count_ops(output)
    if ops != left:
        raise RuntimeError(f"{family}: {ops} ops went in, {left} came out")
    return Measurement(
        family=family,
        ops=ops,
        seconds=seconds,
        cpu_seconds=used.ru_utime + used.ru_stime,
        ops_per_second=ops / seconds,
        peak_mib=used.ru_maxrss / 1024,
        input_mib=source.stat().st_size / 2**20,
    )


def _count_ops(file: Path) -> int:
    """Ops with results: every one but terminators and functions."""
    with file.open(encoding="utf-8") as lines:
        return sum(line.lstrip().startswith("%") for line in lines)


def _run(command: list[str]) -> resource.struct_rusage:
    """Run to the end; what that took."""
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage


CHOICES = [*FAMILIES, *(f"{name}-generic" for name in FAMILIES)]


def main(
    *,
    families: Annotated[Sequence[str], CHOICES] = tuple(FAMILIES),
    sizes: Sequence[int] = (10_000, 100_000),
    timing: bool = False,
) -> object:
    """Parse the arguments, measure, print the table."""
    print(_COLUMNS.format("family", "ops", "seconds", "CPU s", "ops/s", "peak MiB", "file MiB"))
    measured: list[Measurement] = []
    for size in sizes:
        for family in families:
            with tempfile.TemporaryDirectory() as directory:
                m = measure(family, size, Path(directory), timing)
            measured.append(m)
            numbers = (f"{m.seconds:.2f}", f"{m.cpu_seconds:.2f}", f"{m.ops_per_second:.0f}")
            mebibytes = (f"{m.peak_mib:.0f}", f"{m.input_mib:.1f}")
            print(_COLUMNS.format(m.family, m.ops, *numbers, *mebibytes), flush=True)
    return measured


if __name__ == "__main__":
    run_command(main)
