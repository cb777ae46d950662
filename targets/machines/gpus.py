"""GPUs that code is made for, by the names of their architectures."""

from dataclasses import replace

from braid.support.errors import BraidError
from braid.targets.machines.machine import Machine

TRIPLE = "nvptx64-nvidia-cuda"

ARCHITECTURES = (
    *("sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a"),
    *("sm_100", "sm_100a", "sm_103a", "sm_110a", "sm_120", "sm_120a", "sm_121a"),
)
"""Those that LLVM 22 makes PTX 9.0 for and ptxas 13.5 assembles."""


def is_gpu(machine: Machine) -> bool:
    """Whether code for a machine is PTX."""
    return machine.triple == TRIPLE


def with_architecture(machine: Machine, architecture: str) -> Machine:
    """A GPU with the same facts and another architecture.

    Raises `BraidError` for an unknown one.
    """
    if architecture not in ARCHITECTURES:
        raise BraidError(
            f"'{architecture}' is not the architecture of a GPU",
            hint=f"expected one of {', '.join(ARCHITECTURES)}",
        )
    return replace(machine, name=architecture, cpu=architecture)
