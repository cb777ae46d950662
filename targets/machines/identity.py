"""Describe a machine as text, for keys of its code and its measurements."""

import platform
from functools import cache
from pathlib import Path

from braid.targets.machines.cpus import NATIVE
from braid.targets.machines.gpus import code_name
from braid.targets.machines.machine import Machine

_FIELDS = frozenset(
    {"model name", "cpu family", "model", "stepping", "flags", "Features", "CPU part"}
)


@cache
def processor() -> str:
    """Return what the processor that this process runs on calls itself."""
    try:
        first, _, _ = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")
    except OSError:
        first = ""
    lines = [line for line in first.splitlines() if line.partition(":")[0].strip() in _FIELDS]
    return "\n".join(dict.fromkeys((platform.machine(), platform.processor(), *lines)))


def processor_name() -> str:
    """Return the part of `processor` that people know it by."""
    for line in processor().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def machine_text(machine: Machine) -> str:
    """Return all on which code for `machine` may depend; for the native one, including the
    processor.
    """
    own = processor() if machine.name == NATIVE else code_name(machine)
    return "\0".join((own, machine.triple, machine.cpu, machine.features))
