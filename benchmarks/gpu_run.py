"""Runs one case of ``benchmarks.gpu``: compiles it, compares results, and times them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import braid
from benchmarks import gpu_artifacts
from benchmarks.case_process import READY
from benchmarks.gpu_arrays import (
    OWN,
    Arrays,
    GpuArrays,
    HostArrays,
    clock_seconds,
    largest_error,
    random_inputs,
)
from benchmarks.gpu_case import Case
from benchmarks.gpu_cases import cases
from braid.runtime.binding import bind_inputs
from braid.support.errors import BraidError

MODEL_TOLERANCES = {"f32": 1e-4, "f16": 1e-2}
"""The tolerance of whole models, relative to the largest number."""
TOLERANCES = {"f32": 1e-5, "f16": 4e-3, "bf16": 3e-2, "i8": 0.0}


@dataclass
class Outcome:
    """The outcome of a case: its largest error with the tolerance, and times in seconds.

    `seconds` are medians, by the device's own account, or by the clock without one, and so are
    those of `peers`; `spreads` are the distances of their quartiles. `call_seconds` are
    a call's by the clock, from Python, with what is in caches. `lost` is set where there are no
    results.
    """

    kind: str
    name: str
    right: bool = False
    error: float = 0.0
    seconds: float | None = None
    call_seconds: float | None = None
    rate: str = ""
    compile_seconds: float = 0.0
    peers: dict[str, float] = field(default_factory=dict[str, float])
    spreads: dict[str, float] = field(default_factory=dict[str, float])
    note: str = ""
    lost: bool = False


@dataclass(frozen=True)
class Settings:
    """The settings of a run: what cases are run on, and how often each is timed.

    Their artifacts lie in the folder `artifacts`, if there is one; else they are compiled. `peers`
    says that PyTorch and a GPU are there.
    """

    target: str
    arch: str | None
    small: bool
    runs: int
    peers: bool
    artifacts: Path | None = None

    @property
    def exact(self) -> bool:
        """True if products of f32 may not be rounded to tf32."""
        return "+tf32" not in (self.arch or "")


def serve(channel: Connection, settings: Settings) -> None:
    """Answers names of cases with outcomes, for a `CaseProcess`.

    Each name says whether the peer is the result of ``torch.compile``.
    """
    known = {case.name: case for case in cases(settings.small)}
    channel.send(READY)
    while (request := channel.recv()) is not None:
        name, compiled = request
        channel.send(run_case(known[name], settings, compiled))


def run_case(case: Case, settings: Settings, compiled_peers: bool = False) -> Outcome:
    """Compiles or loads it, compares results, and times it; an error is its note."""
    outcome = Outcome(case.kind, case.name)
    on_gpu = settings.peers and not case.on_host
    arrays: Arrays = GpuArrays(settings.exact) if on_gpu else HostArrays()
    try:
        begin = time.perf_counter()
        model, source = model_of(case, settings)
        outcome.compile_seconds = time.perf_counter() - begin
        inputs = inputs_of(case, model, arrays, settings)
        run = bound(model, inputs, arrays)
        results = run()
        outcome.error, allowed = compare(case, settings, source, arrays, inputs, results)
        outcome.right = outcome.error <= allowed
        outcome.note = "" if outcome.right else f"allowed {allowed:g}"
        peers = arrays.peers(case, inputs, compiled_peers)
        add_times(outcome, arrays.seconds(model, run, peers, settings.runs))
        outcome.call_seconds = median(clock_seconds(run) for _ in range(settings.runs))
        outcome.rate = rate_of(case, outcome.seconds or 0.0)
    except BraidError as error:
        outcome.note = str(error).splitlines()[0]
        outcome.lost = True
    return outcome


def model_of(case: Case, settings: Settings) -> tuple[braid.Model, Any]:
    """Return the model, and its source if it was compiled now."""
    if settings.artifacts is not None:
        return gpu_artifacts.load(settings.artifacts, case), None
    source = source_of(case)
    return braid.compile(source, target=settings.target, gpu_arch=settings.arch), source


def source_of(case: Case) -> Any:
    """Return the source of the model: ONNX, or a module."""
    if case.make is not None:
        return case.make()
    # With artifacts only, there is no compiler.
    from braid.frontends.mlir import parse_mlir
    from braid.universe import make_context

    return parse_mlir(make_context(), case.text, "m").module


def bound(model: braid.Model, inputs: Sequence[Any], arrays: Arrays) -> Callable[[], list[Any]]:
    """Return a run of the model on these inputs, which writes results to `arrays` if they exist."""
    given, out = bind_inputs(model.inputs, inputs, {}), arrays.results(model)
    return lambda: model.run(given, out)


def inputs_of(case: Case, model: braid.Model, arrays: Arrays, settings: Settings) -> list[Any]:
    """On the GPU, if there is PyTorch; inputs of whole models are kept with artifacts."""
    if case.make is None:
        return arrays.inputs(case, model)
    if settings.artifacts is not None:
        made = gpu_artifacts.kept_arrays(settings.artifacts, case, "input", len(model.inputs))
    else:
        made = random_inputs(case, model)
    return [arrays.given(array) for array in made]


def compare(
    case: Case,
    settings: Settings,
    source: Any,
    arrays: Arrays,
    inputs: Sequence[Any],
    results: Sequence[Any],
) -> tuple[float, float]:
    """Return the largest error divided by the largest number, and the tolerance."""
    if case.make is None:
        return arrays.error(case, inputs, results[0]), TOLERANCES[case.element]
    found = [gpu_artifacts.sampled_rows(arrays.taken(result)) for result in results]
    if settings.artifacts is not None:
        wanted = gpu_artifacts.kept_arrays(settings.artifacts, case, "result", len(found))
    else:
        given = [arrays.taken(one) for one in inputs]
        expected = gpu_artifacts.expected_of_model(case, source, given)
        wanted = [gpu_artifacts.sampled_rows(one) for one in expected]
    return max(largest_error(a, b) for a, b in zip(found, wanted, strict=True)), MODEL_TOLERANCES[
        case.element
    ]


def add_times(outcome: Outcome, found: Mapping[str, Sequence[float]]) -> None:
    """Add the median and the spread of each timed run."""
    for name, seconds in found.items():
        middle = median(seconds)
        if name == OWN:
            outcome.seconds = middle
        else:
            outcome.peers[name] = middle
        if len(seconds) > 1:
            low, _, high = quantiles(seconds, n=4)
            outcome.spreads[name] = (high - low) / middle


def rate_of(case: Case, seconds: float) -> str:
    """In the unit that limits it."""
    if case.work and seconds:
        return f"{case.work / seconds * 1e-12:.3g} TFLOP/s"
    return f"{case.moved / seconds * 1e-9:.3g} GB/s" if case.moved and seconds else ""
