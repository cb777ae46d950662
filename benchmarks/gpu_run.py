"""Runs one case of ``benchmarks.gpu``: compiles it, compares results, and times them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

import braid
from benchmarks import gpu_peers
from benchmarks.case_process import READY
from benchmarks.gpu_case import Array, Case
from benchmarks.gpu_cases import cases
from braid.frontends.mlir import parse_mlir
from braid.support.errors import BraidError
from braid.universe import make_context

SAMPLED = 16
"""Rows of a result that are compared."""
TOLERANCES = {"f32": 1e-5, "f16": 4e-3, "bf16": 3e-2, "i8": 0.0}


@dataclass
class Outcome:
    """What became of a case: its largest error beside what is allowed, and times in seconds.

    `seconds` are the device's own, or by the clock where it has no account; `call_seconds` are by
    the clock, with copies from and to the host, and what the host does in between. `lost` is set
    where there are no results.
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
    note: str = ""
    lost: bool = False


@dataclass(frozen=True)
class Settings:
    """What cases are run on, and how often each is timed."""

    target: str
    arch: str | None
    small: bool
    runs: int
    peers: bool

    @property
    def exact(self) -> bool:
        """Whether products of f32 may not be rounded to tf32."""
        return "+tf32" not in (self.arch or "")


def serve(channel: Connection, settings: Settings) -> None:
    """Answers names of cases with outcomes, for a `CaseProcess`; True for times of peers alone."""
    known = {case.name: case for case in cases(settings.small)}
    channel.send(READY)
    while (request := channel.recv()) is not None:
        name, compiled = request
        if compiled:
            channel.send(compiled_peers(known[name], settings))
        else:
            channel.send(run_case(known[name], settings))


def run_case(case: Case, settings: Settings) -> Outcome:
    """Compiles, compares and times it; what is wrong is its note."""
    outcome = Outcome(case.kind, case.name)
    try:
        begin = time.perf_counter()
        source = source_of(case)
        model = braid.compile(source, target=settings.target, gpu_arch=settings.arch)
        outcome.compile_seconds = time.perf_counter() - begin
        inputs = inputs_of(case, [(spec.shape, spec.dtype) for spec in model.inputs])
        results = model.run(inputs)
        outcome.error, allowed = compare(case, model, source, inputs, results)
        outcome.right = outcome.error <= allowed
        outcome.note = "" if outcome.right else f"allowed {allowed:g}"
        outcome.seconds, outcome.call_seconds = least_seconds(model, inputs, settings.runs)
        outcome.rate = rate_of(case, outcome.seconds)
        if settings.peers:
            runs, exact = settings.runs, settings.exact
            outcome.peers = gpu_peers.library_seconds(case.kind, inputs, runs, exact)
    except BraidError as error:
        outcome.note = str(error).splitlines()[0]
        outcome.lost = True
    return outcome


def compiled_peers(case: Case, settings: Settings) -> dict[str, float]:
    """What ``torch.compile`` takes, which searches kernels of Triton for as long as it likes."""
    if case.make is not None:
        return gpu_peers.model_seconds(case.name, settings.runs, settings.exact)
    inputs = inputs_of(case, [(shape, None) for shape in case.shapes])
    return gpu_peers.compiled_seconds(case.kind, inputs, settings.runs, settings.exact)


def source_of(case: Case) -> Any:
    """The model: of ONNX, or a module."""
    return case.make() if case.make else parse_mlir(make_context(), case.text, "m").module


def inputs_of(case: Case, specs: Sequence[tuple[Sequence[int], Any]]) -> list[Array]:
    """Random, of the kind that networks have; indices are those of rows."""
    rng = np.random.default_rng(0)
    found: list[Array] = []
    for number, (shape, own) in enumerate(specs):
        dtype = np.dtype(own if case.make else case.dtype(number))
        if number == case.indices:
            found.append(rng.integers(0, case.shapes[0][0], shape).astype(dtype))
        elif dtype.kind == "i":
            low = 0 if case.make else -8
            found.append(rng.integers(low, 8, shape).astype(dtype))
        else:
            found.append(rng.standard_normal(shape, np.float32).astype(dtype))
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
    count = len(results[0])
    rows = np.unique(np.linspace(0, count - 1, min(count, case.sampled or SAMPLED)).astype(int))
    return _error(results[0][rows], case.expected(inputs, rows)), TOLERANCES[case.element]


def _error(found: Array, expected: Array) -> float:
    difference = np.abs(found.astype(np.float64) - expected).max(initial=0.0)
    return float(difference / max(np.abs(expected).max(initial=0.0), 1e-30))


def least_seconds(model: braid.Model, inputs: list[Array], runs: int) -> tuple[float, float]:
    """Of a run, by the device's own account, and by the clock; twice the latter without devices."""
    device = clock = float("inf")
    for _ in range(runs):
        before, begin = sum(model.launched_seconds().values()), time.perf_counter()
        model.run(inputs)
        clock = min(clock, time.perf_counter() - begin)
        own = sum(model.launched_seconds().values()) - before
        device = min(device, own if own > 0 else float("inf"))
    return (device if device < float("inf") else clock), clock


def rate_of(case: Case, seconds: float) -> str:
    """In the unit that limits it."""
    if case.work:
        return f"{case.work / seconds * 1e-12:.3g} TFLOP/s"
    return f"{case.moved / seconds * 1e-9:.3g} GB/s" if case.moved else ""
