"""The meter of kernels for a device that this machine has: they run on it."""

import math
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute

from braid.dialects.braid.attribute_names import DEVICE, SETTINGS, TARGET
from braid.dialects.braid.attributes import TargetAttr
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.launch import AwaitOp, LaunchOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.settings import SettingsAttr
from braid.passes.outlining.outline_kernels import kernel_function
from braid.support.worker_process import WorkerEndedError, WorkerProcess, worker_process
from braid.targets.kernels.kernel_schedule import KernelSchedule, set_schedule
from braid.targets.machines.target import Device
from braid.tuning.device_runs import DeviceResults, DeviceRun
from braid.tuning.kernel_tasks import KernelTask

WORKER = "braid.tuning.device_worker"
MEASURED_THERE = "measured time of the device"
_SECONDS = 120.0
"""The seconds after which a kernel is taken to hang, with its compilation."""
_RUNS = 10
_KERNEL = "kernel"
_CLUSTER = "cluster_0"


@dataclass
class DeviceRunner:
    """Runs kernels on `device` in a separate process, which ends with `ending`.

    `target` is the target for which they are compiled.
    """

    target: TargetAttr
    device: Device
    ending: ExitStack
    process: WorkerProcess | None = field(default=None, init=False)
    refusal: str = field(default="", init=False)
    """The reason why the last run came to nothing, for people."""

    def run(
        self, text: str, runs: int = 1, operands: Sequence[Array] | None = None
    ) -> DeviceResults | None:
        """Run a kernel, and return its result; None for what cannot be compiled, crashes or
        hangs.
        """
        given = None if operands is None else tuple(operands)
        try:
            if self.process is None:
                self.process = self.ending.enter_context(worker_process(WORKER))
            found = self.process.ask(
                DeviceRun(text, self.device.name, runs, given), seconds=_SECONDS
            )
        except WorkerEndedError as error:
            self.process, found = None, str(error)
        if isinstance(found, DeviceResults):
            return found
        self.refusal = found
        return None

    def text(self, group: FusedOp, point: KernelSchedule) -> str:
        """Return a model that runs the kernel of `group` by `point` alone, as text."""
        scheduled = group.clone()
        set_schedule(scheduled, point)
        module = launched_kernel(_KERNEL, scheduled, self.device.name)
        module.attributes[TARGET] = self.target
        module.attributes[SETTINGS] = SettingsAttr.of(self.device.settings)
        return str(module)

    def is_here(self, tasks: Iterable[KernelTask]) -> bool:
        """Return whether this machine has the device, and it runs the kernel of the first of
        `tasks`.

        Otherwise `refusal` says why not.
        """
        first = next((task for task in tasks if runs_alone(task)), None)
        if first is None:
            self.refusal = "operands or results of all kernels are stored with padding"
            return False
        return self.run(self.text(first.group, first.default[1])) is not None


def runs_alone(task: KernelTask) -> bool:
    """Return whether the kernel can be a model: inputs and outputs of models are not padded."""
    values = (*task.group.operands, *task.group.results)
    shapes = [tuple(shape_of(value)) for value in values]
    stored = (*task.choice.operands, *task.choice.results)
    return all(
        math.prod(layout.storage_shape(shape)) == math.prod(shape)
        for layout, shape in zip(stored, shapes, strict=True)
    )


@dataclass
class DeviceKernels:
    """A `KernelMeter` of one task, which compiles its kernels and runs them on the device.

    Operands are copied to the device before each run, so that those that fit its last cache may
    lie there.
    """

    task: KernelTask
    runner: DeviceRunner
    quantity: str = MEASURED_THERE
    is_exact: bool = False

    def made_by(self, points: Sequence[KernelSchedule]) -> list[str]:
        """Return the models of the kernels by these schedules, which are compiled when they run."""
        return [self.runner.text(self.task.group, point) for point in points]

    def seconds(self, made: Any) -> float | None:
        """Return the median of some runs, by the device's own account."""
        found = self.runner.run(made, _RUNS)
        return None if found is None else median(found.seconds)

    def results(
        self, made: Any, operands: Sequence[Array], results: Sequence[Array]
    ) -> Sequence[Array] | None:
        """Return the results of one run."""
        found = self.runner.run(made, operands=operands)
        if found is None:
            return None
        return [own.reshape(r.shape) for own, r in zip(found.results, results, strict=True)]


def launched_kernel(symbol: str, group: FusedOp, device: str) -> ModuleOp:
    """Return what `outline-kernels` leaves of a model that is `group` alone, launched on `device`.

    Its inputs and outputs are stored as the operands and results of the group.
    """
    operands, results = list(group.operand_types), list(group.result_types)
    main = _function("main", operands, results)
    launch = LaunchOp(_CLUSTER, main.args, results)
    landed = AwaitOp([launch.token], launch.outputs)
    main.body.block.add_ops([launch, landed, ReturnOp(*landed.outputs)])
    cluster = _function(_CLUSTER, operands, results)
    cluster.sym_visibility = StringAttr("private")
    cluster.attributes[DEVICE] = StringAttr(device)
    call = CallOp(SymbolRefAttr(symbol), cluster.args, results)
    cluster.body.block.add_ops([call, ReturnOp(*call.results)])
    return ModuleOp([main, cluster, kernel_function(symbol, group)])


def _function(name: str, operands: Sequence[Attribute], results: Sequence[Attribute]) -> FuncOp:
    return FuncOp(name, FunctionType.from_lists(list(operands), list(results)))
