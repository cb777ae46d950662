"""Which steps a transform takes, by the cycles that each is predicted to take."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from braid.dialects.braid.fourier_tables import prime_factors
from braid.lowering.cpu.kernels.fourier.butterflies import operations
from braid.lowering.cpu.unit.vector_unit import VectorUnit

MOST_RADIX = 16
"""Points of a composite step: more are faster in two steps, since registers are few."""

_MOST_PRIME = 31
"""Points of a step of a prime length, whose code has about the square of operations."""

_FIRST_CACHE = 1 << 15
"""Bytes of the cache of the first level, which no description of a machine has."""

_NEAR_BYTES, _FAR_BYTES = 32.0, 8.0
"""Bytes that a cycle moves to and from the cache of a core, and beyond it."""

_ODD_PARTS = (1, 3, 5, 7, 9, 15)
"""Convolutions are this many times a power of two long."""


@dataclass(frozen=True)
class Vectors:
    """The vectors that steps are planned for: each of one signal if `is_row`, else of several."""

    unit: VectorUnit
    is_row: bool

    @property
    def places(self) -> int:
        """Return the places of a signal that a vector has."""
        return self.unit.lanes if self.is_row else 1

    def moving_cycles(self, points: int) -> float:
        """Return the cycles in which a step moves this many points, if their planes leave the cache
        of the first level.
        """
        unit = self.unit
        moved = 4 * unit.element_bytes * points * unit.lanes // self.places
        if moved <= _FIRST_CACHE:
            return 0.0
        return moved / (_NEAR_BYTES if moved <= unit.cache_bytes else _FAR_BYTES)


_LOADED, _STORED, _SPILLED = 1.0, 2.0, 3.0
"""Cycles for a vector that is loaded, one that is stored, and one beyond the registers."""


@cache
def radices_for(
    length: int, vectors: Vectors, most: int = MOST_RADIX
) -> tuple[float, tuple[int, ...]]:
    """Return the cycles and radices of the fastest steps: for `length`, or for a convolution of at
    least twice that.

    Radices are at most `most`, but for primes.
    """
    best = _fastest(length, vectors, most)
    least = 2 * length - 1 + vectors.unit.lanes
    if best is None or max(prime_factors(length), default=1) > MOST_RADIX:
        for odd in _ODD_PARTS:
            points = odd << max(0, (least - 1) // odd).bit_length()
            found = _fastest(points, vectors, most)
            assert found is not None
            cycles = 2 * found[0] + _pass_cycles(points, vectors)
            if best is None or cycles < best[0]:
                best = cycles, found[1]
    assert best is not None
    return best


def _fastest(length: int, vectors: Vectors, most: int) -> tuple[float, tuple[int, ...]] | None:
    """Return cycles and radices for exactly this length.

    None if a prime factor is too large, or if the only step cannot be the first one of a row.
    """
    factors = prime_factors(length)
    if max(factors, default=1) > _MOST_PRIME or (vectors.is_row and len(factors) < 2):
        return None
    if not factors:
        return 0.0, (1,)
    known: dict[int, tuple[float, tuple[int, ...]]] = {length: (0.0, ())}

    def rest(done: int) -> tuple[float, tuple[int, ...]]:
        """Return the best steps after those whose radices have the product `done`."""
        if done not in known:
            known[done] = min(_ways(done))
        return known[done]

    def _ways(done: int) -> Iterator[tuple[float, tuple[int, ...]]]:
        for radix in _radices(length // done, most):
            if vectors.is_row and radix == length:
                continue
            cycles, radices = rest(done * radix)
            left = length // done // radix
            yield cycles + step_cycles(radix, left, done, vectors), (radix, *radices)

    return rest(1)


def _radices(length: int, most: int) -> list[int]:
    """Return the radices that divide a length."""
    small = [radix for radix in range(2, most + 1) if length % radix == 0]
    return small + [prime for prime in set(prime_factors(length)) if prime > most]


def step_cycles(radix: int, left: int, done: int, vectors: Vectors) -> float:
    """Return the cycles of a step: arithmetic, loads and stores, and registers that spill."""
    lanes = vectors.unit.lanes
    moved = _LOADED * 2 * radix + _STORED * 2 * radix
    turns = 6 * (radix - 1) if left > 1 else 0
    spilled = _SPILLED * max(0, 2 * radix + 4 - vectors.unit.registers)
    one = operations(radix) + moved + turns + spilled
    moving = vectors.moving_cycles(radix * left * done)
    if not vectors.is_row or done > 1:
        return left * -(-done // vectors.places) * one + moving
    turned = 2 * -(-radix // lanes) * turning_cycles(vectors.unit)
    return -(-left // lanes) * (one + turned) + moving


def turning_cycles(unit: VectorUnit) -> float:
    """Return the cycles in which as many vectors as lanes are turned round and stored."""
    return unit.lanes * (math.log2(unit.lanes) + _STORED)


def _pass_cycles(points: int, vectors: Vectors) -> float:
    """Return the cycles of the multiplications of a convolution."""
    return 24 * points / vectors.places + 3 * vectors.moving_cycles(points)


def least_row(lanes: int) -> int:
    """Return the least length of complex transforms whose vectors are of one signal."""
    return 2 * lanes + 2
