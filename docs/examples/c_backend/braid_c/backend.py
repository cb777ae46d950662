"""The backend `c`: C for what has C, and the host's kernels for all else."""

import math
import os
import shlex
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from braid.extend import (
    OBJECT,
    BraidError,
    Code,
    KernelNeeds,
    backend,
    kernel_families,
)
from braid_c.source import c_source


@dataclass(frozen=True)
class CBackend:
    """Its `stages` are what `braid compile --emit` shows besides those of the host."""

    name: str
    stages: tuple[str, ...] = ("c",)

    def families(self, device, installed):
        """Return the host's kernel families too: fusion and layouts are chosen as for the host."""
        return (*installed, *kernel_families(device.host))

    def prepare(self, job):
        """Return what the kernels of the host need."""
        return backend(job.target.host_device.backend).prepare(_on_host(job))

    def emit(self, kernels, job):
        """Emit C where there is any, and the rest by the backend of the host."""
        sources = [c_source(kernel) for kernel in kernels]
        rest = [kernel for kernel, text in zip(kernels, sources, strict=True) if text is None]
        others = backend(job.target.host_device.backend).emit(rest, _on_host(job))
        needs = iter(others.needs)
        return CKernels(
            tuple(text for text in sources if text is not None),
            tuple(
                next(needs) if text is None else _needs_of(kernel)
                for kernel, text in zip(kernels, sources, strict=True)
            ),
            others,
        )


@dataclass(frozen=True)
class CKernels:
    """Kernels in C, what all kernels need, and those of the host."""

    sources: tuple[str, ...]
    needs: tuple[KernelNeeds, ...]
    others: object

    def link(self, functions):
        """Return objects, which define the symbols of the kernels: the host program calls them."""
        objects = tuple(_compiled(source) for source in self.sources)
        return [Code(OBJECT, objects), *self.others.link(functions)]

    def at(self, stage, functions):
        """Return the sources, at the only stage."""
        return self.sources


def _on_host(job):
    return replace(job, device=job.target.host_device)


def _needs_of(kernel):
    """Return a grid of an iteration an element, which any thread may run; no scratch memory."""
    (result, *_) = kernel.function_type.outputs
    return KernelNeeds(kernel.sym_name.data, grid=math.prod(result.get_shape()))


def _compiled(source):
    compiler = shlex.split(os.environ.get("CC", "cc"))
    with TemporaryDirectory() as directory:
        file, output = Path(directory, "kernel.c"), Path(directory, "kernel.o")
        file.write_text(source)
        command = [*compiler, "-O3", "-fPIC", "-c", file, "-o", output]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise BraidError(f"the C compiler '{compiler[0]}' fails: {error}") from error
        return output.read_bytes()
