"""The loop of a product over K: copies to a ring of stages run ahead of the arithmetic."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from braid.lowering.gpu.contraction.code import Code, Value
from braid.lowering.gpu.contraction.copies import TileCopy


class Cores(Protocol):
    """The arithmetic that multiplies the tiles of a stage."""

    @property
    def steps(self) -> int:
        """Steps of a stage."""
        ...

    @property
    def tail(self) -> int:
        """Return how many of the steps follow the barrier that the next stage begins by."""
        ...

    @property
    def sums(self) -> int:
        """Return the number of sums of a thread."""
        ...

    def zero(self, code: Code) -> Value:
        """Return zero in the type of sums."""
        ...

    def prepare(self, code: Code, thread: Value) -> None:
        """Emit what all stages share."""
        ...

    def load(
        self, code: Code, shared: Value, step: int, before: Sequence[Value] = ()
    ) -> list[Value]:
        """Return the thread's fragments of a step of the stage at `shared`; `before` of the step
        before.

        They are read while the fragments of the previous step are multiplied.
        """
        ...

    def multiply(
        self, code: Code, sums: Sequence[Value], fragments: Sequence[Value], step: int
    ) -> list[Value]:
        """Return the sums and the products of a step."""
        ...

    def stage(self, code: Code, shared: Value, sums: Sequence[Value]) -> None:
        """Write the thread's sums to the rows of the tile."""
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
        """Return the slot after this one."""
        more = code.add(slot, self.size)
        wraps = code.equal(more, self.stages * self.size)
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
        """Return the thread's sums."""
        cores, ring = self.cores, self.ring
        # Before the loop: copies of the first `ahead` stages, each a tile [rows, depth] of A and
        # one [depth, columns] of B, as one group of copies for each stage.
        for stage in range(ring.ahead):
            at = code.number(min(stage, self.turns - 1) * self.depth)
            self._issue(code, code.at(ring.shared, stage * ring.size), at, 0, len(self._work))
            _commit(code)
        # The first stage has arrived.
        _wait(code, ring.ahead - 1)
        # Carried: the byte offsets of the slot that is read and of the slot that is written, the
        # position along K of the stage to copy, the thread's sums, and its fragments of the next
        # step.
        carried = [
            code.number(0),
            code.number(ring.ahead * ring.size),
            code.number(min(ring.ahead, self.turns - 1) * self.depth),
            *[cores.zero(code)] * cores.sums,
            *cores.load(code, ring.shared, 0),
        ]
        begin, end, step = (code.number(n) for n in (0, self.turns, 1))
        results = code.loop(begin, end, step, carried, self._turn)
        return results[3 : 3 + cores.sums]

    @property
    def _work(self) -> list[tuple[TileCopy, int]]:
        return [(copy, n) for copy in self.copies for n in range(copy.count)]

    def _issue(self, code: Code, slot: Value, at: Value, first: int, last: int) -> None:
        """Copy number `first` to `last` of the stage that begins `at` depths after the first."""
        depth = at if self.begin is None else code.add(self.begin, at)
        for copy, n in self._work[first:last]:
            copy.issue(code, slot, depth, [n])

    def _turn(self, code: Code, turn: Value, carried: Sequence[Value]) -> Sequence[Value]:
        """Emit one stage: its steps, and between them the copies of a stage to come."""
        cores, ring = self.cores, self.ring
        read, write, at, *rest = carried
        sums, held = list(rest[: cores.sums]), list(rest[cores.sums :])
        target = code.at(ring.shared, write)
        issued, next_read = 0, ring.next(code, read)
        for step in range(cores.steps):
            # The next stage must have arrived before its first fragments are read, which is in the
            # last `tail` steps of this one.
            if step == cores.steps - cores.tail:
                _wait(code, ring.ahead - 2)
            # Loads of the next step's fragments and copies of a later stage run beside the
            # products of this step: sums += A[rows, step] · B[step, columns].
            upcoming = self._upcoming(code, step, held, read, next_read)
            share = self._share(step)
            self._issue(code, target, at, issued, share)
            issued = share
            sums = cores.multiply(code, sums, held, step)
            held = upcoming
        _commit(code)
        # After the last stage its copies are repeated without being read, which avoids a branch.
        further = code.least(code.add(at, self.depth), (self.turns - 1) * self.depth)
        # The slot that was read now is written next.
        return [next_read, read, further, *sums, *held]

    def _share(self, step: int) -> int:
        """Return how many copies are issued until the end of a step.

        After the barrier, all threads have read the data that copies overwrite: the stage before,
        whose last steps some threads still read while others are at the first steps.
        """
        steps, tail = self.cores.steps, self.cores.tail
        done, of = (step + 1, max(steps - 1, 1)) if tail == 1 else (step + 1 - steps + tail, tail)
        return len(self._work) * min(max(done, 0), of) // of

    def _upcoming(
        self, code: Code, step: int, held: list[Value], read: Value, next_read: Value
    ) -> list[Value]:
        """Return the fragments of the next step, which are read already."""
        cores, shared = self.cores, self.ring.shared
        if step < cores.steps - 1:
            return cores.load(code, code.at(shared, read), step + 1, held)
        return cores.load(code, code.at(shared, next_read), 0)


def _commit(code: Code) -> None:
    code.intrinsic("llvm.nvvm.cp.async.commit.group", [], [])


def _wait(code: Code, left: int) -> None:
    """Wait until all but `left` stages have arrived, for all threads."""
    code.intrinsic("llvm.nvvm.cp.async.wait.group", [code.number(left)], [])
    code.barrier()
