"""GPUs that code is made for, by the names of their architectures."""

from collections.abc import Mapping
from dataclasses import replace

from braid.support.errors import BraidError
from braid.targets.machines.machine import Machine

TRIPLE = "nvptx64-nvidia-cuda"

_PTX = {
    **dict.fromkeys(("sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a"), 80),
    **{"sm_100": 86, "sm_100a": 86, "sm_103a": 88, "sm_110a": 90},
    **{"sm_120": 87, "sm_120a": 87, "sm_121a": 88},
}
"""The version of PTX for an architecture: the first one that has it and all that kernels use.

A driver reads no later version than that of its own CUDA: 8.0 is that of CUDA 12.0. ("PTX
ISA", table of release notes.)
"""

ARCHITECTURES = tuple(_PTX)
"""The architectures that LLVM 22 compiles to PTX and ptxas 13.5 assembles."""


def ptx_version(architecture: str) -> str:
    """Return the version of PTX for an architecture, as LLVM names it among features."""
    return f"+ptx{_PTX[architecture]}"


def gpu_machine(architecture: str, facts: Mapping[str, float] | None = None) -> Machine:
    """Return a GPU of which nothing but its architecture and `facts` is known."""
    own = tuple(sorted((facts or {}).items()))
    return Machine(architecture, TRIPLE, architecture, ptx_version(architecture), own)


def is_gpu(machine: Machine) -> bool:
    """Return whether code for a machine is PTX."""
    return machine.triple == TRIPLE


TF32 = "tf32"
"""The fact that products of f32 may round what they multiply to 10 bits after the point."""
CUBIN = "cubin"
"""The fact that there is machine code in addition to PTX, so that no driver has to assemble it."""

_WISHES = {
    TF32: "f32 products round their operands to tf32",
    CUBIN: "machine code, made by ptxas, beside PTX",
}


def with_architecture(machine: Machine, text: str) -> Machine:
    """Return a GPU with the same facts and other architectures, such as `sm_90a` or `sm_80,sm_90a`.

    Code is made for each, and decisions are for the first. `sm_90a,+tf32` permits products of f32
    as tf32 as well, `+cubin` adds machine code; without an architecture they keep the machine's.
    Raises `BraidError` for an unknown one.
    """
    words = text.split(",")
    wishes = [word for word in words if word.startswith("+")]
    names = [word for word in words if not word.startswith("+")] or [machine.cpu]
    for name in names:
        if name not in ARCHITECTURES:
            raise BraidError(
                f"'{name}' is not the architecture of a GPU",
                hint=f"expected one of {', '.join(ARCHITECTURES)}",
            )
    for word in wishes:
        if word.removeprefix("+") not in _WISHES:
            raise BraidError(
                f"'{word}' is not what may be wished of code for GPUs",
                hint="expected " + ", or ".join(f"+{own}: {what}" for own, what in _WISHES.items()),
            )
    facts = dict(machine.facts) | {word.removeprefix("+"): 1.0 for word in wishes}
    own = ",".join(dict.fromkeys([*names, *wishes]))
    known = tuple(sorted(facts.items()))
    features = ptx_version(names[0])
    return replace(machine, name=own, cpu=names[0], features=features, facts=known)


def for_each_architecture(machine: Machine) -> tuple[Machine, ...]:
    """Return a machine for each architecture that code is made for, the first first."""
    words = machine.name.split(",")
    others = [word for word in words if word in ARCHITECTURES and word != machine.cpu]
    wishes = [word for word in words if word.startswith("+")]
    if not others:
        return (machine,)
    return tuple(
        replace(machine, name=",".join([name, *wishes]), cpu=name, features=ptx_version(name))
        for name in (machine.cpu, *others)
    )


def code_name(machine: Machine) -> str:
    """Return the machine's name without what changes no kernel."""
    return ",".join(word for word in machine.name.split(",") if word != f"+{CUBIN}")
