"""The meter of GPU kernels for `braid tune`: predictions from machine code, and results.

The time is that of a static model (`machine_analysis/static_model.py`), which needs no GPU: it uses
the registers of an entry by the assembler, and the main loop in the disassembler's text. A kernel's
results are computed by the emulator of GPUs on this machine.
"""

import math
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import Array
from braid.lowering.gpu.codegen.compiler import compile_gpu_kernels
from braid.lowering.gpu.codegen.machine_code import assemble, disassemble, find_tool
from braid.lowering.gpu.codegen.messages import Compiled
from braid.lowering.gpu.emulated_run import EmulatedRun
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.lowering.gpu.launch.launches import Launches
from braid.lowering.gpu.machine_analysis.instructions import parse_instructions
from braid.lowering.gpu.machine_analysis.main_loop import code_facts
from braid.lowering.gpu.machine_analysis.static_model import (
    EntryCode,
    least_seconds,
    predicted_seconds,
)
from braid.support.errors import BraidError
from braid.support.worker_process import WorkerEndedError, WorkerProcess, worker_process
from braid.targets.backend import Job
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.machines.machine import Machine

WORKER = "braid.lowering.gpu.emulated_run"
MOST_SECONDS = 120.0
"""The seconds after which an emulated kernel is taken to hang."""


@dataclass
class MadeKernel:
    """A kernel that takes at least `least` seconds; compiled if that may be the best."""

    kernel: GpuKernel
    least: float
    compiled: Compiled | None = None
    seconds: float | None = None

    @property
    def launches(self) -> Launches:
        """Launches of the kernel."""
        return self.kernel.launches


@dataclass
class GpuMeter:
    """A `KernelMeter`; kernels are emulated in a separate process, which ends with `ending`.

    A schedule that takes longer than the `best` one of a group for any code is not compiled: its
    time is the lower bound.
    """

    machine: Machine
    host: Machine
    jobs: int
    ending: ExitStack
    quantity: str = "predicted time (static model)"
    is_exact: bool = True
    process: WorkerProcess | None = field(default=None, init=False)
    best: dict[FusedOp, float] = field(default_factory=dict[FusedOp, float], init=False)

    def compiled(self, kernels: Sequence[Kernel], group: FusedOp) -> list[MadeKernel | None]:
        """Return each kernel compiled and assembled; None if a tool rejects it or it fits no
        multiprocessor.
        """
        made = [self._bounded(kernel) for kernel in kernels]
        waiting = [each for each in made if each is not None]
        while waiting:
            best = self.best.get(group, math.inf)
            waiting = [each for each in waiting if each.least < best]
            now, waiting = waiting[: self.jobs], waiting[self.jobs :]
            self._compile(now)
            times = [each.seconds for each in now if each.seconds is not None]
            self.best[group] = min([best, *times])
        return [self._or_none(each, group) for each in made]

    def seconds(self, made: MadeKernel) -> float | None:
        """Return the seconds that the static model predicts."""
        return made.least if made.compiled is None else made.seconds

    def results(
        self, made: MadeKernel, operands: Sequence[Array], results: Sequence[Array]
    ) -> Sequence[Array] | None:
        """Return the emulator's results, which also rejects errors that a GPU would ignore."""
        if made.compiled is None:
            self._compile([made])
        if made.compiled is None:
            return None
        request = EmulatedRun(
            made.compiled.emulated, made.launches, tuple(operands), tuple(results)
        )
        try:
            if self.process is None:
                self.process = self.ending.enter_context(worker_process(WORKER))
            return self.process.ask(request, seconds=MOST_SECONDS)
        except WorkerEndedError:
            self.process = None
            return None

    def _bounded(self, kernel: Kernel) -> MadeKernel | None:
        if not isinstance(kernel, GpuKernel):
            return None
        return MadeKernel(kernel, least_seconds(kernel.launches, kernel.work, self.machine))

    def _or_none(self, made: MadeKernel | None, group: FusedOp) -> MadeKernel | None:
        """Return the compiled kernel with its time; None without a time."""
        if made is None or made.seconds is not None:
            return made
        return made if made.compiled is None and made.least >= self.best[group] else None

    def _compile(self, kernels: Sequence[MadeKernel]) -> None:
        """Compile all at once or, if a tool rejects one, each alone."""
        try:
            compiled = compile_gpu_kernels(
                [each.kernel for each in kernels], self.machine, self.host, jobs=self.jobs
            )
            for each, code in zip(kernels, compiled, strict=True):
                entries = self._entries(code)
                each.compiled, own = code, each.kernel
                each.seconds = predicted_seconds(own.launches, own.work, entries, self.machine)
        except BraidError:
            for each in kernels if len(kernels) > 1 else ():
                self._compile([each])

    def _entries(self, compiled: Compiled) -> dict[str, EntryCode]:
        code = assemble(compiled.ptx, self.machine.cpu)
        functions = parse_instructions(disassemble(code.code)) if _reads_code() else {}
        facts = {name: code_facts(own) for name, own in functions.items()}
        return {
            name: EntryCode(taken.registers, facts.get(name))
            for name, taken in code.resources.items()
        }


@contextmanager
def gpu_meter(job: Job) -> Generator[GpuMeter]:
    """Return the meter for the first architecture of the device. Raises BraidError where there is
    no assembler.
    """
    find_tool("ptxas")
    with ExitStack() as ending:
        host = job.target.host_device.machine
        yield GpuMeter(job.device.machine, host, job.jobs, ending)


def _reads_code() -> bool:
    try:
        find_tool("nvdisasm")
    except BraidError:
        return False
    return True
