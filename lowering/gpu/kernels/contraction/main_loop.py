"""The loop of a product over its depths: copies to a ring of stages run ahead of the arithmetic."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from xdsl.dialects import arith

from braid.lowering.gpu.kernels.contraction.code import Code, Value
from braid.lowering.gpu.kernels.contraction.copies import TileCopy


class Cores(Protocol):
    """What multiplies the tiles of a stage."""

    @property
    def reads_ahead(self) -> bool:
        """Whether fragments of a step are read while those of the step before are multiplied."""
        ...

    @property
    def steps(self) -> int:
        """Of a stage."""
        ...

    @property
    def sums(self) -> int:
        """How many a thread has."""
        ...

    def zero(self, code: Code) -> Value:
        """Of the type of sums."""
        ...

    def prepare(self, code: Code, thread: Value) -> None:
        """What is the same for all stages."""
        ...

    def load(self, code: Code, shared: Value, step: int) -> list[Value]:
        """The thread's fragments of a step of the stage at `shared`."""
        ...

    def multiply(
        self, code: Code, sums: Sequence[Value], fragments: Sequence[Value]
    ) -> list[Value]:
        """The sums and the products of a step."""
        ...

    def stage(self, code: Code, shared: Value, sums: Sequence[Value]) -> None:
        """Writes the thread's sums to the rows of the tile."""
        ...


@dataclass(frozen=True)
class Ring:
    """Stages of `size` bytes from `shared` on."""

    shared: Value
    size: int
    stages: int

    @property
    def ahead(self) -> int:
        """Stages that are copied before the first one is used."""
        return self.stages - 1

    def next(self, code: Code, slot: Value) -> Value:
        """The slot after this one."""
        more = code.add(slot, self.size)
        wraps = code.insert(arith.CmpiOp(more, code.number(self.stages * self.size), "eq"))
        return code.select(wraps, code.number(0), more)


@dataclass(frozen=True)
class MainLoop:
    """Adds up `turns` stages of `depth` elements each, by copies and cores that are prepared.

    The first one is at depth `begin`, if that is not 0.
    """

    cores: Cores
    copies: Sequence[TileCopy]
    ring: Ring
    depth: int
    turns: int
    begin: Value | None = None

    def emit(self, code: Code) -> list[Value]:
        """The thread's sums."""
        cores, ring = self.cores, self.ring
        for stage in range(ring.ahead):
            at = code.number(min(stage, self.turns - 1) * self.depth)
            self._issue(code, code.at(ring.shared, stage * ring.size), at, 0, len(self._work))
            _commit(code)
        _wait(code, ring.ahead - 1)
        carried = [
            code.number(0),
            code.number(ring.ahead * ring.size),
            code.number(min(ring.ahead, self.turns - 1) * self.depth),
            *[cores.zero(code)] * cores.sums,
            *(cores.load(code, ring.shared, 0) if cores.reads_ahead else []),
        ]
        begin, end, step = (code.number(n) for n in (0, self.turns, 1))
        results = code.loop(begin, end, step, carried, self._turn)
        return results[3 : 3 + cores.sums]

    @property
    def _work(self) -> list[tuple[TileCopy, int]]:
        return [(copy, n) for copy in self.copies for n in range(copy.count)]

    def _issue(self, code: Code, slot: Value, at: Value, first: int, last: int) -> None:
        """Copies number `first` to `last` of the stage that begins `at` depths behind the first."""
        depth = at if self.begin is None else code.add(self.begin, at)
        for copy, n in self._work[first:last]:
            copy.issue(code, slot, depth, [n])

    def _turn(self, code: Code, turn: Value, carried: Sequence[Value]) -> Sequence[Value]:
        """One stage: its steps, and between them the copies of a stage to come."""
        cores, ring = self.cores, self.ring
        read, write, at, *rest = carried
        sums, held = list(rest[: cores.sums]), list(rest[cores.sums :])
        target = code.at(ring.shared, write)
        issued, next_read = 0, ring.next(code, read)
        for step in range(cores.steps):
            last = step == cores.steps - 1
            held, upcoming = self._fragments(code, step, held, read, next_read)
            if not last or cores.steps == 1:
                share = len(self._work) * (step + 1) // max(cores.steps - 1, 1)
                self._issue(code, target, at, issued, share)
                issued = share
            sums = cores.multiply(code, sums, held)
            held = upcoming
        if not cores.reads_ahead:
            _commit(code)
            _wait(code, ring.ahead - 1)
        further = code.least(code.add(at, self.depth), (self.turns - 1) * self.depth)
        # What was read now is written next.
        return [next_read, read, further, *sums, *held]

    def _fragments(
        self, code: Code, step: int, held: list[Value], read: Value, next_read: Value
    ) -> tuple[list[Value], list[Value]]:
        """Those of a step, and those of the next one, which are read already."""
        cores, shared = self.cores, self.ring.shared
        if not cores.reads_ahead:
            return cores.load(code, code.at(shared, read), step), []
        if step < cores.steps - 1:
            return held, cores.load(code, code.at(shared, read), step + 1)
        _commit(code)
        _wait(code, self.ring.ahead - 1)
        return held, cores.load(code, code.at(shared, next_read), 0)


def _commit(code: Code) -> None:
    code.intrinsic("llvm.nvvm.cp.async.commit.group", [], [])


def _wait(code: Code, left: int) -> None:
    """Until all but so many stages have landed, for all threads."""
    code.intrinsic("llvm.nvvm.cp.async.wait.group", [code.number(left)], [])
    code.barrier()
