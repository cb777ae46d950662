"""Compiling single kernels for a device and running them there, in the process that may crash."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

import braid
from braid.dialects.braid.relayout import Array
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.context import make_context
from braid.support.diagnostics import handle_diagnostics
from braid.support.errors import BraidError
from braid.support.option_names import option_text
from braid.targets.backends import backend
from braid.targets.machines.resolve import target_of
from braid.targets.machines.target import Target
from braid.tuning.synthetic_inputs import synthetic_array

_KEPT = 16
"""Models that stay loaded, since candidates are timed in turns."""


@dataclass(frozen=True)
class DeviceRun:
    """A request to run a module, the text after `outline-kernels`, several times on `device`.

    `operands` are those of its `@main` as stored; without them inputs are synthetic.
    """

    text: str
    device: str
    runs: int = 1
    operands: tuple[Array, ...] | None = None


@dataclass(frozen=True)
class DeviceResults:
    """The seconds of each run by the device's account, and the results of the last."""

    seconds: tuple[float, ...]
    results: tuple[Array, ...]


def run_on_device(request: DeviceRun) -> DeviceResults | str:
    """Run a request and return its results, or the reason why it cannot be compiled, loaded
    or run.
    """
    try:
        with handle_diagnostics(lambda _: None):
            return _run(request, _loaded(request.text, request.device))
    except BraidError as error:
        return str(error).partition("\n")[0]


def _run(request: DeviceRun, model: braid.Model) -> DeviceResults:
    given = request.operands or [synthetic_array(i.shape, np.dtype(i.dtype)) for i in model.inputs]
    inputs = [array.reshape(spec.shape) for array, spec in zip(given, model.inputs, strict=True)]
    seconds: list[float] = []
    results: Sequence[Array] = ()
    for _ in range(request.runs):
        before = model.launched_seconds().get(request.device, 0.0)
        results = model.run(inputs)
        seconds.append(model.launched_seconds().get(request.device, 0.0) - before)
    return DeviceResults(tuple(seconds), tuple(np.array(result) for result in results))


@lru_cache(_KEPT)
def _loaded(text: str, device: str) -> braid.Model:
    module = parse_mlir(make_context(), text, "kernel.mlir").module
    _require_machine(target_of(module), device)
    return braid.compile(module, passes=(), jobs=1)


def _require_machine(target: Target, name: str) -> None:
    """Raise BraidError where the device that is here is another than the target's."""
    device = target.device(name)
    here = backend(device.backend).local_machine(device)
    wanted = device.machine.cpu
    if here not in (None, wanted):
        raise BraidError(
            f"'{name}' of target '{target.name}' is {wanted}, and what is here is {here}",
            hint=f"name the target that is here, or its architecture ({option_text('gpu_arch')})",
        )
