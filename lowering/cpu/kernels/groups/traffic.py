"""Compute the bytes that a group moves to and from memory, to estimate its time."""

from collections.abc import Sequence

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.analysis.tiles.read_shares import read_shares as shares_of_values
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.unit.vector_unit import VectorUnit


def stored_bytes(
    group: FusedOp, choice: LayoutChoice, shares: Sequence[float] | None = None
) -> int:
    """Return the bytes of all operands and results, each counted once; of operands only the parts
    that are read.

    `shares` are those of `read_shares`, for who asks about several choices.
    """
    shares = read_shares(group) if shares is None else shares
    read = (
        round(storage_bytes(value.type, layout) * share)
        for value, layout, share in zip(group.inputs, choice.operands, shares, strict=True)
    )
    results = zip(group.outputs, choice.results, strict=True)
    return sum(read) + sum(storage_bytes(value.type, layout) for value, layout in results)


def read_shares(group: FusedOp) -> tuple[float, ...]:
    """Return the part of each operand that the group reads, whatever the layouts."""
    shares = shares_of_values(group)
    return tuple(shares[value] for value in group.inputs)


def moving_seconds(bytes: int, unit: VectorUnit) -> float:
    """Return the seconds to move `bytes`; what fits the last cache was left there by the kernel
    before.
    """
    cached = min(bytes, unit.last_cache_bytes)
    return cached / unit.cached_bytes + (bytes - cached) / unit.memory_bytes
