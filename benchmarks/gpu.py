"""Correctness and speed of braid on a GPU, in one call of less than 8 minutes.

``python -m benchmarks.gpu [--target gpu-h100] [--json benchmarks/results/gpu.json]`` compiles every
case for the GPU that is there, compares results with numpy (models: with ONNX Runtime), times them
by the device's own account, and prints a table beside what PyTorch has, where it is installed:
cuBLAS and cuDNN by its operators, Triton by ``torch.compile``. Then ``compute-sanitizer``, where it
is there, runs one small case of each kind. What does not fit into ``--seconds`` is listed as left
out.

``--dry`` runs small cases on ``gpu-emulated``; ``--small`` runs them on the target, such as through
a stand-in of the driver (``BRAID_CUDA_LIBRARY``).
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import braid
from benchmarks import gpu_peers
from benchmarks.gpu_cases import DTYPES, Case, cases
from braid.frontends.mlir import parse_mlir
from braid.support.errors import BraidError
from braid.targets.machines.load import load_target
from braid.universe import make_context

Array = NDArray[Any]

SECONDS = 440.0
RUNS = 20
SAMPLED = 16
"""Rows of a result that are compared."""
TOLERANCES = {"f32": 1e-5, "f16": 4e-3, "bf16": 3e-2, "i8": 0.0}


@dataclass
class Outcome:
    """What became of a case: its largest error beside what is allowed, and times in seconds."""

    kind: str
    name: str
    right: bool = False
    error: float = 0.0
    seconds: float | None = None
    rate: str = ""
    compile_seconds: float = 0.0
    peers: dict[str, float] = field(default_factory=dict[str, float])
    note: str = ""


# ---- Running one ----


def run_case(case: Case, target: str, arch: str | None, runs: int, peers: bool) -> Outcome:
    """Compiles, compares and times it; what is wrong is its note."""
    outcome = Outcome(case.kind, case.name)
    try:
        begin = time.perf_counter()
        source = case.make() if case.make else parse_mlir(make_context(), case.text, "m").module
        model = braid.compile(source, target=target, gpu_arch=arch)
        outcome.compile_seconds = time.perf_counter() - begin
        inputs = inputs_of(case, model)
        results = model.run(inputs)
        outcome.error, allowed = compare(case, model, source, inputs, results)
        outcome.right = outcome.error <= allowed
        outcome.note = "" if outcome.right else f"allowed {allowed:g}"
        outcome.seconds = least_seconds(model, inputs, runs, whole=case.make is not None)
        outcome.rate = rate_of(case, outcome.seconds)
        if peers:
            outcome.peers = gpu_peers.seconds(case.kind, inputs, runs)
    except BraidError as error:
        outcome.note = str(error).splitlines()[0]
    return outcome


def inputs_of(case: Case, model: braid.Model) -> list[Array]:
    """Random, of the kind that networks have."""
    rng = np.random.default_rng(0)
    found: list[Array] = []
    for spec in model.inputs:
        dtype = DTYPES[case.element] if case.make is None else np.dtype(spec.dtype)
        if np.dtype(dtype).kind == "i":
            found.append(rng.integers(-8 if case.make is None else 0, 8, spec.shape).astype(dtype))
        else:
            found.append(rng.standard_normal(spec.shape, np.float32).astype(dtype))
    return found


def compare(
    case: Case, model: braid.Model, source: Any, inputs: Sequence[Array], results: Sequence[Array]
) -> tuple[float, float]:
    """The largest error beside the largest number, of sampled rows; and what is allowed."""
    if case.make is not None:
        import onnxruntime

        session: Any = onnxruntime.InferenceSession(source.SerializeToString())
        names = [spec.name for spec in model.inputs]
        wanted = session.run(None, dict(zip(names, inputs, strict=True)))
        pairs = list(zip(results, wanted, strict=True))
        return max(_error(np.asarray(a), np.asarray(b)) for a, b in pairs), 1e-4
    assert case.expected is not None
    count = len(inputs[0])
    rows = np.unique(np.linspace(0, count - 1, min(count, SAMPLED)).astype(int))
    if case.kind in ("conv", "attention"):
        rows = rows[:1]
    return _error(results[0][rows], case.expected(inputs, rows)), TOLERANCES[case.element]


def _error(found: Array, expected: Array) -> float:
    difference = np.abs(found.astype(np.float64) - expected).max(initial=0.0)
    return float(difference / max(np.abs(expected).max(initial=0.0), 1e-30))


def least_seconds(model: braid.Model, inputs: list[Array], runs: int, whole: bool) -> float:
    """Of a run: by the device's own account; of a `whole` model, and without devices, by the clock.

    What a whole model takes has copies from and to the host in it.
    """
    least = float("inf")
    for _ in range(runs):
        before, begin = sum(model.launched_seconds().values()), time.perf_counter()
        model.run(inputs)
        own = sum(model.launched_seconds().values()) - before
        least = min(least, own if own > 0 and not whole else time.perf_counter() - begin)
    return least


def rate_of(case: Case, seconds: float) -> str:
    """In the unit that limits it."""
    if case.work:
        return f"{case.work / seconds * 1e-12:.3g} TFLOP/s"
    return f"{case.moved / seconds * 1e-9:.3g} GB/s" if case.moved else ""


# ---- All of them ----


def sanitize(target: str, arch: str | None) -> Iterator[Outcome]:
    """One small case of each kind by compute-sanitizer."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        return
    done: set[str] = set()
    for case in cases(small=True):
        if case.kind in done or case.make is not None:
            continue
        done.add(case.kind)
        with tempfile.TemporaryDirectory(prefix="braid-sanitizer-") as name:
            path = Path(name) / "model.braid"
            module = parse_mlir(make_context(), case.text, "m").module
            braid.compile(module, target=target, gpu_arch=arch, load=False).save(path)
            program = [sys.executable, "-m", "braid.tools.cli", "run", str(path), "--random"]
            for check in ("memcheck", "racecheck", "synccheck"):
                command = [tool, "--tool", check, "--error-exitcode", "9", *program]
                result = subprocess.run(command, capture_output=True, text=True, check=False)
                last = (result.stdout + result.stderr).strip().splitlines()[-1:]
                note = "" if result.returncode == 0 else " ".join(last)
                yield Outcome(
                    "sanitizer", f"{check} {case.name}", result.returncode == 0, note=note
                )


def show(outcome: Outcome) -> None:
    """One line of the table."""
    took = f"{outcome.seconds * 1e6:10.1f} us" if outcome.seconds is not None else ""
    others = "  ".join(
        f"{name} {seconds * 1e6:.1f} us ({seconds / outcome.seconds:.2f}×)"
        for name, seconds in outcome.peers.items()
        if outcome.seconds
    )
    verdict = "right" if outcome.right else "WRONG" if outcome.seconds is not None else "-"
    print(
        f"{outcome.name:32} {verdict:6} {outcome.error:8.1e} {took:14} {outcome.rate:14} "
        f"{others} {outcome.note}",
        flush=True,
    )


def main() -> int:
    """Run as a program; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="gpu-h100")
    parser.add_argument("--gpu-arch")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    target = "gpu-emulated" if arguments.dry else arguments.target
    small = arguments.dry or arguments.small
    machine = load_target(target).device("gpu:0").machine
    begin = time.perf_counter()
    peers = not small and gpu_peers.available()
    found: list[Outcome] = []
    for case in cases(small):
        if time.perf_counter() - begin > arguments.seconds:
            outcome = Outcome(case.kind, case.name, True, note="left out: no time")
        else:
            runs = 2 if small else arguments.runs
            outcome = run_case(case, target, arguments.gpu_arch, runs, peers)
        found.append(outcome)
        show(outcome)
    if not small:
        for outcome in sanitize(target, arguments.gpu_arch):
            found.append(outcome)
            show(outcome)
    took = time.perf_counter() - begin
    wrong = [one.name for one in found if not one.right]
    print(f"{len(found)} cases on {target} ({machine.name}) in {took:.0f} s; wrong: {wrong or 0}")
    if arguments.json is not None:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        record = {"target": target, "seconds": took, "cases": [asdict(one) for one in found]}
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
