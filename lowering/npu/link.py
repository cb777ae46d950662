"""Joins the objects of subgraphs to one instruction stream."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from braid.targets.costs.device_rates import DeviceRates
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.instructions import Buffer, Instruction, Kind, Stream
from braid.targets.simulator.steps import Transfers, UnitWork, step_seconds
from braid.targets.simulator.stream_object import Action, Placement, StreamObject

Token = tuple[int, ...]
"""The last instruction of every unit that must have ended, -1 for none."""


@dataclass(frozen=True)
class Use:
    """The buffers that an instruction uses, with the `number` of its op or of the value it moves.

    `reads` and `writes` are buffers of the stream. Of the `steps` of an op this is `step`, from 1
    on.
    """

    number: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    step: int = 1
    steps: int = 1
    is_compute: bool = False


@dataclass(frozen=True)
class Linked:
    """A stream, and the operands of its instructions; None for a sync and without traffic."""

    stream: Stream
    uses: tuple[Use | None, ...]


def link(
    objects: Iterable[tuple[StreamObject, Placement]],
    backend: BackendDescription,
    transfers: Transfers,
) -> Linked:
    """Return the stream that runs `objects` one after the other.

    Instructions get their numbers and waits their syncs, also across objects: an object waits for
    the values that it needs and for free memory on the chip, not for the end of the earlier object.
    Of units that share their work the one that is free first gets an instruction, as if each ran
    alone on its unit: as the search for the order has it.
    """
    linker = _Linker(backend, transfers)
    for part, placement in objects:
        linker.add(part, placement)
    return linker.linked()


class _Linker:
    """The state of linking: the known facts about all issued instructions, by their final
    numbers."""

    def __init__(self, backend: BackendDescription, transfers: Transfers) -> None:
        self.backend, self._rates = backend, DeviceRates(backend)
        self.transfers = transfers
        self.free = [0.0] * len(backend.units)
        self.seconds: list[float] = []
        """The seconds at which each instruction has ended, as estimated."""
        self.instructions: list[Instruction] = []
        self.ops: list[str] = []
        self.buffers: list[Buffer] = []
        # A buffer has a name when it is filled, and its number when it is released.
        self.uses: list[Use | None] = []
        self.holds: dict[int, int] = {}
        self.filled_buffers = 0
        self.released_buffers: list[int] = []
        self.start: Token = (-1,) * len(backend.units)
        self.waited: list[list[int]] = [[*self.start] for _ in backend.units]
        self.ends: dict[int, Token] = {}
        self.stored: dict[int, Token] = {}
        # A value that is handed on: since when it exists, and its remaining readers.
        self.since: dict[int, Token] = {}
        self.until: dict[int, Token] = {}
        self.filled: dict[int, int] = {}
        self.credit = transfers.capacity
        self.space = self.start
        self.released: deque[tuple[int, Token]] = deque()
        self.name: str | None = None

    def add(self, part: StreamObject, placement: Placement) -> None:
        """Issue the events of an object."""
        exported: set[int] = set()
        tokens: list[Token] = []
        current = -1
        for event in part.events:
            # A load that is repeated for a hand-over belongs to the op before it.
            if event.op != current and event.op < len(placement.names):
                current = event.op
                self.name = placement.names[current]
            after = self._join(tokens[number] for number in event.after)
            subject = event.subject
            match event.action:
                case Action.RESERVE:
                    after = self._reserve(subject)
                case Action.ENTER:
                    made = (placement.values[value] for value in part.makes[subject])
                    since = (self.since[value] for value in made)
                    after = self._join((self.ends[placement.ops[subject]], *since))
                case Action.OVERWRITE:
                    value = placement.values[subject]
                    after = self._join((after, self.until.pop(value, self.start)))
                    (made,) = part.makes[event.op]
                    self.filled[placement.values[made]] = self.filled[value]
                    self.holds[placement.values[made]] = self.holds[value]
                case Action.COMPUTE:
                    made = [placement.values[value] for value in part.makes[subject]]
                    op = placement.ops[subject]
                    for value in made:
                        self._fill(value)
                    use = self._use(op, placement.reads[subject], made)
                    after = self._compute(part.steps[subject], made, after, use)
                    self.ends[placement.ops[subject]] = after
                case Action.LOAD:
                    value = placement.values[subject]
                    sources = (value, *placement.sources[subject])
                    after = self._join((after, *(self.stored.get(v, self.start) for v in sources)))
                    step = UnitWork(self.transfers.load, part.sizes[subject])
                    self.holds.pop(value, None)
                    self._fill(value)
                    after = self._emit(step, after, Kind.LOAD, self._use(value, (), (value,)))
                    self.filled[value] = len(self.instructions) - 1
                case Action.STORE:
                    step = UnitWork(self.transfers.store, part.sizes[subject])
                    value = placement.values[subject]
                    after = self._emit(step, after, Kind.STORE, self._use(value, (value,), ()))
                    self.stored[value] = after
                case Action.EXPORT:
                    exported.add(subject)
                    self.since[placement.values[subject]] = after
                case Action.RELEASE:
                    value = placement.values[subject]
                    after = self._join((after, self.until.pop(value, self.start)))
                    if subject in exported:
                        self.until[value] = after
                    else:
                        self._release(value, part.sizes[subject], after)
            tokens.append(after)

    def linked(self) -> Linked:
        """Return the program of all that was added."""
        number = {name: place for place, name in enumerate(self.released_buffers)}
        uses = (
            use
            and replace(
                use,
                reads=tuple(number[name] for name in use.reads),
                writes=tuple(number[name] for name in use.writes),
            )
            for use in self.uses
        )
        stream = Stream(tuple(self.instructions), tuple(self.ops), tuple(self.buffers))
        return Linked(stream, tuple(uses))

    def _fill(self, value: int) -> None:
        """Give a value the next buffer, unless it overlays another one."""
        if value not in self.holds:
            self.holds[value] = self.filled_buffers
            self.filled_buffers += 1

    def _use(self, number: int, reads: Iterable[int], writes: Iterable[int]) -> Use | None:
        """Return the operands of an instruction, by the names of buffers; None for values without
        one."""
        try:
            read, written = (tuple(self.holds[v] for v in values) for values in (reads, writes))
        except KeyError:
            return None
        return Use(number, read, written)

    def _compute(
        self, steps: Sequence[UnitWork], made: Sequence[int], after: Token, use: Use | None
    ) -> Token:
        """Issue the steps in order; later instructions wait for the last of them."""
        for number, step in enumerate(steps):
            kind = Kind.named(self.backend.units[step.unit].resource)
            own = use and replace(use, step=number + 1, steps=len(steps), is_compute=True)
            after = self._emit(step, after, kind, own)
            if number == 0:
                for value in made:
                    self.filled.setdefault(value, len(self.instructions) - 1)
        return after

    def _reserve(self, size: int) -> Token:
        """Return when `size` bytes are free for the next instruction, the oldest memory first."""
        while self.credit < size:
            freed, after = self.released.popleft()
            self.credit += freed
            self.space = self._join((self.space, after))
        self.credit -= size
        return self.space

    def _release(self, value: int, size: int, after: Token) -> None:
        """Note from which instruction until which a buffer is taken."""
        last = tuple(place for place in after if place >= 0)
        self.buffers.append(Buffer(size, self.filled[value], last))
        self.released_buffers.append(self.holds.pop(value))
        self.released.append((size, after))

    def _join(self, tokens: Iterable[Token]) -> Token:
        """Return when all have ended."""
        joined = self.start
        for token in tokens:
            joined = token if joined == self.start else tuple(map(max, joined, token))
        return joined

    def _emit(self, step: UnitWork, after: Token, kind: Kind, use: Use | None) -> Token:
        """Issue one instruction for a unit, after the waits that earlier ones do not imply."""
        if self.name is not None:
            number = len(self.ops) if self.name.endswith("#") else ""
            self.ops.append(f"{self.name}{number}")
            self.name = None
        unit = min(self.backend.kinds[step.unit], key=self.free.__getitem__)
        ready = max((self.seconds[place] for place in after if place >= 0), default=0.0)
        for other, place in enumerate(after):
            if other != unit and place > self.waited[unit][other]:
                self.waited[unit][other] = place
                self._append(Instruction(Kind.SYNC, unit, place, len(self.ops) - 1), ready)
        self.free[unit] = end = max(self.free[unit], ready) + step_seconds(step, self._rates)
        op = len(self.ops) - 1
        self._append(Instruction(kind, unit, step.amount, op, step.declared), end, use)
        place = len(self.instructions) - 1
        return tuple(place if other == unit else -1 for other in range(len(self.start)))

    def _append(self, instruction: Instruction, end: float, use: Use | None = None) -> None:
        self.instructions.append(instruction)
        self.uses.append(use)
        self.seconds.append(end)
