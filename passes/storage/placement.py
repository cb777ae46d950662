"""Place storages: weights one after the other, the rest into outputs and arenas."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from xdsl.ir import Attribute, SSAValue

from braid.analysis.storage.stored_weights import expansion_of_weight, weight_key
from braid.dialects.braid.attribute_names import STORED_BUFFER, STORED_TYPE
from braid.dialects.braid.buffer import ALIGNMENT, BufferAttr, aligned
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.expansion import Expansion
from braid.passes.storage.memory_spaces import MAIN
from braid.passes.storage.storage import Storage
from braid.solvers.packing import Buffer, Packing, pack

_QUICK = 0.05
"""Seconds to find out whether some tensors fit into an output."""


@dataclass(frozen=True)
class Arena:
    """The size of the arena of a memory, with a lower bound of it, in bytes."""

    memory: str
    size: int
    lower_bound: int

    @property
    def gap(self) -> float:
        """Return how far above the bound the arena is, as a fraction of the arena."""
        return 1 - self.lower_bound / self.size if self.size else 0.0


@dataclass
class WeightsSection:
    """The places of parameters and constants, each key once in all functions; sizes in bytes.

    Weights that loading expands are stored unexpanded, and have places in memory that loading
    fills. If `narrow` is None, none are expanded; else it gives, by key, the 16-bit type that holds
    all values of a parameter.
    """

    narrow: Mapping[str, Attribute] | None = None
    places: dict[Attribute, BufferAttr] = field(default_factory=dict[Attribute, BufferAttr])
    stored: dict[Attribute, BufferAttr] = field(default_factory=dict[Attribute, BufferAttr])
    size: int = 0
    expanded_size: int = 0

    def place(self, values: Sequence[tuple[SSAValue, Storage]]) -> None:
        """Give the storages of parameters and constants offsets: each key one of its own.

        Write to the op where expanded weights are stored, and in which type.
        """
        for value, storage in values:
            op, key = value.owner, weight_key(value)
            if not isinstance(op, ConstantOp | ParameterOp) or key is None:
                continue
            type = self._stored_type(op)
            if key not in self.places:
                expands = self.narrow is not None
                self._add(key, expansion_of_weight(op, type) if expands else None, storage)
            storage.place = self.places[key]
            if key in self.stored:
                op.attributes[STORED_BUFFER] = self.stored[key]
                if type is not None:
                    op.attributes[STORED_TYPE] = type

    def _stored_type(self, op: ConstantOp | ParameterOp) -> Attribute | None:
        if self.narrow is None or isinstance(op, ConstantOp):
            return None
        return self.narrow.get(op.key.data)

    def _add(self, key: Attribute, expansion: Expansion | None, storage: Storage) -> None:
        if expansion is None:
            self.places[key] = self._append(storage.bytes)
            return
        self.stored[key] = self._append(expansion.stored_bytes)
        self.places[key] = BufferAttr.of("expanded", self.expanded_size)
        self.expanded_size += aligned(storage.bytes)

    def _append(self, nbytes: int) -> BufferAttr:
        place = BufferAttr.of("weights", self.size)
        self.size += aligned(max(nbytes, 1))
        return place


def live_peak(storages: Sequence[Storage]) -> int:
    """Return the most bytes of the main arena that are live at once."""
    return LiveBytes(storages).peak


def live_at_peak(storages: Sequence[Storage]) -> set[Storage]:
    """Return the storages of the main arena that are live when most bytes are, whenever that is."""
    live = LiveBytes(storages)
    moments = live.moments_at_peak()
    return {storage for storage, count in zip(live.storages, moments, strict=True) if count}


class LiveBytes:
    """Bytes of the main arena that are live at each moment: the number of an op, or finer."""

    def __init__(self, storages: Sequence[Storage]) -> None:
        self.storages = [s for s in storages if s.place is None and s.memory == MAIN]
        owners = [(index, *i) for index, s in enumerate(self.storages) for i in s.lifetimes]
        self._intervals = np.array(owners, np.int64).reshape(-1, 3)
        ends = [end for s in self.storages for _, end in (*s.lifetimes, *s.lifetimes_apart)]
        changes = np.zeros(max(ends, default=0) + 1, np.int64)
        for storage in self.storages:
            for begin, end in storage.lifetimes_apart:
                changes[begin] += storage.bytes
                changes[end] -= storage.bytes
        self._live = np.cumsum(changes)

    @property
    def peak(self) -> int:
        """The most at any moment."""
        return int(self._live.max())

    def moments_at_peak(self) -> npt.NDArray[np.int64]:
        """Return for each of `storages` at how many moments of the peak it is live."""
        before = np.concatenate(([0], np.cumsum(self._live == self.peak)))
        owner, begin, end = self._intervals.T
        weights = before[end] - before[begin]
        return np.bincount(owner, weights, len(self.storages)).astype(np.int64)

    def remove(self, storage: Storage) -> None:
        """Take away the bytes of one of `storages`."""
        for begin, end in storage.lifetimes_apart:
            self._live[begin:end] -= storage.bytes


def place_in_outputs(storages: Sequence[Storage]) -> None:
    """Put values that are dead when an output is first written into the memory of that output.

    Only values that are live at the peak of the rest are moved, the largest first, since no others
    would make the arena smaller. A caller's output is aligned to its elements only; what needs more
    begins at the next multiple of the alignment.
    """
    outputs = [s for s in storages if s.place is not None and s.place.output_number is not None]
    for output in sorted(outputs, key=lambda storage: -storage.bytes):
        for storage, offset in _chosen_for(storages, output).items():
            assert output.place is not None
            storage.place = output.place.after(offset)
            if _padding(storage, output):
                storage.place = storage.place.aligned()


def _chosen_for(storages: Sequence[Storage], output: Storage) -> dict[Storage, int]:
    """Return the storages at the peak of the arena that are to live in `output` instead,
    and where.
    """
    live = LiveBytes(storages)
    sizes = np.array([storage.bytes for storage in live.storages], np.int64)
    movable = np.array(
        [s.bytes <= output.bytes and _is_before(s, output) for s in live.storages], bool
    )
    chosen = _BeforeOutput(output)
    at_peak = live.moments_at_peak()
    while True:
        possible = np.flatnonzero(movable & (at_peak > 0))
        if not possible.size:
            return chosen.offsets
        largest = possible[sizes[possible] == sizes[possible].max()]
        index = int(largest[at_peak[largest].argmax()])
        movable[index] = False
        if chosen.add(live.storages[index]):
            live.remove(live.storages[index])
            at_peak = live.moments_at_peak()


class _BeforeOutput:
    """The storages that lie in an output before that is written; `offsets` gives their
    positions."""

    def __init__(self, output: Storage) -> None:
        self.offsets: dict[Storage, int] = {}
        self._output = output
        self._taken = np.zeros((0, 4), np.int64)
        """Per interval of a lifetime: begin, end, first byte, end of bytes; then spare rows."""
        self._rows = 0

    def add(self, storage: Storage) -> bool:
        """Add a storage where it fits, if need be by packing all storages anew."""
        if storage.within is not self._output:
            beside = self._beside(storage)
            offset = self._lowest(storage, beside)
            if offset + self._size(storage) <= self._output.bytes:
                self._take(storage, offset)
                return True
            if self._is_too_much(storage, beside):
                return False
        storages = [*self.offsets, storage]
        packing = _pack_before(storages, self._output)
        if packing.arena_size > self._output.bytes:
            return False
        self._rows = 0
        for each, offset in zip(storages, packing.offsets, strict=True):
            self._take(each, offset)
        return True

    def _take(self, storage: Storage, offset: int) -> None:
        self.offsets[storage] = offset
        for begin, end in storage.lifetimes:
            if self._rows == len(self._taken):
                spare = np.zeros((len(self._taken) + 64, 4), np.int64)
                self._taken = np.concatenate([self._taken, spare])
            self._taken[self._rows] = begin, end, offset, offset + self._size(storage)
            self._rows += 1

    def _size(self, storage: Storage) -> int:
        return storage.bytes + _padding(storage, self._output)

    def _beside(self, storage: Storage) -> npt.NDArray[np.int64]:
        """Return the rows of values that are live at the same time."""
        taken = self._taken[: self._rows]
        meets = np.zeros(self._rows, bool)
        for begin, end in storage.lifetimes:
            meets |= (taken[:, 0] < end) & (begin < taken[:, 1])
        return taken[meets]

    def _lowest(self, storage: Storage, beside: npt.NDArray[np.int64]) -> int:
        """Return where there is a gap below and above the others."""
        offset, size = 0, self._size(storage)
        spans: list[list[int]] = beside[:, 2:].tolist()
        for low, high in sorted(spans):
            if offset + size <= low:
                break
            offset = max(offset, -(-high // ALIGNMENT) * ALIGNMENT)
        return offset

    def _is_too_much(self, storage: Storage, beside: npt.NDArray[np.int64]) -> bool:
        """Return whether more bytes would be live at once than the output has."""
        for begin, end in storage.lifetimes:
            for moment in {begin, *beside[(begin <= beside[:, 0]) & (beside[:, 0] < end), 0]}:
                live = beside[(beside[:, 0] <= moment) & (moment < beside[:, 1])]
                if int((live[:, 3] - live[:, 2]).sum()) + self._size(storage) > self._output.bytes:
                    return True
        return False


def _is_before(first: Storage, second: Storage) -> bool:
    """Return whether `first` is dead when `second` is first written, or is where that begins."""
    if first.within is second:
        return True
    pairs = itertools.product(first.lifetimes, second.lifetimes)
    return first.upper < second.lower and not any(a < d and c < b for (a, b), (c, d) in pairs)


def _padding(storage: Storage, output: Storage) -> int:
    """Return the bytes that are left out before `storage` in `output`, at most, to align it."""
    return ALIGNMENT - output.element_bytes if storage.element_bytes > output.element_bytes else 0


def _pack_before(storages: Sequence[Storage], output: Storage) -> Packing:
    """Pack the values that are in `output` before that is written."""
    buffers = [
        replace(
            Buffer.live_in(s.lifetimes, s.bytes + _padding(s, output), ALIGNMENT),
            fixed_offset=0 if s.within is output else None,
        )
        for s in storages
    ]
    return pack(buffers, capacity=output.bytes, time_limit=_QUICK)


def _pack(storages: Sequence[Storage], time_limit: float) -> Packing:
    """Pack storages; those inside of one another count as one."""
    number = {storage: index for index, storage in enumerate(storages)}

    def buffer(storage: Storage) -> Buffer:
        outermost = storage
        while outermost.within in number:
            outermost = outermost.within
        own = Buffer.live_in(storage.lifetimes, storage.bytes, ALIGNMENT)
        return replace(own, group=number[outermost])

    return pack([buffer(s) for s in storages], time_limit=time_limit)


def place_in_arenas(storages: Sequence[Storage], time_limit: float) -> list[Arena]:
    """Pack the storages without a place, each memory for itself; the main memory comes first."""
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
