"""Where storages go: weights one after the other, the rest into outputs and arenas."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.buffer import ALIGNMENT, BufferAttr
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.passes.storage.memory_spaces import MAIN
from braid.passes.storage.storage import Storage
from braid.solvers.packing import Buffer, Packing, pack

_QUICK = 0.05
"""Seconds to find out whether some tensors fit into an output."""


@dataclass(frozen=True)
class Arena:
    """How large the arena of a memory is, and how small it could be at best, in bytes."""

    memory: str
    size: int
    lower_bound: int

    @property
    def gap(self) -> float:
        """How far above the bound the arena is, as a fraction of the arena."""
        return 1 - self.lower_bound / self.size if self.size else 0.0


@dataclass
class WeightsSection:
    """Where parameters and constants lie, each key once in all functions; `size` in bytes."""

    places: dict[Attribute, BufferAttr] = field(default_factory=dict[Attribute, BufferAttr])
    size: int = 0

    def place(self, values: Sequence[tuple[SSAValue, Storage]]) -> None:
        """Gives the storages of parameters and constants offsets: each key one of its own."""
        for value, storage in values:
            key = _weight(value)
            if key is None:
                continue
            if key not in self.places:
                self.places[key] = BufferAttr.of("weights", self.size)
                self.size += -(-max(storage.size, 1) // ALIGNMENT) * ALIGNMENT
            storage.place = self.places[key]


def _weight(value: SSAValue) -> Attribute | None:
    owner = value.owner
    if isinstance(owner, ParameterOp):
        return owner.key
    return owner.value if isinstance(owner, ConstantOp) else None


def live_peak(storages: Sequence[Storage]) -> int:
    """The most bytes of the main arena that are live at once."""
    return int(_profile([s for s in storages if s.place is None and s.memory == MAIN]).max())


def live_at_peak(storages: Sequence[Storage]) -> set[Storage]:
    """The storages of the main arena that are live when most bytes are, whenever that is."""
    rest = [s for s in storages if s.place is None and s.memory == MAIN]
    live = _profile(rest)
    at_peak = live == live.max()
    return {s for s in rest if any(at_peak[b:e].any() for b, e in s.lifetimes)}


def _profile(storages: Sequence[Storage]) -> npt.NDArray[np.int64]:
    """Live bytes at the number of each op, or at each moment."""
    lifetimes = [(s.size, *interval) for s in storages for interval in s.lifetimes_apart]
    changes = np.zeros(max((end for _, _, end in lifetimes), default=0) + 1, np.int64)
    for size, begin, end in lifetimes:
        changes[begin] += size
        changes[end] -= size
    return np.cumsum(changes)


def place_in_outputs(storages: Sequence[Storage]) -> None:
    """Puts what is dead when an output is first written into the memory of that output.

    Only what is live at the peak of the rest is moved, the largest first: nothing else would make
    the arena smaller. A caller's output is aligned to its elements only; what needs more begins at
    the next multiple of the alignment.
    """
    outputs = [s for s in storages if s.place is not None and s.place.output_number is not None]
    for output in sorted(outputs, key=lambda storage: -storage.size):
        chosen: list[Storage] = []
        rejected: set[Storage] = set()
        while candidate := _at_peak(storages, chosen, rejected, output):
            if _pack_before([*chosen, candidate], output).arena_size <= output.size:
                chosen.append(candidate)
            else:
                rejected.add(candidate)
        packing = _pack_before(chosen, output)
        for storage, offset in zip(chosen, packing.offsets, strict=True):
            assert output.place is not None
            storage.place = output.place.after(offset)
            if _padding(storage, output):
                storage.place = storage.place.aligned()


def _at_peak(
    storages: Sequence[Storage],
    chosen: Sequence[Storage],
    rejected: set[Storage],
    output: Storage,
) -> Storage | None:
    """The largest storage at the peak of the arena that could live in `output` instead."""
    rest = [s for s in storages if s.place is None and s.memory == MAIN and s not in chosen]
    live = _profile(rest)
    at_peak = live == live.max()

    def peaks(storage: Storage) -> int:
        return sum(int(np.count_nonzero(at_peak[b:e])) for b, e in storage.lifetimes)

    movable = (
        s
        for s in rest
        if _is_before(s, output) and s.size <= output.size and s not in rejected and peaks(s)
    )
    return max(movable, key=lambda storage: (storage.size, peaks(storage)), default=None)


def _is_before(first: Storage, second: Storage) -> bool:
    """Whether `first` is dead when `second` is first written, or is where that begins."""
    if first.within is second:
        return True
    pairs = itertools.product(first.lifetimes, second.lifetimes)
    return first.upper < second.lower and not any(a < d and c < b for (a, b), (c, d) in pairs)


def _padding(storage: Storage, output: Storage) -> int:
    """Bytes that are left out before `storage` in `output`, at most, to align it."""
    return ALIGNMENT - output.element_bytes if storage.element_bytes > output.element_bytes else 0


def _pack_before(storages: Sequence[Storage], output: Storage) -> Packing:
    """Packs what is in `output` before that is written."""
    buffers = [
        replace(
            Buffer.live_in(s.lifetimes, s.size + _padding(s, output), ALIGNMENT),
            fixed_offset=0 if s.within is output else None,
        )
        for s in storages
    ]
    return pack(buffers, capacity=output.size, time_limit=_QUICK)


def _pack(storages: Sequence[Storage], time_limit: float) -> Packing:
    """Packs storages, those within one another as one."""
    number = {storage: index for index, storage in enumerate(storages)}

    def buffer(storage: Storage) -> Buffer:
        outermost = storage
        while outermost.within in number:
            outermost = outermost.within
        own = Buffer.live_in(storage.lifetimes, storage.size, ALIGNMENT)
        return replace(own, group=number[outermost])

    return pack([buffer(s) for s in storages], time_limit=time_limit)


def place_in_arenas(storages: Sequence[Storage], time_limit: float) -> list[Arena]:
    """Packs the storages without a place, each memory for itself; the main memory comes first."""
    movable = [storage for storage in storages if storage.place is None]
    arenas: list[Arena] = []
    for memory in dict.fromkeys((MAIN, *(storage.memory for storage in movable))):
        members = [storage for storage in movable if storage.memory == memory]
        packing = _pack(members, time_limit)
        space = f"arena:{memory}" if memory else "arena"
        for storage, offset in zip(members, packing.offsets, strict=True):
            storage.place = BufferAttr.of(space, offset)
        arenas.append(Arena(memory, packing.arena_size, packing.lower_bound))
    return arenas
