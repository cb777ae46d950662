"""The backend of GPUs: kernels as PTX for the device, and as objects that emulate it on the host.

The host program calls the objects as it does kernels of a CPU, so that a function of a GPU runs
wherever the host does: by the device plugin `gpu-emulated`, or as the whole model. For a device
with separate memory there is also a plan of the launches of its functions, which the plugin `cuda`
reads.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace

from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation

from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attribute_names import SCHEDULE
from braid.lowering.common.convert_braid_to_linalg import FAMILIES_ONLY
from braid.lowering.common.generic_text import module_text
from braid.lowering.common.upstream import run_upstream_passes
from braid.lowering.common.upstream_ops import blamed_on, jobs_for
from braid.lowering.gpu.codegen.compiler import compile_gpu_kernels
from braid.lowering.gpu.codegen.emulated_ir import STATUS
from braid.lowering.gpu.codegen.machine_code import cubin_of, disassemble, joined_ptx
from braid.lowering.gpu.codegen.messages import Compiled
from braid.lowering.gpu.codegen.ptx import nvvm_text
from braid.lowering.gpu.emulated_library import keep_emulated_library
from braid.lowering.gpu.emulator import emulator_object
from braid.lowering.gpu.fallback.emit_fallback import emit_fallback
from braid.lowering.gpu.families import gpu_families
from braid.lowering.gpu.launch.gpu_kernel import GpuKernel
from braid.lowering.gpu.meter import gpu_meter
from braid.lowering.gpu.plan import plan_bytes
from braid.lowering.gpu.present import architecture_here
from braid.passes.outlining.outline_kernels import outlined_group
from braid.support.errors import BraidError
from braid.support.option_names import option_text
from braid.support.sizes.expression import known
from braid.targets.backend import OBJECT, Backend, Code, Job, KernelMeter, KernelNeeds, Preparation
from braid.targets.costs.kernel_choice import KernelChoice
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines import gpus
from braid.targets.machines.gpus import for_each_architecture
from braid.targets.machines.machine import Machine
from braid.targets.machines.target import Device

PTX = "ptx"
"""Kind of code, before the architecture: the entries of all kernels as one module of text."""
PLAN = "gpu-plan"
"""The kind of code of these launches, for a device on which the host launches functions."""
CUBIN = "cubin"
"""Kind of code, likewise: the same entries as machine code, where it was wished for."""
LAUNCHES = "gpu-launches"
"""Kind of code, likewise: JSON that says how each kernel launches its entries."""


@dataclass(frozen=True)
class GpuBackend(Backend):
    """Its kernels are entries in the `gpu` dialect with their launches; see `Backend`."""

    name: str
    stages: tuple[str, ...] = ("gpu", "nvvm", "ptx", "cubin", "sass")

    def families(self, device: Device, installed: Sequence[KernelFamily]) -> Sequence[KernelFamily]:
        """See `gpu_families`."""
        return gpu_families(device.machine, installed)

    def prepare(self, job: Job) -> Preparation:
        """Return passes for kernels without edge cases; equal paddings that become ops are
        merged.
        """
        return Preparation(before_fusion=("expand-padding", "simplify"))

    def unsupported_reason(self, op: Operation, known: ParameterExpressions) -> str | None:
        """Return a reason for ops that neither a family nor the fallback makes."""
        return f"'{op.name}' on a GPU" if isinstance(op, FAMILIES_ONLY) else None

    def meter(self, job: Job) -> AbstractContextManager[KernelMeter]:
        """Return a static model's time, and the results of the emulator; see `gpu_meter`."""
        return gpu_meter(job)

    def local_machine(self, device: Device) -> str | None:
        """Return the architecture by the driver; with the letter of `device` where it is
        that one.
        """
        here, wanted = architecture_here(), device.machine.cpu
        return wanted if here == wanted.rstrip("a") else here

    def emit(self, kernels: Sequence[FuncOp], job: Job) -> "GpuKernels":
        """Emit all kernels for each architecture; earlier objects are found later."""
        _require_architecture(job.device)
        job = replace(job, jobs=jobs_for(map(outlined_group, kernels), job.jobs))
        return GpuKernels(
            tuple(
                _for_architecture(
                    kernels, replace(job.device, described=machine), machine, number == 0
                )
                for number, machine in enumerate(for_each_architecture(job.device.machine))
            ),
            job,
        )


@dataclass(frozen=True)
class ArchitectureKernels:
    """All kernels as emitted for one architecture."""

    machine: Machine
    kernels: tuple[GpuKernel, ...]

    def kind(self, kind: str) -> str:
        """Return the kind of a code that is for this architecture."""
        return f"{kind}-{self.machine.cpu}"

    def compiled(self, job: Job) -> list[Compiled]:
        """Return the code of the kernels, one for each."""
        host = job.target.host_device.machine
        return compile_gpu_kernels(self.kernels, self.machine, host, jobs=job.jobs)

    def code(self, functions: Sequence[FuncOp], job: Job) -> list[Code]:
        """Return PTX, launches and, where functions are launched, their plan; machine code if
        wished.

        Raises BraidError where that is wished and there is no assembler.
        """
        by_symbol = {kernel.symbol: kernel.launches for kernel in self.kernels}
        plan = [Code(self.kind(PLAN), (plan_bytes(functions, by_symbol),))]
        plans = plan if job.device.own_memory else []
        if not self.kernels:
            return plans if functions else []
        compiled = self.compiled(job)
        ptx = joined_ptx([one.ptx for one in compiled])
        if job.device.own_memory:
            keep_emulated_library(ptx, compiled, job.target.host_device.machine)
        launches = json.dumps([asdict(kernel.launches) for kernel in self.kernels])
        assembled = (
            [Code(self.kind(CUBIN), (cubin_of(ptx, self.machine.cpu),))]
            if self.machine.fact(gpus.CUBIN, 0)
            else []
        )
        return [
            *assembled,
            Code(self.kind(PTX), (ptx,)),
            Code(self.kind(LAUNCHES), (launches.encode(),)),
            *plans,
        ]


@dataclass(frozen=True)
class GpuKernels:
    """Kernels that are emitted and not compiled; see `EmittedKernels`."""

    architectures: tuple[ArchitectureKernels, ...]
    job: Job

    @property
    def needs(self) -> list[KernelNeeds]:
        """Return the needs of each kernel for any architecture; a failure shows at the end."""
        return [
            KernelNeeds(
                same[0].symbol,
                scratch_bytes=max(known(kernel.scratch_bytes) for kernel in same),
                in_place=tuple(
                    pair
                    for pair in same[0].in_place
                    if all(pair in kernel.in_place for kernel in same)
                ),
                status=STATUS,
            )
            for same in zip(*(own.kernels for own in self.architectures), strict=True)
        ]

    def link(self, functions: Sequence[FuncOp]) -> list[Code]:
        """Return the objects for the host with the emulator, and the device's code by architecture.

        The code for the first one is emulated.
        """
        device = self.job.device
        launched = [f for f in functions if f.sym_visibility is not None]
        if device.own_memory and any(
            isinstance(op, CallOp) for f in functions if f not in launched for op in f.body.ops
        ):
            raise BraidError(
                f"'@main' calls kernels of device '{device.name}', whose memory is not the host's",
                hint="let 'assign-devices' and the passes after it make functions of them, or "
                f"compile with {option_text('target', 'gpu-emulated')}, which runs the same "
                "kernels on the CPU",
            )
        codes = [code for own in self.architectures for code in own.code(launched, self.job)]
        first = self.architectures[0]
        if not first.kernels:
            return codes
        emulated = [one.emulated for one in first.compiled(self.job)]
        host = self.job.target.host_device.machine
        return [Code(OBJECT, (*emulated, emulator_object(host))), *codes]

    def at(self, stage: str, functions: Sequence[FuncOp]) -> Sequence[str | bytes]:
        """Return the kernels in the `gpu` or `nvvm` dialect, a module each; or all of them as code.

        The architectures are compiled in turn. Raises BraidError where there is no assembler, it
        rejects the code, or a `cubin` is wanted of several architectures.
        """
        texts: dict[str, Callable[[str], str]] = {
            "gpu": lambda text: run_upstream_passes(text, ()),
            "nvvm": nvvm_text,
        }
        if stage in texts:
            return [
                texts[stage](module_text(kernel.module))
                for own in self.architectures
                for kernel in own.kernels
            ]
        if stage == "cubin" and len(self.architectures) > 1:
            raise BraidError(
                f"{len(self.architectures)} architectures are {len(self.architectures)} cubins",
                hint=f"emit one at a time: {option_text('gpu_arch')} with one architecture",
            )
        return [self._code(stage, own) for own in self.architectures if own.kernels]

    def _code(self, stage: str, own: ArchitectureKernels) -> str | bytes:
        ptx = joined_ptx([one.ptx for one in own.compiled(self.job)])
        if stage == "ptx":
            return ptx.decode()
        cubin = cubin_of(ptx, own.machine.cpu)
        return cubin if stage == "cubin" else disassemble(cubin)


def _require_architecture(device: Device) -> None:
    """Raise BraidError for a device without an architecture to compile for."""
    if not gpus.is_gpu(device.machine):
        raise BraidError(
            f"device '{device.name}' of backend '{device.backend}' has machine "
            f"'{device.machine.name}' without an architecture, so that no code can be made for it",
            hint=f'describe it in the target\'s file: a [[machine]] with triple = "{gpus.TRIPLE}", '
            'cpu = "sm_90a" and features = "+ptx80", which the device names by \'machine\'',
        )


def _for_architecture(
    kernels: Sequence[FuncOp], device: Device, machine: Machine, is_first: bool
) -> ArchitectureKernels:
    selection = KernelChoice.on(device)
    return ArchitectureKernels(
        machine, tuple(_emitted(kernel, selection, is_first) for kernel in kernels)
    )


def _emitted(function: FuncOp, selection: KernelChoice, is_first: bool) -> GpuKernel:
    """Return the kernel of a function. Raises BraidError for a family that makes none of a GPU.

    Schedules are for the first architecture; others have their default ones.
    """
    symbol, group = function.sym_name.data, outlined_group(function)
    if not is_first:
        group.attributes.pop(SCHEDULE, None)
    chosen = selection.choose(group)
    if chosen is None:
        with blamed_on(group):
            return emit_fallback(group, symbol)
    match, schedule = chosen
    kernel = match.emit(symbol, schedule)
    if not isinstance(kernel, GpuKernel):
        raise BraidError(
            f"family '{match.family.name}' makes a kernel of another kind than GPUs have",
            hint="a family for backend 'gpu' emits a GpuKernel",
        )
    return kernel
