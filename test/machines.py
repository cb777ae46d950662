"""Machines to emit kernels for, whatever the tests run on."""

from braid.targets.machines.cpus import NATIVE, cpu_machine
from braid.targets.machines.machine import Machine

AVX512, AVX2, SSE = map(cpu_machine, ("x86-64-v4", "x86-64-v3", "x86-64"))
HOST = cpu_machine(NATIVE)
_DECIDING = {"ssse3", "avx2", "f16c", "avxvnni"}
"""Features that emitters ask a CPU for, besides those of AVX-512 and AMX."""


def distinct(*machines: Machine) -> list[Machine]:
    """Return `machines` without the host where another has its vectors and instructions.

    Kernels of the two differ in the sizes of tiles at most, since these depend on caches. A test
    that runs many shapes on every vector unit finds nothing more by both.
    """
    others = [_vectors(machine) for machine in machines if machine is not HOST]
    return [each for each in machines if each is not HOST or _vectors(each) not in others]


def _vectors(machine: Machine) -> tuple[object, ...]:
    """Return what decides which instructions a kernel has."""
    features = {
        name
        for name in machine.enabled_features
        if name in _DECIDING or name.startswith(("avx512", "amx-"))
    }
    facts = [machine.fact(name) for name in ("vector_bytes", "vector_registers", "fma")]
    return machine.architecture, *facts, features
