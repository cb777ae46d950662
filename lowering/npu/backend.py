"""The backend of chips that are programmed by instructions.

Their device computes with code compiled for the host, in simulated time: what stands in streams
decides how long a run takes, and kernels of the host what it gives.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, StringAttr
from xdsl.dialects.func import FuncOp

from braid.dialects.braid.attribute_names import STREAMS
from braid.support.errors import BraidError
from braid.targets.backend import Code, EmittedKernels, Job, KernelNeeds, Preparation
from braid.targets.backends import backend, kernel_families
from braid.targets.costs.simulator.instructions import from_text
from braid.targets.costs.simulator.stream_bytes import to_bytes
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.load import load_target
from braid.targets.machines.target import Device

STREAM = "stream"
"""The kind of the code of a chip, and the stage that shows it."""
STREAM_TEXT = "stream-text"
"""The stage that shows the same as text."""

TILES = 3
"""An op uses at most one part in so many of the memory: others are loaded and stored meanwhile."""


@dataclass(frozen=True)
class NpuBackend:
    """Streams of what stands together, and kernels of the host for all of it; see `Backend`."""

    name: str
    stages: tuple[str, ...] = ("linalg", STREAM, STREAM_TEXT)

    def families(self, device: Device, installed: Sequence[KernelFamily]) -> Sequence[KernelFamily]:
        """Those of the host, which computes."""
        host = device.host or load_target().host_device
        return (*installed, *kernel_families(host))

    def prepare(self, job: Job) -> Preparation:
        """Splits what does not fit, and streams while ops stand alone; then what the host needs.

        Raises BraidError for a device that is not programmed by instructions.
        """
        chip = job.target.backend_of(job.device)
        if chip.issue is None or not chip.memories:
            raise BraidError(
                f"device '{job.device.name}' of target '{job.target.name}' is not programmed by "
                "instructions",
                hint="its backend has no [[backend.issue]] or no [[backend.memory]]",
            )
        host = _host(job)
        preparation = backend(host.device.backend).prepare(host)
        return replace(
            preparation,
            before_fusion=(
                f"select-splits{{memory={chip.memories[0].bytes // TILES} follow-readers=true}}",
                "apply-splits{through-concats=true}",
                # Parts of weights are weights.
                "hoist-parameter-expressions",
                "attach-streams",
                *preparation.before_fusion,
            ),
        )

    def emit(self, kernels: Sequence[FuncOp], job: Job) -> "NpuKernels":
        """The kernels of the host."""
        host = _host(job)
        return NpuKernels(backend(host.device.backend).emit(kernels, host))


@dataclass(frozen=True)
class NpuKernels:
    """The host's kernels, to which `link` adds the streams of the functions."""

    kernels: EmittedKernels

    @property
    def needs(self) -> Sequence[KernelNeeds]:
        """What the host's kernels need."""
        return self.kernels.needs

    def link(self, functions: Sequence[FuncOp]) -> list[Code]:
        """Objects for the host, and each stream with its time."""
        streams = [
            Code(
                STREAM,
                (to_bytes(from_text(_text(entry))),),
                _number(entry, "seconds"),
                _number(entry, "executions"),
                function.sym_name.data,
            )
            for function in functions
            for entry in _entries([function])
        ]
        return [*self.kernels.link(functions), *streams]

    def at(self, stage: str, functions: Sequence[FuncOp]) -> Sequence[str | bytes]:
        """The streams, or what the host has."""
        if stage not in (STREAM, STREAM_TEXT):
            return self.kernels.at(stage, functions)
        texts = [_text(entry) for entry in _entries(functions)]
        return texts if stage == STREAM_TEXT else [to_bytes(from_text(text)) for text in texts]


def _host(job: Job) -> Job:
    """The job for the host of the target, which computes. Raises BraidError for a chip as host."""
    host = job.target.host_device
    if host.backend == job.device.backend:
        raise BraidError(
            f"'{host.name}', a chip that is programmed by instructions, is the host of target "
            f"'{job.target.name}'",
            hint="let 'host' name a device of another backend, or leave it out: then it is the "
            "machine braid runs on",
        )
    return replace(job, device=job.target.host_device)


def _entries(functions: Sequence[FuncOp]) -> list[DictionaryAttr]:
    attributes = (function.attributes.get(STREAMS) for function in functions)
    return [
        entry
        for attribute in attributes
        if attribute is not None
        for entry in cast(ArrayAttr[DictionaryAttr], attribute)
    ]


def _text(entry: DictionaryAttr) -> str:
    return cast(StringAttr, entry.data["text"]).data


def _number(entry: DictionaryAttr, name: str) -> float:
    return float(cast(FloatAttr, entry.data[name]).value.data)
