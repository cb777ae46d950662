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
    """A GPU with the same facts and other architectures, such as `sm_90a` or `sm_80,sm_90a`.

    Code is made for each, and decisions are for the first. `sm_90a,+tf32` permits products of f32
    as tf32 as well; `+tf32` alone keeps the architecture. Raises `BraidError` for an unknown one.
    """
    words = text.split(",")
    permitted = [word for word in words if word.startswith("+")]
    names = [word for word in words if not word.startswith("+")] or [machine.cpu]
    for name in names:
        if name not in ARCHITECTURES:
            raise BraidError(
                f"'{name}' is not the architecture of a GPU",
                hint=f"expected one of {', '.join(ARCHITECTURES)}",
            )
    for word in permitted:
        if word != f"+{TF32}":
            raise BraidError(
                f"'{word}' is not what a GPU may be permitted",
                hint=f"expected +{TF32}: products of f32 round what they multiply to tf32",
            )
    facts = {**dict(machine.facts), **({TF32: 1.0} if permitted else {})}
    own = ",".join(dict.fromkeys([*names, *permitted]))
    return replace(machine, name=own, cpu=names[0], facts=tuple(sorted(facts.items())))


def for_each_architecture(machine: Machine) -> tuple[Machine, ...]:
    """A machine for each architecture that code is made for, the first first."""
    words = machine.name.split(",")
    others = [word for word in words if word in ARCHITECTURES and word != machine.cpu]
    permitted = [word for word in words if word.startswith("+")]
    if not others:
        return (machine,)
    return tuple(
        replace(machine, name=",".join([name, *permitted]), cpu=name)
        for name in (machine.cpu, *others)
    )
