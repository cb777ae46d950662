"""Programs that are written for ONNX Runtime, with its module and with `braid.onnxruntime`.

``python -m benchmarks.sessions --path FOLDER… --json FILE [PROGRAM…]`` runs programs of packages in
the folders, each in separate processes, in turns with both modules as ``onnxruntime``; the packages
are not changed. Results are compared, texts and labels exactly and numbers within a tolerance.
Times of a call are the least median of two processes. The exit status is 1 where a program fails,
or results differ.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arguments import count, output_file
from benchmarks.provenance import provenance
from benchmarks.session_programs import PROGRAMS

ENGINES = ("onnxruntime", "braid.onnxruntime")
TOLERANCE = 1e-3
"""Of numbers, relative to the largest of an array, or to 1."""


@dataclass(frozen=True)
class Row:
    """A program: seconds of a call, until its sessions are there, and how far results are apart.

    `…_cpu` are seconds of all threads of the process, in which other programs beside count less.
    `again` is in a later process, and so with a compiled model that was kept.
    """

    program: str
    ort: float
    braid: float
    ort_cpu: float
    braid_cpu: float
    ort_begin: float
    braid_begin: float
    braid_begin_again: float
    error: float
    differs: str = ""


def plain(value: object) -> Any:
    """Return a result as JSON has it."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value if isinstance(value, str | int | float | bool | type(None)) else str(value)


def apart(one: Any, other: Any, where: str = "result") -> tuple[float, str]:
    """Return the largest distance of numbers, and where results differ; "" where they do not."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        pairs = [(one[key], other[key], f"{where}[{key!r}]") for key in one]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(*pair, f"{where}[{i}]") for i, pair in enumerate(zip(one, other, strict=True))]
    elif isinstance(one, float) and isinstance(other, float | int):
        distance = abs(one - other) / max(1.0, abs(one))
        return distance, "" if distance <= TOLERANCE else f"{where}: {one!r} and {other!r}"
    else:
        return 0.0, "" if one == other else f"{where}: {str(one)[:80]} and {str(other)[:80]}"
    found = [apart(*pair) for pair in pairs]
    texts = [text for _, text in found if text]
    return max((distance for distance, _ in found), default=0.0), texts[0] if texts else ""


def run_here(program: str, engine: str, calls: int) -> dict[str, Any]:
    """Run a program in this process with a module in the place of `onnxruntime`."""
    if engine != "onnxruntime":
        sys.modules["onnxruntime"] = import_module(engine)
    begin = time.perf_counter()
    call = PROGRAMS[program]()
    begun = time.perf_counter() - begin
    result = plain(call())
    times: list[float] = []
    spent = time.process_time()
    for _ in range(calls):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    spent = (time.process_time() - spent) / calls
    runs = sys.modules["onnxruntime"].InferenceSession.__module__.partition(".")[0]
    return {
        "begin": begun,
        "seconds": statistics.median(times),
        "cpu_seconds": spent,
        "result": result,
        "module": runs,
    }


def run_in_process(program: str, engine: str, calls: int, paths: Sequence[Path]) -> dict[str, Any]:
    """Run a program in a process of its own. Raises RuntimeError where it fails."""
    inside = [sys.executable, "-m", "benchmarks.sessions", "--inside", engine]
    search = os.pathsep.join([*map(str, paths), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [*inside, "--calls", str(calls), program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": search},
    )
    if done.returncode:
        raise RuntimeError("\n".join(done.stderr.splitlines()[-3:]))
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["module"] == engine.partition(".")[0], found["module"]
    return found


def measure(program: str, calls: int, paths: Sequence[Path]) -> Row:
    """Run a program with both modules, twice each in turns. Raises RuntimeError as it fails."""
    found = {engine: [run_in_process(program, engine, calls, paths)] for engine in ENGINES}
    for engine in ENGINES:
        found[engine].append(run_in_process(program, engine, calls, paths))
    ort, ours = (found[engine] for engine in ENGINES)
    error, differs = apart(ort[0]["result"], ours[0]["result"])
    return Row(
        program,
        min(each["seconds"] for each in ort),
        min(each["seconds"] for each in ours),
        min(each["cpu_seconds"] for each in ort),
        min(each["cpu_seconds"] for each in ours),
        ort[1]["begin"],
        ours[0]["begin"],
        ours[1]["begin"],
        error,
        differs,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--path", type=Path, nargs="+", default=[], help="folders with packages")
    parser.add_argument("--calls", type=count, default=20)
    parser.add_argument("--json", type=output_file)
    parser.add_argument("--inside", choices=ENGINES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.programs) - PROGRAMS.keys():
        parser.error(f"no program {sorted(unknown)[0]!r}, expected some of {', '.join(PROGRAMS)}")
    if options.inside:
        print(json.dumps(run_here(options.programs[0], options.inside, options.calls)))
        return 0
    rows: list[Row] = []
    failed: dict[str, str] = {}
    for program in options.programs or PROGRAMS:
        try:
            row = measure(program, options.calls, [path.resolve() for path in options.path])
        except RuntimeError as error:
            failed[program] = str(error)
            print(f"{program:20} fails: {error}", flush=True)
            continue
        rows.append(row)
        print(
            f"{program:20} {row.braid * 1e3:9.2f} ms, ONNX Runtime {row.ort * 1e3:9.2f} ms, "
            f"CPU {row.braid_cpu * 1e3:.2f} ms and {row.ort_cpu * 1e3:.2f} ms, "
            f"begins in {row.braid_begin:.2f} s, again in {row.braid_begin_again:.2f} s "
            f"({row.ort_begin:.2f} s), {row.differs or f'equal, error {row.error:.1e}'}",
            flush=True,
        )
    if options.json:
        report = {
            **provenance(["onnxruntime"]),
            "programs": [asdict(row) for row in rows],
            "failed": failed,
        }
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return int(bool(failed) or any(row.differs for row in rows))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception:
        traceback.print_exc()
        sys.exit(2)
