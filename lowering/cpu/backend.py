"""The backend of CPUs: kernels by families or upstream's passes, as objects by LLVM."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp

from braid.lowering.cpu.families import cpu_families
from braid.lowering.cpu.kernel_building import CpuKernels
from braid.support.object_cache import default_cache
from braid.targets.backend import Job, Preparation
from braid.targets.backends import kernel_families
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.target import Device


@dataclass(frozen=True)
class CpuBackend:
    """Its kernels are functions on addresses that the host program calls; see `Backend`."""

    name: str
    stages: tuple[str, ...] = ("linalg",)

    def families(self, device: Device, installed: Sequence[KernelFamily]) -> Sequence[KernelFamily]:
        """See `cpu_families`."""
        return cpu_families(device.machine, installed)

    def prepare(self, job: Job) -> Preparation:
        """Kernels have no edge cases; paddings of the same tensor that become ops are merged."""
        return Preparation(before_fusion=("expand-padding", "simplify"))

    def emit(self, kernels: Sequence[FuncOp], job: Job) -> CpuKernels:
        """Emits those that were not compiled before."""
        return CpuKernels(
            kernels,
            kernel_families(job.device),
            machine=job.device.machine,
            jobs=job.jobs,
            cache=default_cache(),
        )
