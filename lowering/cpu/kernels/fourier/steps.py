"""The steps of a transform, in the order of T. Stockham: results come out in natural order.

A step of `radix` r goes over numbers x[q + s · (p + m · j)] with q below s, p below m and j below
r, where s · m · r is the length and s the product of the radices before. Of each q and p it
transforms the r numbers, multiplies result k by exp(-2πi p k / (m · r)) and writes it to
q + s · (r · p + k).
See P. Swarztrauber, "FFT algorithms for vector computers" (1984).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from braid.dialects.braid.fourier_tables import roots_of_unity
from braid.lowering.cpu.kernels.fourier.butterflies import transformed
from braid.lowering.cpu.kernels.fourier.complex_numbers import Arithmetic, Complex
from braid.lowering.cpu.kernels.fourier.places import Places, Plane, Source, filled
from braid.lowering.cpu.kernels.fourier.tables import Tables, several, single
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index
from braid.lowering.emit.register_transpose import transposed


@dataclass(frozen=True)
class Step:
    """A step of `radix`, with `left` transforms of what follows and the product `done` before it.

    Its roots are in the table from `roots` on.
    """

    radix: int
    left: int
    done: int
    roots: int


def steps_of(radices: Sequence[int], tables: Tables, *, is_row: bool) -> list[Step]:
    """Return the steps, whose roots are added to the tables; the first one of a row reads vectors
    of them.
    """
    steps: list[Step] = []
    done, left = 1, int(np.prod(radices))
    for radix in radices:
        left //= radix
        exponents = np.outer(np.arange(1, radix), np.arange(left))
        roots = roots_of_unity(exponents, radix * left)
        begin = 0
        if left > 1:
            begin = tables.add_rows(roots) if is_row and done == 1 else tables.add(roots.T)
        steps.append(Step(radix, left, done, begin))
        done *= radix
    return steps


@dataclass(frozen=True)
class StepEmitter:
    """Emits steps; a vector has several places of one signal if `is_row`, else several signals."""

    e: Emitter
    ops: Arithmetic
    table: Buffer
    is_row: bool

    def transform(
        self, steps: Sequence[Step], source: Source, target: Places | None, spare: Sequence[Plane]
    ) -> Places:
        """Transform from `source` to `target`, through planes, one of which may be the source.

        Without a target, the result is in the plane that is returned.
        """
        for number, step in enumerate(steps):
            is_last = number == len(steps) - 1
            free = other_plane(spare, source)
            written = target if is_last and target is not None else free
            if self.is_row and number == 0:
                self._turned(step, source, free)
            else:
                self._columns(step, source, written)
            source = written
        assert isinstance(source, Places)
        return source

    def _columns(self, step: Step, source: Source, target: Places) -> None:
        """Emit a step whose vectors have several columns q, or one column of several signals."""
        e, (r, m, s) = self.e, (step.radix, step.left, step.done)
        if self.is_row and s < e.lanes and target.plane is None:
            target = target.first(s)

        def row(p: Index) -> None:
            begin = e.mul(p, s)

            def column(q: Index) -> None:
                at = e.add(q, begin)
                points = [source.load(e, e.add(at, s * m * j)) for j in range(r)]
                to = e.add(q, e.mul(begin, r))
                # Positions ascend: elements that a vector writes beyond its end are overwritten
                # later.
                for k, value in enumerate(transformed(self.ops, points)):
                    if k and m > 1:
                        place = e.add(step.roots, e.mul(e.add(e.mul(p, r - 1), k - 1), 2))
                        value = self.ops.multiply(value, single(e, self.table, place))
                    target.store(e, value, e.add(to, s * k))

            self.each(s, column)

        e.loop(0, m, 1, row)

    def _turned(self, step: Step, source: Source, target: Plane) -> None:
        """Emit the first step of a row: vectors have several p, and are turned round to be stored.

        Result k of each p is next to that of k + 1.
        """
        e, (r, m) = self.e, (step.radix, step.left)
        if m < e.lanes and source.plane is None:
            source = source.first(m)

        def block(p: Index) -> None:
            points = [source.load(e, e.add(p, m * j)) for j in range(r)]
            results = transformed(self.ops, points)
            for k in range(1, r):
                at = e.add(e.add(step.roots, 2 * m * (k - 1)), p)
                results[k] = self.ops.multiply(results[k], several(e, self.table, at, m))
            to, count = e.mul(p, r), min(m, e.lanes)
            self._store_turned(results, target, to, count)

        self.each(m, block)

    def _store_turned(
        self, results: Sequence[Complex], target: Plane, to: Index, count: int
    ) -> None:
        """Write lane after lane of all results, of the first `count` lanes."""
        e, radix = self.e, len(results)
        assert target.imaginary is not None
        # Lane p of result k is to stand at radix · p + k: rows of lanes become columns. If there
        # are fewer results than lanes, a vector ends in unused lanes, which the next vector
        # overwrites.
        reals = [filled(e, value.real, target.buffer) for value in results]
        imaginaries = [filled(e, value.imaginary, target.buffer) for value in results]
        for begin, parts in ((target.real, reals), (target.imaginary, imaginaries)):
            chunks = [
                transposed(e, parts[first : first + e.lanes]) for first in range(0, radix, e.lanes)
            ]
            for lane in range(count):
                for number, chunk in enumerate(chunks):
                    place = e.add(to, lane * radix + number * e.lanes)
                    target.buffer.store(e, chunk[lane], target.at(e, begin, place))

    def each(self, count: int, body: Callable[[Index], None]) -> None:
        """Run `body` for every vector of `count` places; the last one may repeat some before it."""
        e = self.e
        if not self.is_row:
            e.loop(0, count, 1, body)
            return
        last = max(0, count - e.lanes)
        is_whole = count <= e.lanes or count % e.lanes == 0
        e.loop(0, count, e.lanes, lambda at: body(at if is_whole else e.minimum(at, last)))


def other_plane(planes: Sequence[Plane], source: Source) -> Plane:
    """Return a plane that `source` does not read."""
    read = source.plane
    return next(plane for plane in planes if read is None or plane.real != read.real)
