"""Streams with one mistake, and whether somebody notices."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from random import Random

import numpy as np

from braid.lowering.npu.stream_program import StreamProgram
from braid.support.errors import BraidError
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.happens_before import HappensBefore
from braid.targets.simulator.instructions import Access, Instruction, Kind, Range, Stream
from test.unit.lowering.npu.random_tiles import Case

SLOW = 1.0
"""Seconds of an instruction that is made to be in the way of a mistake."""


@dataclass(frozen=True)
class Mutant:
    """A stream with a mistake of `kind`, which is `what` in it.

    It shows at the latest if instruction `slow` takes long.
    """

    kind: str
    what: str
    stream: Stream
    slow: int | None = None


def is_caught(
    mutant: Mutant, program: StreamProgram, backend: BackendDescription, case: Case
) -> bool:
    """Whether it is refused or its results are wrong, as it is or with the slow instruction."""
    streams = [mutant.stream]
    slow = {*_races(mutant.stream), *([] if mutant.slow is None else [mutant.slow])}
    for place in sorted(slow):
        slowed = replace(mutant.stream.instructions[place], seconds=SLOW)
        streams.append(_with(mutant.stream, place, slowed))
    return any(_is_wrong(stream, program, backend, case) for stream in streams)


def _is_wrong(
    stream: Stream, program: StreamProgram, backend: BackendDescription, case: Case
) -> bool:
    try:
        made = program.run(backend, case.values, stream=stream)
    except BraidError:
        return True
    return not all(map(np.array_equal, made, case.expected))


def mutants(stream: Stream, random: Random) -> Iterator[Mutant]:
    """One of each kind, where there is one.

    A stream with a sync less, or another unit, is only one if two instructions race in it:
    `_races` decides that without running anything.
    """
    for make in (_without_sync, _freed_early, _address_shifted, _unit_swapped, _tensor_swapped):
        found = [*make(stream)]
        random.shuffle(found)
        racing = make in (_without_sync, _unit_swapped)
        yield from islice(
            (m for m in found if not racing or any(True for _ in _races(m.stream))), 1
        )


def _with(stream: Stream, place: int, instruction: Instruction) -> Stream:
    listed = [*stream.instructions]
    listed[place] = instruction
    return replace(stream, instructions=tuple(listed))


def _without_sync(stream: Stream) -> Iterator[Mutant]:
    """Let a needed sync wait for nothing: for the first instruction, which ended long ago."""
    for place, instruction in enumerate(stream.instructions):
        if instruction.kind is Kind.SYNC:
            # It stays as an instruction, so that all numbers and fetches are what they were.
            gone = _with(stream, place, replace(instruction, amount=_harmless(stream, place)))
            yield Mutant("sync dropped", f"at {place}", gone, instruction.amount)


def _harmless(stream: Stream, place: int) -> int:
    """Return waits that the unit has satisfied anyway: its own last instruction, or the first
    sync."""
    unit = stream.instructions[place].unit
    own = [n for n in range(place) if stream.instructions[n].unit == unit]
    return own[-1] if own else place - 1


def _freed_early(stream: Stream) -> Iterator[Mutant]:
    """End the use of a buffer before one of its readers, unless another reader follows."""
    order = HappensBefore(stream)
    for number, buffer in enumerate(stream.buffers):
        for last in buffer.last:
            rest = tuple(other for other in buffer.last if other != last)
            if last == buffer.first or any(order.is_before(last, other) for other in rest):
                continue
            buffers = [*stream.buffers]
            buffers[number] = replace(buffer, last=rest)
            freed = replace(stream, buffers=tuple(buffers))
            yield Mutant("buffer freed early", f"{number} of {last}", freed, last)


def _address_shifted(stream: Stream) -> Iterator[Mutant]:
    for place, instruction in enumerate(stream.instructions):
        access = instruction.access
        if access is None:
            continue
        for shift in (-4, 4, 64):
            for side in ("reads", "writes"):
                ranges: tuple[Range, ...] = getattr(access, side)
                for number, part in enumerate(ranges):
                    if part.address + shift < 0:
                        continue
                    moved = [*ranges]
                    moved[number] = replace(part, address=part.address + shift)
                    changed = replace(access, **{side: tuple(moved)})
                    shifted = _with(stream, place, replace(instruction, access=changed))
                    what = f"{instruction} {side} {number} by {shift}"
                    yield Mutant("address shifted", what, shifted)


def _unit_swapped(stream: Stream) -> Iterator[Mutant]:
    units = {i.unit for i in stream.instructions}
    for place, instruction in enumerate(stream.instructions):
        for unit in units - {instruction.unit}:
            if instruction.kind is not Kind.SYNC:
                swapped = _with(stream, place, replace(instruction, unit=unit))
                yield Mutant("unit swapped", f"of {place} to {unit}", swapped, place)


def _tensor_swapped(stream: Stream) -> Iterator[Mutant]:
    """Load another tensor of the same size."""
    for place, instruction in enumerate(stream.instructions):
        access = instruction.access
        if access is not None and instruction.kind is Kind.LOAD and len(access.tensors) == 1:
            (own,) = access.tensors
            for other, tensor in enumerate(stream.tensors):
                if other != own and tensor.size == stream.tensors[own].size:
                    changed = replace(instruction, access=replace(access, tensors=(other,)))
                    yield Mutant("tensor swapped", f"of {place}", _with(stream, place, changed))


def _races(stream: Stream) -> Iterator[int]:
    """Return the first of two unordered instructions on the same bytes, one of which writes."""
    order = HappensBefore(stream)
    uses = [
        (place, i.kind, i.access)
        for place, i in enumerate(stream.instructions)
        if i.access is not None
    ]
    for number, (second, second_kind, second_access) in enumerate(uses):
        for first, first_kind, first_access in uses[:number]:
            meet = _meet(first_kind, first_access, second_kind, second_access)
            if meet and not order.is_before(first, second):
                yield first


def _meet(first_kind: Kind, first: Access, second_kind: Kind, second: Access) -> bool:
    pairs = ((first.writes, second.reads), (first.reads, second.writes))
    for one, other in (*pairs, (first.writes, second.writes)):
        if any(a.overlaps(b) for a in one for b in other):
            return True
    stores = Kind.STORE in (first_kind, second_kind)
    return stores and bool({*first.tensors} & {*second.tensors})
