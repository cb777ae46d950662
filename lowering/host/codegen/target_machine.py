"""The machine this process runs on."""

from braid.targets.machines.cpus import NATIVE, cpu_machine
from braid.targets.machines.machine import Machine


def host_machine() -> Machine:
    """Return the machine that this process runs on."""
    return cpu_machine(NATIVE)
