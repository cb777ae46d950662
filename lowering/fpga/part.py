"""The FPGA of a target."""

from xdsl.dialects.builtin import ModuleOp

from braid.support.errors import BraidError
from braid.targets.machines.machine import Machine
from braid.targets.machines.resolve import target_of


def part_of(module: ModuleOp, target: str | None) -> Machine | None:
    """Return the machine of the target's first device with DSP slices; `target` overrides that of
    the module.
    """
    for device in target_of(module, target).devices:
        if any(name == "dsp" for name, _ in device.machine.facts):
            return device.machine
    return None


def part_name(machine: Machine) -> str:
    """Return the vendor's name of the part. Raises BraidError if the target has none."""
    if not machine.part:
        raise BraidError(
            f"machine '{machine.name}' does not say which part it is",
            hint="'part' of a [[machine]] is the name in the vendor's tools, with package and "
            'speed grade: part = "xc7z020clg400-1"',
        )
    return machine.part
