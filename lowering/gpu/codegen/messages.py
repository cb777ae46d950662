"""The messages to and from the processes that compile kernels of GPUs."""

from dataclasses import dataclass

from braid.lowering.gpu.launch.launches import Launches
from braid.targets.machines.machine import Machine


@dataclass(frozen=True)
class Request:
    """The text of a kernel's module, its launches, and the machines of both codes."""

    text: str
    launches: Launches
    device: Machine
    host: Machine


@dataclass(frozen=True)
class Compiled:
    """PTX, and the object that emulates it on the host."""

    ptx: bytes
    emulated: bytes
