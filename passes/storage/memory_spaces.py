"""Find the memory of the target in which the result of an op lives."""

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from braid.dialects.braid.attribute_names import DEVICE, MEMORY
from braid.dialects.braid.placement import CopyOp
from braid.targets.machines.target import Device, Target

MAIN = ""
"""The first memory of the default device, where inputs, outputs and weights are."""


class MemorySpaces:
    """Memories by the names that ops use: `gpu.global`, `gpu:1.global`, or `global` for the first.

    A memory's own name begins with its backend's, or with its device's from the second on.
    """

    def __init__(self, target: Target | None = None) -> None:
        """Add the memories of `target`, by default one without a name or an end."""
        self._of_device: dict[str, str] = {}
        self._known: dict[str, str] = {}
        self.bytes: dict[str, int] = {}
        if target is None:
            return
        default = target.default_device
        for device in sorted(target.devices, key=lambda device: device.name != default.name):
            self._add(target, device)

    def _add(self, target: Target, device: Device) -> None:
        """Add the memories of `device` after those of the devices that were added before."""
        memories = target.backend_of(device).memories
        first = f"{device.backend}.{memories[0].name}" not in self._known if memories else True
        prefix = device.backend if first else device.name
        for number, memory in enumerate(memories):
            own = f"{prefix}.{memory.name}"
            used = MAIN if not self._of_device and number == 0 else own
            self.bytes[own] = memory.bytes
            for name in (memory.name, own, f"{device.name}.{memory.name}"):
                self._known.setdefault(name, used)
        main = f"{prefix}.{memories[0].name}" if memories else device.name
        self._of_device[device.name] = MAIN if not self._of_device else main

    def of(self, op: Operation) -> str:
        """Return where `op` says that its results are: by a copy, or by the device it runs on."""
        if not self._of_device:
            return MAIN
        named = op.memory if isinstance(op, CopyOp) else op.attributes.get(MEMORY)
        if isinstance(named, StringAttr):
            return self._known.get(named.data, named.data)
        device = op.attributes.get(DEVICE)
        if isinstance(device, StringAttr):
            return self._of_device.get(device.data, device.data)
        return MAIN
