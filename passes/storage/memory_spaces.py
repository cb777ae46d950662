"""In which memory of the target the result of an op lives."""

from collections.abc import Mapping

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from braid.dialects.braid.attribute_names import MEMORY
from braid.dialects.braid.attributes import BackendAttr
from braid.dialects.braid.placement import ChannelOp, CopyOp
from braid.targets.machines.target import Target

MAIN = ""
"""The first memory of the first backend, where inputs, outputs and weights are."""


class MemorySpaces:
    """Memories by the names that ops use: `gpu.global`, or `global` for any backend's."""

    def __init__(self, target: Target | None = None) -> None:
        """Those of `target`, by default one without a name or an end."""
        self._of_backend: dict[str, str] = {}
        self._known: dict[str, str] = {}
        self.bytes: Mapping[str, int] = {}
        if target is not None:
            self._add(target)

    def _add(self, target: Target) -> None:
        first, *others = target.backends
        self._of_backend = {first.name: MAIN}
        self._known = {memory.name: f"{first.name}.{memory.name}" for memory in first.memories}
        if first.memories:
            main = first.memories[0].name
            self._known |= {main: MAIN, f"{first.name}.{main}": MAIN}
        for backend in others:
            for memory in backend.memories:
                name = f"{backend.name}.{memory.name}"
                self._known |= {name: name, memory.name: self._known.get(memory.name, name)}
            if backend.memories:
                self._of_backend[backend.name] = f"{backend.name}.{backend.memories[0].name}"
        self.bytes = {
            f"{backend.name}.{memory.name}": memory.bytes
            for backend in target.backends
            for memory in backend.memories
        }

    def of(self, op: Operation) -> str:
        """Where `op` says that its results are: by a copy, or by the backend it runs on."""
        named = op.memory if isinstance(op, CopyOp | ChannelOp) else op.attributes.get(MEMORY)
        if isinstance(named, StringAttr):
            return self._known.get(named.data, named.data)
        backend = op.attributes.get("braid.backend")
        if isinstance(backend, BackendAttr):
            return self._of_backend.get(backend.backend.data, backend.backend.data)
        return MAIN
