"""Emulate a backend that is not installed: the host computes, the target gives the times.

Its groups are costed by the rates of the target's description, in row-major layouts, and run as
kernels of the host. The device is missing too, so that the runtime emulates it: a launch takes no
less than `braid.stage_seconds` of its function, which `insert-channels` predicts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.func import FuncOp

from braid.support.errors import BraidError
from braid.targets.backend import Backend, EmittedKernels, Job, Preparation
from braid.targets.backends import backend_names, backend_of
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.target import Device


@dataclass(frozen=True)
class EmulatedBackend(Backend):
    """Kernels of the host for a device of any kind; see `Backend`."""

    name: str
    stages: tuple[str, ...] = ()

    def families(self, device: Device, installed: Sequence[KernelFamily]) -> Sequence[KernelFamily]:
        """Return no families: neither layouts nor times are those of the host's kernels."""
        return ()

    def prepare(self, job: Job) -> Preparation:
        """Return the needs of kernels of the host."""
        on_host = _on_host(job)
        return backend_of(on_host.device).prepare(on_host)

    def emit(self, kernels: Sequence[FuncOp], job: Job) -> EmittedKernels:
        """Return the kernels of the host, by those of its families that take these layouts."""
        on_host = _on_host(job)
        return backend_of(on_host.device).emit(kernels, on_host)


def _on_host(job: Job) -> Job:
    """Return the job for the host of the target. Raises BraidError where that has no backend
    itself.
    """
    host = job.target.host_device
    if host.backend not in backend_names():
        raise BraidError(
            f"'{host.name}', the host of target '{job.target.name}', is of backend "
            f"'{host.backend}', which is not installed",
            hint="the host computes for what is emulated: let 'host' name a device of another "
            "backend, or leave it out: then it is the machine braid runs on",
        )
    return replace(job, device=host)
