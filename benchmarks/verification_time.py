"""Verification's share of compile time: for models of the tests, small ones, and files.

It is the time of all checks of a model: ONNX's schemas and shape inference for each node, names,
and the verification of the module.

``python -m benchmarks.verification_time --count 300 --json o.json`` compiles a fixed sample of the
cases of ONNX's backend tests, and with them the reduced models of `models.small` and the weightless
ones of `models.light` that are named: each without a cache, and with its kernels cached. Seconds
are those that the process waits.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Annotated, Any
from unittest.mock import patch

import onnx

import braid
from benchmarks.arguments import count
from benchmarks.command import run_command
from benchmarks.conformance.cases import KINDS, load_cases
from benchmarks.models.hand_written import make_loop_if
from benchmarks.models.light import make_light
from benchmarks.models.small import small_makers
from benchmarks.provenance import provenance
from braid.driver import read_source
from braid.frontends.onnx import graph as onnx_graph
from braid.frontends.onnx import model as onnx_model
from braid.support.errors import BraidError

LIMIT = "BRAID_CACHE_LIMIT"
"""The variable that limits the bytes of cached models, not of kernels."""


@dataclass(frozen=True)
class Measurement:
    """Seconds of one compilation, and the seconds of it in which the model is checked."""

    model: str
    cache: str
    nodes: int
    seconds: float
    verifying: float

    @property
    def share(self) -> float:
        """Verification's seconds divided by all seconds."""
        return self.verifying / self.seconds


CHECKS: tuple[tuple[ModuleType, str], ...] = (
    (read_source, "verify_module"),
    (read_source, "refuse_undefined"),
    (onnx_model, "missing_nodes"),
    (onnx_model, "check_structure"),
    (onnx_graph, "check_given"),
    (onnx_graph, "check_made"),
    (onnx_graph, "check_inference"),
)
"""The functions that check a model, where they are called; none of them calls another one."""


@contextmanager
def timed_verification() -> Generator[list[float]]:
    """Yield the seconds of each call of a check."""
    seconds: list[float] = []
    with ExitStack() as patches:
        for module, name in CHECKS:
            timed = _timed(getattr(module, name), seconds)
            patches.enter_context(patch.object(module, name, timed))
        yield seconds


def _timed(original: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
    """Return a function that appends the seconds of its calls."""

    def timed(*arguments: Any, **named: Any) -> Any:
        begin = time.perf_counter()
        try:
            return original(*arguments, **named)
        finally:
            seconds.append(time.perf_counter() - begin)

    return timed


def compiled(name: str, model: onnx.ModelProto, cache: str) -> Measurement:
    """Compile the model once."""
    with timed_verification() as verifying:
        begin = time.perf_counter()
        braid.compile(model, cache=cache != "off")
        seconds = time.perf_counter() - begin
    assert verifying, "a model is verified"
    return Measurement(name, cache, len(model.graph.node), seconds, sum(verifying))


def measure(name: str, model: onnx.ModelProto) -> list[Measurement]:
    """Compile the model without a cache, and with one that has its kernels."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BRAID_CACHE_DIR"], os.environ[LIMIT] = folder, "0"
        without = compiled(name, model, "off")
        compiled(name, model, "on")
        return [without, compiled(name, model, "on")]


def models(sample: int, light: list[str]) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield a fixed sample of the backend tests, the small models, and light ones by name."""
    for name, make in small_makers().items():
        yield name, make()
    for name in light:
        yield name, make_light(name)
    cases = load_cases(KINDS)
    known = [name for name, case in sorted(cases.items()) if case.is_static]
    for place in range(sample):
        name = known[place * len(known) // sample]
        yield name, cases[name].model


def summary(rows: list[Measurement]) -> dict[str, dict[str, float]]:
    """By cache: models, the share over all seconds, and the distribution of shares."""
    found: dict[str, dict[str, float]] = {}
    for cache in ("off", "on"):
        own = [row for row in rows if row.cache == cache]
        shares = sorted(row.share for row in own)
        found[cache] = {
            "models": len(own),
            "share": sum(row.verifying for row in own) / sum(row.seconds for row in own),
            "median": statistics.median(shares),
            "p95": shares[int(0.95 * len(shares))],
            "most": shares[-1],
        }
    return found


def main(
    *,
    count: Annotated[int, count, "how many backend tests"] = 300,
    light: Annotated[Sequence[str], "models of benchmarks.models.light"] = (),
) -> object:
    """Parse the arguments, measure, print the table."""
    rows: list[Measurement] = []
    measure("untimed", make_loop_if())  # modules are imported
    try:
        for number, (name, model) in enumerate(models(count, light), 1):
            try:
                rows += measure(name, model)
            except BraidError as error:
                print(f"{name}: {error.message}", file=sys.stderr)
            print(f"{number}: {name}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("stopped; what is measured is kept", file=sys.stderr)
    if not rows:
        sys.exit("no model was measured")
    results = summary(rows)
    for cache, figures in results.items():
        print(cache, ", ".join(f"{key} {value:.4g}" for key, value in figures.items()))
    return {
        "provenance": provenance(["onnx", "xdsl"]),
        "summary": results,
        "measurements": [{**asdict(row), "share": row.share} for row in rows],
    }


if __name__ == "__main__":
    run_command(main)
