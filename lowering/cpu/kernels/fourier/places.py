"""Where complex numbers lie: in scratch memory with their parts apart, or in tensors.

A vector is either several places of one signal (`is_row`), or one place of several signals.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

from braid.lowering.cpu.kernels.fourier.complex_numbers import Arithmetic, Complex, Part
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.register_transpose import deinterleaved, interleaved, shuffled


class Source(ABC):
    """Numbers that are read by vectors, each named by the place of its first lane."""

    @property
    @abstractmethod
    def is_row(self) -> bool:
        """Return whether a vector has several places of one signal."""

    @property
    def plane(self) -> "Plane | None":
        """Return the scratch memory that they lie in, if they do."""
        return None

    @abstractmethod
    def load(self, e: Emitter, place: Index) -> Complex:
        """Return the numbers at a place, and after it."""

    def mirrored(self, e: Emitter, place: Index) -> Complex:
        """Return the numbers at a place and, in further lanes, before it."""
        if not self.is_row:
            return self.load(e, place)
        found = self.load(e, e.sub(place, e.lanes - 1))
        return Complex(_reversed(e, found.real), _reversed(e, found.imaginary))

    @abstractmethod
    def first(self, count: int) -> Self:
        """Return these positions, if a vector of a row has `count` lanes that are read and
        written."""


@dataclass(frozen=True)
class Derived(Source):
    """Numbers that are computed from others as they are read."""

    inner: Source

    @property
    def is_row(self) -> bool:
        """See `Source`."""
        return self.inner.is_row

    @property
    def plane(self) -> "Plane | None":
        """See `Source`."""
        return self.inner.plane

    def first(self, count: int) -> Self:
        """See `Source`."""
        return replace(self, inner=self.inner.first(count))


class Places(Source):
    """Numbers that are read or written."""

    @abstractmethod
    def store(self, e: Emitter, value: Complex, place: Index) -> None:
        """Write the numbers at a place, and after it."""


@dataclass(frozen=True)
class Plane(Places):
    """Scratch memory for the numbers of a signal, or of a signal in each lane.

    Real parts begin at `real`, imaginary ones at `imaginary`, or are zero if that is None.
    """

    buffer: Buffer
    real: int
    imaginary: int | None
    is_in_row: bool
    lanes: int | None = None

    @property
    def is_row(self) -> bool:
        """See `Source`."""
        return self.is_in_row

    @property
    def plane(self) -> "Plane":
        """See `Places`."""
        return self

    def load(self, e: Emitter, place: Index) -> Complex:
        """See `Places`."""
        return Complex(
            self.buffer.load(e, self.at(e, self.real, place)),
            None
            if self.imaginary is None
            else self.buffer.load(e, self.at(e, self.imaginary, place)),
        )

    def store(self, e: Emitter, value: Complex, place: Index) -> None:
        """See `Places`."""
        mask = None if self.lanes is None else e.tail_mask(self.lanes)
        for begin, part in ((self.real, value.real), (self.imaginary, value.imaginary)):
            if begin is not None:
                self.buffer.store(e, filled(e, part, self.buffer), self.at(e, begin, place), mask)

    def first(self, count: int) -> Self:
        """See `Places`."""
        return replace(self, lanes=count) if self.is_row else self

    @property
    def reals(self) -> "Plane":
        """Return these without their imaginary parts."""
        return replace(self, imaginary=None)

    def at(self, e: Emitter, begin: int, place: Index) -> Index:
        """Return the offset of one part of the number at `place`."""
        return e.add(begin, place if self.is_row else e.mul(place, e.lanes))


@dataclass(frozen=True)
class Pairs(Places):
    """Numbers of a tensor whose parts are neighbours, from element `base` on.

    Positions are `stride` numbers apart, lanes are adjacent. Only the first `lanes` exist, or all
    if that is None.
    """

    buffer: Buffer
    base: Index
    stride: Index = 1
    lanes: Index | None = None

    @property
    def is_row(self) -> bool:
        """See `Source`."""
        return self.stride == 1

    def load(self, e: Emitter, place: Index) -> Complex:
        """See `Places`."""
        at = self._at(e, place)
        vectors = [
            self.buffer.load(e, e.add(at, begin), mask) for begin, mask in _halves(e, self.lanes)
        ]
        return Complex(*deinterleaved(e, (vectors * 2)[:2]))

    def store(self, e: Emitter, value: Complex, place: Index) -> None:
        """See `Places`."""
        at = self._at(e, place)
        parts = [filled(e, part, self.buffer) for part in (value.real, value.imaginary)]
        halves = _halves(e, self.lanes)
        for (begin, mask), vector in zip(halves, interleaved(e, parts), strict=False):
            self.buffer.store(e, vector, e.add(at, begin), mask)

    def first(self, count: int) -> Self:
        """See `Places`."""
        return replace(self, lanes=count) if self.is_row else self

    def _at(self, e: Emitter, place: Index) -> Index:
        return e.add(self.base, e.mul(e.mul(place, self.stride), 2))


@dataclass(frozen=True)
class Reals(Places):
    """Real numbers of a tensor, or complex ones made of two numbers each (`is_paired`)."""

    buffer: Buffer
    base: Index
    stride: Index = 1
    lanes: Index | None = None
    is_paired: bool = False

    @property
    def is_row(self) -> bool:
        """See `Source`."""
        return self.stride == 1

    def load(self, e: Emitter, place: Index) -> Complex:
        """See `Places`."""
        if not self.is_paired:
            return Complex(self._load(e, place), None)
        first = e.mul(place, 2)
        return Complex(self._load(e, first), self._load(e, e.add(first, 1)))

    def store(self, e: Emitter, value: Complex, place: Index) -> None:
        """See `Places`."""
        first = e.mul(place, 2) if self.is_paired else place
        self._store(e, value.real, first)
        if self.is_paired:
            self._store(e, value.imaginary, e.add(first, 1))

    def first(self, count: int) -> Self:
        """See `Places`."""
        return replace(self, lanes=count) if self.is_row else self

    def _load(self, e: Emitter, place: Index) -> Value:
        return self.buffer.load(e, self._at(e, place), self._mask(e))

    def _store(self, e: Emitter, part: Part, place: Index) -> None:
        value = filled(e, part, self.buffer)
        self.buffer.store(e, value, self._at(e, place), self._mask(e))

    def _at(self, e: Emitter, place: Index) -> Index:
        return e.add(self.base, e.mul(place, self.stride))

    def _mask(self, e: Emitter) -> Value | None:
        return None if self.lanes is None else e.tail_mask(self.lanes)


@dataclass(frozen=True)
class Changed(Derived, Places):
    """Numbers that are `scale` times the stored ones, or have their parts exchanged.

    The inverse transform of x is that of x with its parts exchanged, exchanged again.
    """

    ops: Arithmetic
    scale: float = 1.0
    is_swapped: bool = False

    def load(self, e: Emitter, place: Index) -> Complex:
        """See `Places`."""
        return self._changed(self.inner.load(e, place))

    def store(self, e: Emitter, value: Complex, place: Index) -> None:
        """See `Places`."""
        assert isinstance(self.inner, Places)
        self.inner.store(e, self._changed(value), place)

    def _changed(self, value: Complex) -> Complex:
        value = value.swapped if self.is_swapped else value
        return value if self.scale == 1.0 else self.ops.scaled(value, self.scale)


def _halves(e: Emitter, lanes: Index | None) -> list[tuple[int, Value | None]]:
    """Return offset and mask of the vectors that hold `lanes` pairs: two, or one if they fit."""
    if lanes is None:
        return [(0, None), (e.lanes, None)]
    if isinstance(lanes, int) and 2 * lanes <= e.lanes:
        return [(0, e.tail_mask(2 * lanes))]
    elements = e.mul(lanes, 2)
    rest = e.sub(e.maximum(elements, e.lanes), e.lanes)
    return [(0, e.tail_mask(elements)), (e.lanes, e.tail_mask(rest))]


def _reversed(e: Emitter, part: Part) -> Part:
    return None if part is None else shuffled(e, part, part, list(range(e.lanes))[::-1])


def filled(e: Emitter, part: Part, buffer: Buffer) -> Value:
    """Return a part, or zeros for None."""
    return e.constant(0.0, e.vector_type(buffer.element_type)) if part is None else part
