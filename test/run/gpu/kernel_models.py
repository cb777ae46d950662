"""A kernel as a model of its own, for a real GPU: it copies there, launches, and copies back.

`pytest test/run/gpu --gpu-target gpu-h100` runs each kernel there too that the emulator has found
right, and `--keep-gpu-cases FOLDER` keeps them for a machine without the compiler; see
`benchmarks.gpu_replay`.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

import braid
from benchmarks.kept_cases import keep_case
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array
from braid.lowering.gpu import backend
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.targets.machines.resolve import resolve_target, set_target
from braid.tuning.device_kernels import launched_kernel
from test.run.fallback.conftest import stored_arrays

DEVICE_NAME = "gpu:0"

SHARES = {"float16": 4e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "float64": 1e-12}
"""The allowed difference from the emulator's results, relative to the largest."""


@dataclass(frozen=True)
class GpuTarget:
    """The target for which kernels are compiled, as `braid.compile` takes it."""

    name: str
    architecture: str | None = None
    cpu: str | None = None

    @property
    def has_tensor_maps(self) -> bool:
        """Whether kernels of Hopper are for it."""
        options = {"cpu": self.cpu, "gpu-arch": self.architecture}
        target = resolve_target(self.name, {k: v for k, v in options.items() if v is not None})
        return target.device(DEVICE_NAME).machine.cpu == "sm_90a"

    def model(
        self, kernel: GpuKernel, group: FusedOp, *, unaligned: bool = False, load: bool = True
    ) -> braid.Model:
        """Return a model that runs the kernel alone. Inputs and outputs are as stored.

        With `unaligned`, its entries are those for unaligned buffers.
        """
        chosen = _with_entries_for_any_buffers(kernel) if unaligned else kernel
        module = launched_kernel(kernel.symbol, group, DEVICE_NAME)
        set_target(module, self.name, self.cpu, self.architecture)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(backend, "_emitted", lambda *_: chosen)
            return braid.compile(module, passes=(), jobs=1, load=load)


def _with_entries_for_any_buffers(kernel: GpuKernel) -> GpuKernel:
    launches = [
        replace(one, entry=one.unaligned_entry or one.entry, unaligned_entry=None)
        for one in kernel.launches.launches
    ]
    return replace(kernel, launches=replace(kernel.launches, launches=tuple(launches)))


Compare = Callable[[Sequence[Array]], None]


@dataclass
class BesidesEmulator:
    """The use of kernels that the emulator found right: they run on a GPU, or are kept.

    Neither is done for kernels with padded operands or results, which models do not have, or that
    the target's architecture does not support.
    """

    target: GpuTarget
    folder: Path | None = None
    _names: Counter[str] = field(default_factory=Counter[str])

    def take(
        self,
        kernel: GpuKernel,
        group: FusedOp,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        compare: Compare,
        unaligned: bool = False,
    ) -> None:
        """Run or keep a kernel; `outputs` are those of the emulator."""
        has_maps = any(own.tensor_maps for own in kernel.launches.launches)
        if has_maps and not self.target.has_tensor_maps:
            return
        stored, _ = stored_arrays(group, inputs)
        shapes = [type.get_shape() for type in (*group.inputs.types, *group.outputs.types)]
        if [math.prod(shape) for shape in shapes] != [a.size for a in (*stored, *outputs)]:
            return
        if self.folder is not None:
            model = self.target.model(kernel, group, unaligned=unaligned, load=False)
            shares = [SHARES.get(array.dtype.name, 0.0) for array in outputs]
            keep_case(self.folder, self._name(), model, stored, outputs, shares)
            return
        model = self.target.model(kernel, group, unaligned=unaligned)
        given = [a.reshape(s) for a, s in zip(stored, shapes, strict=False)]
        for _ in range(2):
            found = model.run(given)
            compare(
                [np.asarray(a).reshape(own.shape) for a, own in zip(found, outputs, strict=True)]
            )

    def _name(self) -> str:
        """Return the name of the running test, and the index of the kernel in it."""
        test = os.environ["PYTEST_CURRENT_TEST"].rpartition("/")[2].partition(" ")[0]
        name = re.sub("[^A-Za-z0-9]+", "_", test.replace(".py", "")).strip("_")
        self._names[name] += 1
        return f"{name}_{self._names[name]}"


chosen: BesidesEmulator | None = None
"""By the options of the command line, see `choose`."""


def choose(config: pytest.Config) -> None:
    """Choose what the command line asks for."""
    global chosen
    name, folder = config.getoption("--gpu-target"), config.getoption("--keep-gpu-cases")
    if folder is not None:
        target = GpuTarget(name or "gpu-h100", config.getoption("--gpu-arch"), "x86-64-v3")
        chosen = BesidesEmulator(target, Path(folder).absolute())
    elif name is not None:
        chosen = BesidesEmulator(GpuTarget(name, config.getoption("--gpu-arch")))
