"""Compute a thread's tile of a nest that reduces: neighbours of a row, and rows as a strip.

Neighbours that lie next to each other in an operand, or whose windows do, are read by wide
accesses. Rows whose windows overlap have elements in common, which are read once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import lcm
from typing import Any, cast

from xdsl.dialects.builtin import MemRefType, i1
from xdsl.dialects.linalg import ops as linalg

from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.gpu.launch.entries import READING_BLOCKS
from braid.lowering.gpu.nests.linear_access import LinearAccess
from braid.lowering.gpu.nests.thread_nests import ThreadNest
from braid.lowering.gpu.nests.wide_access import ACCESS_BYTES
from braid.lowering.gpu.nests.window_span import WindowSpan

_LEAST_WIDTH = 2
_MOST_WIDTH = 8
_ENOUGH_THREADS = 2**16
"""The threads from which on another row for each keeps more loads in flight than more threads
would."""
_MOST_ROWS = 11
"""The most rows of a thread: with more, their common reads hardly grow."""
_MOST_SUMS = 56
"""The most sums of a thread: they are in registers."""
_MOST_TERMS = 512
"""The most terms that a thread adds up in straight-line code."""
_FEW_SUMS = 24
"""The sums with which threads of several blocks have registers for what they read."""


@dataclass(frozen=True)
class Strip:
    """Rows along a dim that a thread computes together: windows along `window` overlap.

    Common reads of several rows happen once.
    """

    dim: int
    window: int
    rows: int


@dataclass(frozen=True)
class SumTile:
    """A nest that reduces; a thread computes `width` points of a row, or of several rows.

    `steps` are, for each operand, the elements from one index of each dim to the next; `spans`, of
    operands by their number, are windows along the dim `taps`.
    """

    own: ThreadNest
    nest: linalg.GenericOp
    steps: tuple[tuple[int, ...], ...]
    width: int
    taps: int | None = None
    spans: Mapping[int, WindowSpan] = field(default_factory=dict[int, WindowSpan])
    strip: Strip | None = None

    @staticmethod
    def of(own: ThreadNest, stored: int | None = None) -> "SumTile | None":
        """Return the nest with wide accesses; None where there would be none, or several results.

        Where its result is not stored, something else that follows is, `stored` neighbours at once.
        """
        nest = own.nest
        if not own.reduced or not isinstance(nest, linalg.GenericOp) or len(nest.outputs) != 1:
            return None
        if any(isinstance(op, linalg.IndexOp) for op in nest.body.block.ops) or not own.points:
            return None
        found = [LinearAccess.of(v, map) for v, map in zip(nest.operands, own.maps, strict=True)]
        known = [access for access in found if access is not None]
        steps = tuple(access.steps for access in known)
        types = [cast(MemRefType[Any], value.type).element_type for value in nest.operands]
        if len(steps) < len(found) or not own.parallel or i1 in types:
            return None
        plain = SumTile(own, nest, steps, _MOST_WIDTH)
        offsets = [access.offset for access in known]
        ways = [plain, *(replace(plain, taps=dim) for dim in reversed(own.reduced))]
        made = next((made for way in ways if (made := way._fitted(offsets, stored))), None)
        # If sums start from values in memory, those of one row are read.
        begins = own.start is not None or stored is not None
        return made._with_strip() if made is not None and begins else made

    def _fitted(self, offsets: Sequence[int], stored: int | None) -> "SumTile | None":
        """Return the tile with as many neighbours as all accesses allow; None for one alone."""
        own, lane, output = self.own, self.lane, len(self.nest.inputs)
        used = [n for n in range(output) if self.nest.body.block.args[n].uses]
        spanned = [n for n in used if self.steps[n][lane] != 0 and self._has_taps(n)]
        wide = [n for n in used if n not in spanned and self.steps[n][lane] == 1]
        if stored is None and self.steps[output][lane] != 1:
            return None
        if not spanned and (not wide or self.taps is not None):
            return None
        if any(not self._is_along_last(n) for n in spanned):
            return None
        written = [output] if stored is None else []
        whole = [own.extents[lane], *(offsets[n] for n in (*wide, *written))]
        whole += [step for n in (*wide, *written) for step in self._other_steps(n)]
        least = min(map(self._element_bytes, (*(wide or spanned), *written)))
        width = min(_MOST_WIDTH, ACCESS_BYTES // least)
        width = min(width, stored or width)
        fitting: list[SumTile] = []
        while width >= _LEAST_WIDTH:
            if not any(amount % width for amount in whole):
                spans = {n: self._span(n, offsets[n], width) for n in spanned}
                known = {n: span for n, span in spans.items() if span is not None}
                if len(known) == len(spans):
                    fitting.append(replace(self, width=width, spans=known))
            width //= 2
        return min(fitting, key=lambda one: one._lines, default=None)

    @property
    def _lines(self) -> float:
        """Cache lines that a warp's accesses to spans touch, for each neighbour."""
        return sum(span.lines(self._element_bytes(n)) for n, span in self.spans.items())

    def _with_strip(self) -> "SumTile":
        """Return the tile with the strip of most rows, the outermost of them, if rows share reads.

        Common reads of adjacent threads are served from the L1 cache.
        """
        rows = [dim for dim in self.own.parallel if dim != self.lane]
        windows = [dim for dim in self.own.reduced if dim != self.taps]
        found = [self._strip(dim, window) for dim, window in product(rows, windows)]
        known = [strip for strip in found if strip is not None]
        return replace(self, strip=max(known, key=lambda strip: strip.rows, default=None))

    def _strip(self, dim: int, window: int) -> Strip | None:
        """Return as many rows as divide the dim, leave enough threads, and are not too much
        code.
        """
        extents = self.own.extents
        terms = self.width * extents[window] * (1 if self.taps is None else extents[self.taps])
        most = min(_MOST_ROWS, _MOST_SUMS // self.width, _MOST_TERMS // terms)
        for rows in range(min(extents[dim], most), 1, -1):
            threads = self.own.points // (self.width * rows)
            strip = Strip(dim, window, rows)
            if extents[dim] % rows == 0 and threads >= _ENOUGH_THREADS and self._overlap(strip):
                return strip
        return None

    def _overlap(self, strip: Strip) -> bool:
        """Return whether windows of a strip's rows have elements of an operand in common."""
        for number, argument in enumerate(self.nest.body.block.args[:-1]):
            row, tap = (self.steps[number][dim] for dim in (strip.dim, strip.window))
            ends = (row * strip.rows, tap * self.own.extents[strip.window])
            if argument.uses and row > 0 and tap > 0 and lcm(row, tap) < min(ends):
                return True
        return False

    def _has_taps(self, number: int) -> bool:
        return self.taps is not None and self.steps[number][self.taps] != 0

    def _element_bytes(self, number: int) -> int:
        return bytes_of(cast(MemRefType[Any], self.nest.operands[number].type).element_type)

    def _other_steps(self, number: int) -> list[int]:
        """Return the steps of dims with several indices that neither lanes nor taps run along."""
        steps = enumerate(self.steps[number])
        return [
            step
            for dim, step in steps
            if dim not in (self.lane, self.taps) and self.own.extents[dim] > 1
        ]

    def _span(self, number: int, offset: int, width: int) -> WindowSpan | None:
        assert self.taps is not None
        steps = (self.steps[number][self.lane], self.steps[number][self.taps])
        others = [offset, *self._other_steps(number)]
        taps = self.own.extents[self.taps]
        return WindowSpan.of(steps, width, taps, others, self._element_bytes(number))

    def _is_along_last(self, number: int) -> bool:
        """Return whether lanes and taps move along the last dim of an operand, whose stride
        is 1.
        """
        map, type = self.own.maps[number], cast(MemRefType[Any], self.nest.operands[number].type)
        strides = type.get_strides()
        origin = map.eval([0] * map.num_dims, [])
        moved = [
            map.eval([int(dim == own) for own in range(map.num_dims)], [])
            for dim in (self.lane, self.taps)
        ]
        return (
            strides is not None
            and strides[-1] == 1
            and all(list(place[:-1]) == list(origin[:-1]) for place in moved)
        )

    @property
    def lane(self) -> int:
        """The dim along which neighbours are."""
        return self.own.parallel[-1]

    @property
    def threads(self) -> int:
        """Return the number of threads that have work."""
        return self.own.points // (self.width * self.rows)

    @property
    def blocks(self) -> int:
        """Blocks that fit a multiprocessor at least, with the registers that a thread needs."""
        if self.width * self.rows > _FEW_SUMS:
            return 1
        arguments = self.nest.body.block.args[:-1]
        vectors = sum(
            bool(argument.uses) and number not in self.spans and steps[self.lane] == 1
            for number, (argument, steps) in enumerate(zip(arguments, self.steps, strict=False))
        )
        return min(READING_BLOCKS if vectors < 2 else READING_BLOCKS // 2, self.own.blocks)

    @property
    def rows(self) -> int:
        """Rows of a thread."""
        return 1 if self.strip is None else self.strip.rows

    def unrolled(self, row: int) -> Iterator[dict[int, int]]:
        """Return indices of the dims that are not loops, for a row, in order: from a point on."""
        extents = self.own.extents
        taps = range(1 if self.taps is None else extents[self.taps])
        along = range(1 if self.strip is None else extents[self.strip.window])
        for window, tap in product(along, taps):
            at: dict[int, int] = {}
            if self.strip is not None:
                at |= {self.strip.dim: row, self.strip.window: window}
            if self.taps is not None:
                at[self.taps] = tap
            yield at
