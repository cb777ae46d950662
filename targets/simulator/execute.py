"""Runs an instruction stream on bytes, in simulated time.

The memory of the chip is an array of bytes, and instructions know nothing but addresses in it: one
reads its operands when it begins and writes its results when it ends. In between, its results are
poison, and so is a buffer when its use ends. If an operand changes while an instruction runs, or
another instruction writes to its results, these are poison as well. So a stream that reads too
early, frees too early, or uses one address twice has wrong results.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from braid.support.errors import BraidError
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.instructions import Access, Kind, Range, Stream
from braid.targets.simulator.simulate import simulate

Bytes = NDArray[np.uint8]
Kernel = Callable[[Sequence[Bytes]], Sequence[Bytes]]
"""A kernel of a stream, which computes the bytes of its results from those of its operands."""

POISON = 0xFF
"""The byte of all that must not be read: a NaN as a number of any width, -1 as an integer."""


def execute(
    stream: Stream,
    backend: BackendDescription,
    kernels: Mapping[str, Kernel],
    tensors: Mapping[int, Bytes],
) -> list[Bytes]:
    """Return the tensors outside of the chip after `stream` has run; `tensors` are those it starts
    with.

    All other tensors are poison until they are stored. Raises BraidError as `simulate` does, for a
    stream without operands, for an address beyond the memory, and for sizes that do not fit.
    """
    if not stream.executes:
        raise BraidError(
            "the stream does not list the reads and writes of its instructions",
            hint="it can be simulated, but not run; compile the model again",
        )
    outside = [np.full(tensor.size, POISON, np.uint8) for tensor in stream.tensors]
    for number, data in tensors.items():
        if data.size != stream.tensors[number].size:
            raise BraidError(
                f"tensor {number} has {data.size} bytes, the stream expects "
                f"{stream.tensors[number].size}"
            )
        outside[number][:] = data
    timeline = simulate(stream, backend)
    chip = np.full(backend.memories[0].bytes, POISON, np.uint8)
    machine = _Chip(stream, kernels, chip, outside)
    for event in timeline.events:
        (machine.end if event.ends else machine.begin)(event.index)
    return outside


@dataclass
class _Chip:
    """The bytes on the chip and outside of it, and the data that instructions in progress have
    read."""

    stream: Stream
    kernels: Mapping[str, Kernel]
    memory: Bytes
    outside: list[Bytes]
    read: dict[int, list[Bytes]] = field(default_factory=dict[int, list[Bytes]])

    def __post_init__(self) -> None:
        self.left = [{buffer.first, *buffer.last} for buffer in self.stream.buffers]
        self.used_by: dict[int, list[int]] = {}
        for number, places in enumerate(self.left):
            for place in places:
                self.used_by.setdefault(place, []).append(number)

    def begin(self, index: int) -> None:
        """Read the operands, and poison what will be written."""
        access = self._access(index)
        sources, results = self._sources(index, access), self._results(index, access)
        self.read[index] = [part.copy() for part in sources]
        for part in results:
            part[:] = POISON

    def end(self, index: int) -> None:
        """Write the results, and poison buffers that nobody uses any more."""
        access = self._access(index)
        read, results = self.read.pop(index), self._results(index, access)
        # An overwritten operand has been read before it was poisoned.
        kept = all(
            np.array_equal(now, before)
            for now, before, own in zip(
                self._sources(index, access), read, self._is_own(access), strict=True
            )
            if not own
        )
        alone = all((part == POISON).all() for part in results)
        made = self._made(index, access, read) if kept and alone else None
        for place, part in enumerate(results):
            if made is not None and made[place].size != part.size:
                raise BraidError(
                    f"instruction {index} makes {made[place].size} bytes, but writes {part.size}"
                )
            part[:] = POISON if made is None else made[place]
        for number in self.used_by.get(index, ()):
            self.left[number].discard(index)
            where = self.stream.buffers[number].range
            if not self.left[number] and where is not None:
                self._at(index, where)[:] = POISON

    def _made(self, index: int, access: Access, read: list[Bytes]) -> Sequence[Bytes]:
        """Return the results of an instruction for what it read."""
        if not access.kernel:
            return read
        own = self._is_own(access)
        others = [part for part, is_own in zip(read, own, strict=True) if not is_own]
        if access.step > 1:
            before = read[-len(access.writes) :]
            made: Sequence[Bytes] = [_hidden(part, access.step - 1, others) for part in before]
        elif (kernel := self.kernels.get(access.kernel)) is None:
            raise BraidError(f"instruction {index} names kernel '{access.kernel}', of nowhere")
        else:
            made = kernel(read)
        if access.step < access.steps:
            made = [_hidden(part, access.step, others) for part in made]
        return made

    def _access(self, index: int) -> Access:
        access = self.stream.instructions[index].access
        assert access is not None
        return access

    def _sources(self, index: int, access: Access) -> list[Bytes]:
        """Return what it reads; steps after the first of an op read what is there of the
        results.
        """
        if self.stream.instructions[index].kind is Kind.LOAD and access.tensors:
            return [self.outside[number] for number in access.tensors]
        return [self._at(index, part) for part in _ranges_read(access)]

    def _results(self, index: int, access: Access) -> list[Bytes]:
        if self.stream.instructions[index].kind is Kind.STORE and access.tensors:
            return [self.outside[number] for number in access.tensors]
        return [self._at(index, part) for part in access.writes]

    def _is_own(self, access: Access) -> list[bool]:
        """Return whether what is read is what the op itself writes."""
        if access.tensors:
            return [False] * max(len(access.reads), len(access.tensors))
        return [any(part.overlaps(own) for own in access.writes) for part in _ranges_read(access)]

    def _at(self, index: int, part: Range) -> Bytes:
        if part.end > self.memory.size:
            raise BraidError(
                f"instruction {index} uses bytes {part.address} to {part.end} of the chip's "
                f"{self.memory.size}"
            )
        return self.memory[part.address : part.end]


def _ranges_read(access: Access) -> list[Range]:
    if access.step == 1:
        return [*access.reads]
    others = [r for r in access.reads if not any(r.overlaps(own) for own in access.writes)]
    return [*others, *access.writes]


def _hidden(data: Bytes, step: int, operands: Sequence[Bytes]) -> Bytes:
    """Swap in the results as a step leaves them that is not the last, or the other way round.

    They are of use only to the next step of the same op, on the same operands.
    """
    key = step
    for operand in operands:
        key = crc32(operand.tobytes(), key)
    return data ^ np.resize(np.frombuffer(key.to_bytes(4, "little"), np.uint8), data.shape)
