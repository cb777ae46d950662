"""Compiles whole models for a GPU elsewhere, with inputs and expected results.

``python -m benchmarks.gpu_kept_models DIRECTORY --kind node --seconds 600``

`node` are ONNX's node tests, first one of each combination of ops, `small` models of the usual
kinds, whole and with ops that the host runs. ``python -m benchmarks.gpu_replay DIRECTORY`` runs
them on a machine with the GPU.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from time import monotonic
from typing import Annotated, Any

import numpy as np
import onnx

import braid
from benchmarks.command import run_command
from benchmarks.conformance.cases import Case, load_cases
from benchmarks.conformance.executors import imported_with
from benchmarks.conformance.expectations import read_expected
from benchmarks.kept_cases import Array, keep_case
from benchmarks.models.small import PINS, small_inputs, small_makers
from braid.support.errors import BraidError

CPU = "x86-64-v3"
"""The host's threads: most hosts of a GPU have more."""
NODE_SHARE, MODEL_SHARE = 2e-4, 1e-4
"""The distance from ONNX's or ONNX Runtime's results that is allowed, of the largest."""


@dataclass(frozen=True)
class Target:
    """The target that models are compiled for."""

    name: str
    architecture: str | None

    def compiled(self, source: Any, **options: Any) -> "braid.Model":
        """Return the model, to be saved, by these options of `braid.compile`."""
        return braid.compile(
            source, target=self.name, gpu_arch=self.architecture, cpu=CPU, load=False, **options
        )


Keep = Callable[[Path, Target], None]
"""Compiles a model and keeps it in a folder."""


def node_tests() -> Iterator[tuple[str, Keep]]:
    """ONNX's, by name."""
    for case in ordered_cases():
        yield case.name, partial(keep_node_test, case)


def ordered_cases() -> Iterator[Case]:
    """ONNX's core tests that braid passes, one of each combination of ops before the others."""
    known, lacking = load_cases(("node",)), read_expected()
    found = [case for case in known.values() if case.is_core and case.name not in lacking]
    first = {case.ops: case for case in reversed(found)}
    yield from first.values()
    chosen = {case.name for case in first.values()}
    rest = [case for case in found if case.name not in chosen]
    Random(0).shuffle(rest)
    yield from rest


def keep_node_test(case: Case, folder: Path, target: Target) -> None:
    """Keep the test's first data set."""
    inputs, expected = next(iter(case.data_sets))
    imported, rest = imported_with(case.model, inputs)
    model = target.compiled(imported.module, parameters=imported.parameters)
    keep_case(folder, f"node_{case.name}", model, rest, expected, _shares(expected, NODE_SHARE))


def _shares(expected: Sequence[Array], share: float) -> list[float]:
    return [0.0 if np.asarray(one).dtype.kind in "iub" else share for one in expected]


def small_models() -> Iterator[tuple[str, Keep]]:
    """Models of the usual kinds; those of PyTorch where it is installed."""
    made = small_makers(n_embd=64, n_head=4)
    for name, make in made.items():
        yield name, partial(keep_model, name, make, ())
        yield f"{name}_split", partial(keep_model, f"{name}_split", make, PINS[name])


def keep_model(
    name: str,
    make: Callable[[], onnx.ModelProto],
    pins: Sequence[str],
    folder: Path,
    target: Target,
) -> None:
    """Keep the model with the results of ONNX Runtime."""
    import onnxruntime

    proto = make()
    session: Any = onnxruntime.InferenceSession(proto.SerializeToString())
    inputs = small_inputs(session)
    names = [info.name for info in session.get_outputs()]
    expected = dict(zip(names, session.run(None, inputs), strict=True))
    model = target.compiled(proto, pin=pins)
    results = [np.asarray(expected[spec.name]) for spec in model.outputs]
    given = [inputs[spec.name] for spec in model.inputs]
    keep_case(folder, f"model_{name}", model, given, results, _shares(results, MODEL_SHARE))


KINDS = {"node": node_tests, "small": small_models}


def main(
    folder: Path,
    *,
    kind: Annotated[str, list(KINDS)] = "node",
    target: str = "gpu-h100",
    gpu_arch: str | None = None,
    seconds: Annotated[float, "after which none begins"] = 600.0,
) -> None:
    """Run as a program."""
    deadline = monotonic() + seconds
    chosen = Target(target, gpu_arch)
    count = 0
    for name, keep in KINDS[kind]():
        if monotonic() > deadline:
            break
        try:
            keep(folder, chosen)
            count += 1
        except BraidError as error:
            print(f"{name}: {str(error).splitlines()[0]}", flush=True)
    print(f"{count} cases")


if __name__ == "__main__":
    run_command(main)
