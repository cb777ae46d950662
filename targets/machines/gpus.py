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


TF32 = "tf32"
"""The fact that products of f32 may round what they multiply to 10 bits behind the point."""


def with_architecture(machine: Machine, text: str) -> Machine:
    """A GPU with the same facts and another architecture, such as `sm_90a`.

    `sm_90a,+tf32` permits products of f32 as tf32 as well; `+tf32` alone keeps the architecture.
    Raises `BraidError` for an unknown one.
    """
    name, _, permitted = text.rpartition(",") if "," in text else ("", "", text)
    if not permitted.startswith("+"):
        name, permitted = text, ""
    architecture = name or machine.cpu
    if architecture not in ARCHITECTURES:
        raise BraidError(
            f"'{architecture}' is not the architecture of a GPU",
            hint=f"expected one of {', '.join(ARCHITECTURES)}",
        )
    if permitted not in ("", f"+{TF32}"):
        raise BraidError(
            f"'{permitted}' is not what a GPU may be permitted",
            hint=f"expected +{TF32}: products of f32 round what they multiply to tf32",
        )
    facts = {**dict(machine.facts), **({TF32: 1.0} if permitted else {})}
    own = f"{architecture},{permitted}" if permitted else architecture
    return replace(machine, name=own, cpu=architecture, facts=tuple(sorted(facts.items())))
