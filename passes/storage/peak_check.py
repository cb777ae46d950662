"""The peak of a function's memory as tensors move into others, decision by decision."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import SSAValue

from braid.dialects.braid.regions import GroupOp
from braid.passes.storage.box_candidates import Candidate
from braid.passes.storage.memory_spaces import MAIN, MemorySpaces
from braid.passes.storage.placement import live_peak
from braid.passes.storage.storage import Storage
from braid.passes.storage.storage_assignment import StorageAssignment


def planned_peak(function: FuncOp, memories: MemorySpaces) -> int:
    """Return the most bytes of the main arena that are live at once, by the decisions on the
    groups.
    """
    assignment = StorageAssignment(function, memories)
    return live_peak(list(dict.fromkeys(assignment.of.values())))


class PeakCheck:
    """Accepts candidates as long as the peak stays within `limit` bytes.

    In straight-line code a decision only merges storages, and the result is live while any of them
    was. So the live bytes at each op are kept and updated. Control flow and calls decide anew what
    shares memory whenever lifetimes change: there, everything is planned again.
    """

    def __init__(self, function: FuncOp, memories: MemorySpaces, limit: int) -> None:
        """Start from the decisions that are written on the groups."""
        self.limit = limit
        self._function, self._memories = function, memories
        self._live = _LiveBytes(StorageAssignment(function, memories))
        self._is_straight = not any(
            isinstance(op, CallOp) or (op.regions and not isinstance(op, GroupOp))
            for op in function.body.block.ops
        )

    def accept(self, candidate: Candidate) -> bool:
        """Return whether `candidate`, whose decision has just been written, keeps the limit.

        If it does, the next decision is judged with it in place.
        """
        if not self._is_straight:
            return planned_peak(self._function, self._memories) <= self.limit
        return self._live.merge(candidate, self.limit)


class _LiveBytes:
    """Bytes of the main arena that are live at the number of each op."""

    def __init__(self, assignment: StorageAssignment) -> None:
        self._of = assignment.of
        self._merged: dict[Storage, Storage] = {}
        self._bytes: npt.NDArray[np.int64] = np.zeros(len(assignment.numbering) + 1, np.int64)
        for storage in dict.fromkeys(self._of.values()):
            _add(self._bytes, storage, 1)

    def merge(self, candidate: Candidate, limit: int) -> bool:
        """Make the boxes of `candidate` a part of its whole if the peak is within `limit` then."""
        whole = self._find(candidate.whole)
        parts = {whole, *(self._find(box.value) for box in candidate.boxes.values())}
        lower, upper = min(s.lower for s in parts), max(s.upper for s in parts)
        union = replace(whole, lower=lower, upper=upper)
        changed = self._bytes.copy()
        for storage in parts:
            _add(changed, storage, -1)
        _add(changed, union, 1)
        if changed.max() > limit:
            return False
        self._bytes = changed
        self._merged |= dict.fromkeys(parts, union)
        return True

    def _find(self, value: SSAValue) -> Storage:
        storage = self._of[value]
        while storage in self._merged:
            storage = self._merged[storage]
        return storage


def _add(live: npt.NDArray[np.int64], storage: Storage, sign: int) -> None:
    """Count `storage` at the ops from its first to its last (arguments are before op 0)."""
    if storage.place is None and storage.memory == MAIN:
        live[storage.lower + 1 : storage.upper + 2] += sign * storage.bytes
