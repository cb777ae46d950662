"""Designs as high-level synthesis sees them: processes of pipelined loop nests, arrays, streams.

Plain data without IR. Loops count from 0; indices and conditions are affine in loop variables.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Affine:
    """`constant` + the sum of coefficient times loop variable; no coefficient is 0."""

    constant: int = 0
    terms: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def of(constant: int, terms: Mapping[str, int]) -> "Affine":
        """Leave out zero terms and sort the rest."""
        kept = ((name, factor) for name, factor in terms.items() if factor)
        return Affine(constant, tuple(sorted(kept)))

    @property
    def variables(self) -> frozenset[str]:
        """Return the names of the variables that the value depends on."""
        return frozenset(name for name, _ in self.terms)

    def __add__(self, other: "Affine") -> "Affine":
        terms = dict(self.terms)
        for name, factor in other.terms:
            terms[name] = terms.get(name, 0) + factor
        return Affine.of(self.constant + other.constant, terms)

    def scaled(self, by: int) -> "Affine":
        """Return this expression times `by`."""
        return Affine.of(self.constant * by, {name: factor * by for name, factor in self.terms})

    def at(self, values: Mapping[str, int]) -> "Affine":
        """Return the expression with these variables replaced by numbers."""
        constant = self.constant + sum(f * values[n] for n, f in self.terms if n in values)
        return Affine(constant, tuple((n, f) for n, f in self.terms if n not in values))

    def limits(self, trips: Mapping[str, int]) -> tuple[int, int]:
        """Return the least and greatest value, where each variable runs from 0 below its trip
        count.
        """
        ends = [(trips[name] - 1) * factor for name, factor in self.terms]
        return (
            self.constant + sum(min(end, 0) for end in ends),
            self.constant + sum(max(end, 0) for end in ends),
        )


@dataclass(frozen=True)
class Condition:
    """`value` == 0, or `value` >= 0 where `at_least`."""

    value: Affine
    at_least: bool = False


@dataclass(frozen=True)
class Loop:
    """One variable that counts from 0 below `trips`."""

    name: str
    trips: int


MEMORY = ("load", "store")
STREAMS = ("read", "write")


@dataclass(frozen=True)
class Op:
    """One operation of a body, for each iteration of `unrolled` where all `guards` hold.

    `kind` is an arithmetic operator's name, "load" or "store" of an array, "read" or "write" of a
    stream, or "copy". `operands` are positions of ops before it in the body; constants are left
    out.
    """

    kind: str
    operands: tuple[int, ...] = ()
    name: str = ""
    index: tuple[Affine, ...] = ()
    guards: tuple[Condition, ...] = ()
    unrolled: tuple[Loop, ...] = ()


@dataclass(frozen=True)
class Nest:
    """A perfect nest whose loops are flattened into one pipeline; `interval` is what was asked."""

    name: str
    loops: tuple[Loop, ...]
    interval: int
    body: tuple[Op, ...]
    line: int = 0

    @property
    def iterations(self) -> int:
        """Iterations of the flattened loop."""
        count = 1
        for loop in self.loops:
            count *= loop.trips
        return count


@dataclass(frozen=True)
class Array:
    """Memory of `shape`; `partitions` is a (kind, factor) a dimension, kind of `PARTITIONS`."""

    name: str
    shape: tuple[int, ...]
    bits: int
    partitions: tuple[tuple[str, int], ...]
    external: bool = False

    @property
    def banks(self) -> tuple[int, ...]:
        """A dimension."""
        return tuple(
            size if kind == "complete" else min(size, factor)
            for size, (kind, factor) in zip(self.shape, self.partitions, strict=True)
        )


PARTITIONS = ("none", "cyclic", "block", "complete")


@dataclass(frozen=True)
class Stream:
    """FIFOs, one for each element of `shape`, with `depth` slots each."""

    name: str
    shape: tuple[int, ...]
    bits: int
    depth: int


@dataclass(frozen=True)
class Process:
    """Nests that run one after the other."""

    name: str
    nests: tuple[Nest, ...]


@dataclass(frozen=True)
class Design:
    """Processes in the order of the program; those that share no array run at the same time."""

    name: str
    processes: tuple[Process, ...]
    arrays: Mapping[str, Array] = field(default_factory=dict[str, Array])
    streams: Mapping[str, Stream] = field(default_factory=dict[str, Stream])
