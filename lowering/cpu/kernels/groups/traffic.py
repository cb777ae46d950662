"""What a group moves to and from memory, for estimates of its time."""

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.emit.machine import VectorUnit


def stored_bytes(group: FusedOp, choice: LayoutChoice) -> int:
    """Bytes of all operands and results, each counted once."""
    values = (*group.inputs, *group.outputs)
    layouts = (*choice.operands, *choice.results)
    return sum(storage_bytes(v.type, layout) for v, layout in zip(values, layouts, strict=True))


def moving_seconds(bytes: int, unit: VectorUnit) -> float:
    """Seconds to move so much: what fits the last cache was left there by the kernel before."""
    cached = min(bytes, unit.last_cache_bytes)
    return cached / unit.cached_bytes + (bytes - cached) / unit.memory_bytes
