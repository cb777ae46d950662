"""The FPGA of a target."""

from xdsl.dialects.builtin import ModuleOp

from braid.targets.machines.machine import Machine
from braid.targets.machines.resolve import target_of


def part_of(module: ModuleOp, target: str | None) -> Machine | None:
    """That of the target's first device with DSP slices; `target` is another one than its own."""
    for device in target_of(module, target).devices:
        if any(name == "dsp" for name, _ in device.machine.facts):
            return device.machine
    return None
