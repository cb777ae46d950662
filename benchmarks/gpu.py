"""Correctness and speed of braid on a GPU, in one call of less than 8 minutes.

``python -m benchmarks.gpu [--target gpu-h100] [--json benchmarks/results/gpu.json]`` compiles every
case for the present GPU, compares results with numpy (models: with ONNX Runtime), times them by the
device's own account, and prints a table next to PyTorch's times, if it is installed: cuBLAS and
cuDNN by its operators. Then ``compute-sanitizer``, where it is there, runs one small case of each
kind; and in the time that is left, ``torch.compile`` searches kernels of Triton.

Cases run in a separate process: a crash, a hang, or an error left in the driver costs one case. All
ends after ``--seconds``; what did not fit in is listed as left out.

``--dry`` runs small cases on ``gpu-emulated``; ``--small`` runs them on the target, such as through
a stand-in of the driver (``BRAID_CUDA_LIBRARY``). ``--compile`` compiles cases for the target, with
whole models, and runs nothing: that takes no GPU. With ``--artifacts DIRECTORY`` it keeps them
there, and a machine with a GPU runs them from there: it then needs ``braid-runtime``, PyTorch, and
no compiler.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any

import braid
from benchmarks import gpu_artifacts, gpu_peers
from benchmarks.arguments import count, no_case, output_file
from benchmarks.case_process import CaseLost, CaseProcess
from benchmarks.gpu_arrays import GpuArrays, random_inputs
from benchmarks.gpu_case import Case
from benchmarks.gpu_cases import cases
from benchmarks.gpu_run import Outcome, Settings, serve, source_of
from benchmarks.provenance import provenance
from braid.support.errors import BraidError

SECONDS = 450.0
CASE_SECONDS = 90.0
"""Seconds of one case at most; its model may have to be exported first."""
COMPILE_SECONDS = 180.0
"""Seconds of a whole model at most; ``torch.compile`` has to compile it first."""
RUNS = 20
CHECKS = ("memcheck", "racecheck", "synccheck")
PORTABLE = "x86-64-v3"
"""The host's CPU for code that another machine runs."""
SANITIZER = "compute-sanitizer"
LEFT_OUT = "left out: no time"


class Deadline:
    """The time at which all has to end, on the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self._begin = monotonic()
        self._end = self._begin + seconds

    @property
    def left(self) -> float:
        """Seconds, at least 0."""
        return max(self._end - monotonic(), 0.0)

    @property
    def gone(self) -> float:
        """Seconds since the begin."""
        return monotonic() - self._begin


def run_cases(
    chosen: Sequence[Case], process: CaseProcess, deadline: Deadline
) -> Iterator[Outcome]:
    """Their outcomes, one after the other."""
    for case in chosen:
        if not deadline.left:
            yield Outcome(case.kind, case.name, True, note=LEFT_OUT)
            continue
        try:
            outcome = process.answer((case.name, False), min(CASE_SECONDS, deadline.left))
        except CaseLost as lost:
            out_of_time = not deadline.left
            note = LEFT_OUT if out_of_time else str(lost)
            yield Outcome(case.kind, case.name, out_of_time, note=note, lost=True)
            continue
        yield outcome
        if outcome.lost:  # the driver keeps an error for as long as the process lives
            process.restart()


def add_compiled_peers(
    chosen: Sequence[Case], found: Sequence[Outcome], process: CaseProcess, deadline: Deadline
) -> Iterator[Outcome]:
    """Yield the outcomes that get a time of ``torch.compile`` before the deadline."""
    # Models come first, since users run these.
    pairs = sorted(zip(chosen, found, strict=True), key=lambda pair: pair[0].make is None)
    for case, outcome in pairs:
        if outcome.seconds is None or not deadline.left:
            continue
        limit = CASE_SECONDS if case.make is None else COMPILE_SECONDS
        try:
            again = process.answer((case.name, True), min(limit, deadline.left))
        except CaseLost as lost:
            outcome.note = f"{gpu_peers.COMPILED}: {lost}"
            yield outcome
            continue
        if again.peers:
            outcome.peers.update(again.peers)
            outcome.spreads = again.spreads | outcome.spreads
            yield outcome


def sanitize(settings: Settings, deadline: Deadline) -> Iterator[Outcome]:
    """One small case of each kind by compute-sanitizer, several at once."""
    tool = shutil.which(SANITIZER)
    first: dict[str, Case] = {}
    for case in cases(small=True):
        if case.make is None:
            first.setdefault(case.kind, case)
    if tool is None:
        return
    with (
        tempfile.TemporaryDirectory(prefix="braid-sanitizer-") as name,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        jobs: list[Future[Outcome]] = []
        for case in first.values():
            try:
                path = artifact_of(case, settings, Path(name))
            except BraidError as error:
                note = str(error).splitlines()[0]
                yield Outcome("sanitizer", case.name, False, note=note)
                continue
            program = [sys.executable, "-m", "benchmarks.gpu_once", str(path)]
            for check in CHECKS:
                command = [str(tool), "--tool", check, "--error-exitcode", "9", *program]
                jobs.append(pool.submit(sanitized, f"{check} {case.name}", command, deadline))
        yield from (job.result() for job in jobs)


def artifact_of(case: Case, settings: Settings, folder: Path) -> Path:
    """For a small case: its earlier artifact, or one that is compiled now."""
    kept = settings.artifacts and gpu_artifacts.path_of(settings.artifacts, case)
    if kept:
        return kept
    path = gpu_artifacts.path_of(folder, case)
    target, arch = settings.target, settings.arch
    braid.compile(source_of(case), target=target, gpu_arch=arch, load=False).save(path)
    return path


def sanitized(name: str, command: Sequence[str], deadline: Deadline) -> Outcome:
    """Return whether the tool finds nothing, in the time that is left."""
    if not deadline.left:
        return Outcome("sanitizer", name, True, note=LEFT_OUT)
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=deadline.left
        )
    except subprocess.TimeoutExpired:
        return Outcome("sanitizer", name, True, note=LEFT_OUT)
    last = (result.stdout + result.stderr).strip().splitlines()[-1:]
    note = "" if result.returncode == 0 else " ".join(last)
    return Outcome("sanitizer", name, result.returncode == 0, note=note)


def compile_cases(
    chosen: Sequence[Case], settings: Settings, deadline: Deadline
) -> Iterator[Outcome]:
    """Compile each case for the target, which need not be there, and keep the code."""
    for case in chosen:
        begin = monotonic()
        if not deadline.left:
            yield Outcome(case.kind, case.name, True, note=LEFT_OUT)
            continue
        try:
            source = source_of(case)
            target, arch = settings.target, settings.arch
            model = braid.compile(source, target=target, cpu=PORTABLE, gpu_arch=arch, load=False)
            if settings.artifacts is not None:
                inputs = [] if case.make is None else random_inputs(case, model)
                gpu_artifacts.save(settings.artifacts, case, model, source, inputs)
        except (BraidError, ImportError) as error:
            yield Outcome(case.kind, case.name, False, note=str(error).splitlines()[0])
            continue
        took = monotonic() - begin
        note = f"compiled in {took:.1f} s"
        yield Outcome(case.kind, case.name, True, compile_seconds=took, note=note)


def show(outcome: Outcome) -> None:
    """One line of the table."""
    took = f"{outcome.seconds * 1e6:10.1f} us" if outcome.seconds is not None else ""
    others = "  ".join(
        f"{name} {seconds * 1e6:.1f} us ({seconds / outcome.seconds:.2f}×)"
        for name, seconds in outcome.peers.items()
        if outcome.seconds
    )
    verdict = "right" if outcome.right else "WRONG" if outcome.seconds is not None else "-"
    verdict = "-" if outcome.note == LEFT_OUT else verdict
    print(
        f"{outcome.name:36} {verdict:6} {outcome.error:8.1e} {took:14} {outcome.rate:14} "
        f"{others} {outcome.note}",
        flush=True,
    )


def outcomes(
    settings: Settings,
    deadline: Deadline,
    compile_only: bool = False,
    begin: str = "",
    skipped: Sequence[str] = (),
) -> Iterator[list[Outcome]]:
    """All that is known after each step, of cases whose names begin so; each shows its line.

    The steps after the cases, without the `skipped` ones.
    """
    chosen = [case for case in cases(settings.small) if case.name.startswith(begin)]
    found: list[Outcome] = []
    if compile_only:
        small = (
            [] if settings.small or begin else [case for case in cases(small=True) if not case.make]
        )
        for outcome in compile_cases([*chosen, *small], settings, deadline):
            show(outcome)
            found.append(outcome)
            yield found
        return
    process = CaseProcess(serve, (settings,))
    process.start()
    for outcome in run_cases(chosen, process, deadline):
        show(outcome)
        found.append(outcome)
        yield found
    if not settings.small and SANITIZER not in skipped:
        for outcome in sanitize(settings, deadline):
            show(outcome)
            found.append(outcome)
            yield found
    if settings.peers and gpu_peers.COMPILED not in skipped:
        for outcome in add_compiled_peers(chosen, found[: len(chosen)], process, deadline):
            show(outcome)
            yield found
    process.end()


def main() -> int:
    """Run as a program; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="gpu-h100")
    parser.add_argument("--gpu-arch")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--compile", action="store_true", help="and run nothing")
    parser.add_argument("--artifacts", type=Path, metavar="DIRECTORY")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases that begin with it")
    parser.add_argument("--skip", default=[], nargs="*", choices=(SANITIZER, gpu_peers.COMPILED))
    parser.add_argument("--runs", type=count, default=RUNS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--json", type=output_file, help="written after each case")
    arguments = parser.parse_args()
    deadline = Deadline(arguments.seconds)
    small = arguments.dry or arguments.small
    names = [case.name for case in cases(small)]
    if not any(name.startswith(arguments.only) for name in names):
        parser.error(no_case(arguments.only, names))
    target = "gpu-emulated" if arguments.dry else arguments.target
    settings = Settings(
        target,
        arguments.gpu_arch,
        small,
        2 if small else arguments.runs,
        not small and gpu_peers.available(),
        arguments.artifacts,
    )
    facts = facts_of(settings) if settings.peers else {}
    print(*(f"{name} {value}" for name, value in facts.items()), sep=", ")
    found: list[Outcome] = []
    steps = outcomes(settings, deadline, arguments.compile, arguments.only, arguments.skip)
    for known in steps:
        found = known
        if arguments.json is not None:
            write(arguments.json, target, facts, deadline, found)
    wrong = [one.name for one in found if not one.right]
    left = sum(one.note == LEFT_OUT for one in found)
    print(
        f"{len(found)} cases on {target} in {deadline.gone:.0f} s; "
        f"left out: {left}; wrong: {wrong or 0}"
    )
    return 1 if wrong else 0


def facts_of(settings: Settings) -> dict[str, Any]:
    """Return the GPU, PyTorch's libraries, and the bandwidth in bytes a second at which both
    copy."""
    facts: dict[str, Any] = {**gpu_peers.describe(gpu_peers.import_torch(settings.exact))}
    return facts | {"copy_bandwidth": GpuArrays(settings.exact).copy_bandwidth()}


def write(
    path: Path, target: str, facts: dict[str, Any], deadline: Deadline, found: Sequence[Outcome]
) -> None:
    """Write the record of a run so far."""
    record: dict[str, Any] = {"target": target, "seconds": deadline.gone, **facts}
    record |= provenance(("onnxruntime",))
    record["cases"] = [asdict(one) for one in found]
    path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
