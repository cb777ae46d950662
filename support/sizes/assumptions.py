"""State assumptions on symbols, and decide what follows from them: yes, no or unknown.

    Assumptions.of({"batch": Assumed(minimum=1, maximum=64), "heads": Assumed(multiple_of=8)})

An *allowed* assignment gives every symbol a value in its range, a multiple of `multiple_of`, such
that every fact holds. Answers are about all of them, and never wrong:
    equal(a, b)     yes: a = b for all; no: for none
    at_most(a, b)   yes: a ≤ b for all; no: for none, so that a > b always
    divides(a, b)   yes: b is a multiple of a for all; no: for none
Assignments at which one of the sizes has no value do not count. Unknown means that it depends on
the sizes, or cannot be decided. Zero divides zero alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NoReturn

from braid.support.sizes.bounds import Bounds
from braid.support.sizes.expression import Extent, Size, SizeError, Symbol
from braid.support.sizes.operators import mod
from braid.support.sizes.polynomials import exact_quotient


class Answer(Enum):
    """The answer to a question on sizes."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"

    def __bool__(self) -> NoReturn:
        raise TypeError("an answer has no truth value: compare it with Answer.YES")


@dataclass(frozen=True)
class Assumed:
    """The assumptions on a symbol; `likely` are the values that decisions are made for."""

    minimum: int = 0
    """Negative for a number that is no extent."""
    maximum: int | None = None
    multiple_of: int = 1
    likely: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.multiple_of < 1:
            raise SizeError(f"a size is a multiple of {self.multiple_of}, expected 1 or more")
        if self.maximum is not None:
            largest = self.maximum // self.multiple_of * self.multiple_of
            if largest < self.minimum:
                raise SizeError(
                    f"no size is from {self.minimum} to {self.maximum} and a multiple of "
                    f"{self.multiple_of}"
                )
        for value in self.likely:
            if not self.allows(value):
                raise SizeError(f"the likely size {value} is not one of the allowed ones")

    def allows(self, value: int) -> bool:
        """Return whether a symbol may have a value."""
        is_below = self.maximum is None or value <= self.maximum
        return self.minimum <= value and is_below and value % self.multiple_of == 0

    def nearest(self, value: int) -> int:
        """Return the allowed value next to a number, the smaller one of two."""
        least = -(-self.minimum // self.multiple_of) * self.multiple_of
        if self.maximum is not None:
            value = min(value, self.maximum)
        return max(value // self.multiple_of * self.multiple_of, least)


@dataclass(frozen=True)
class Assumptions:
    """The assumptions on symbols, by name; other symbols are sizes without any: 0 or more.

    `facts` are sizes that are never negative, such as `past - window` where that was checked.
    """

    symbols: tuple[tuple[str, Assumed], ...] = ()
    facts: tuple[Size, ...] = ()
    _bounds: Bounds = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ranges = {
            Symbol(name): (own.minimum, own.maximum, own.multiple_of) for name, own in self.symbols
        }
        object.__setattr__(self, "_bounds", Bounds(ranges, self.facts))

    @staticmethod
    def of(symbols: Mapping[str, Assumed], facts: Sequence[Extent] = ()) -> "Assumptions":
        """Return the assumptions on symbols by name, and sizes that are never negative.

        Raises `SizeError` for a fact that is a negative number.
        """
        for fact in facts:
            if isinstance(fact, int) and fact < 0:
                raise SizeError(f"a fact says that {fact} is not negative")
        kept = tuple(dict.fromkeys(fact for fact in facts if isinstance(fact, Size)))
        return Assumptions(tuple(sorted(symbols.items())), kept)

    def with_symbol(self, name: str, assumed: Assumed) -> "Assumptions":
        """Return the assumptions with those about one more symbol, or about a known one anew."""
        return Assumptions.of({**self.by_name, name: assumed}, self.facts)

    def with_fact(self, at_least_zero: Extent) -> "Assumptions":
        """Return the assumptions with the fact that a size is never negative."""
        return Assumptions.of(self.by_name, (*self.facts, at_least_zero))

    @cached_property
    def by_name(self) -> Mapping[str, Assumed]:
        """Return the assumptions on each symbol."""
        return dict(self.symbols)

    def bounds(self, extent: Extent) -> tuple[int | None, int | None]:
        """Return the known least and largest value; None without one."""
        if isinstance(extent, int):
            return extent, extent
        try:
            return self._bounds.lower(extent), self._bounds.upper(extent)
        except SizeError:
            return None, None

    def simplified(self, extent: Extent) -> Extent:
        """Return a size with the same values, simpler for what is assumed."""
        try:
            return self._bounds.simplified(extent)
        except SizeError:
            return extent

    def equal(self, a: Extent, b: Extent) -> Answer:
        """Return whether two sizes have the same value."""
        if isinstance(a, int) and isinstance(b, int):
            return Answer.YES if a == b else Answer.NO
        if a == b:
            return Answer.YES
        try:
            return self._is_zero(self._bounds.reduced(a - b))
        except SizeError:
            return Answer.UNKNOWN

    def at_most(self, a: Extent, b: Extent) -> Answer:
        """Return whether a size is at most another."""
        if isinstance(a, int) and isinstance(b, int):
            return Answer.YES if a <= b else Answer.NO
        try:
            largest = self._bounds.upper(a - b)
            if largest is not None and largest <= 0:
                return Answer.YES
            least = self._bounds.lower(a - b)
            return Answer.NO if least is not None and least > 0 else Answer.UNKNOWN
        except SizeError:
            return Answer.UNKNOWN

    def divides(self, a: Extent, b: Extent) -> Answer:
        """Return whether b is a multiple of a."""
        try:
            a, b = self._bounds.reduced(a), self._bounds.reduced(b)
            if a == 0:
                return self._is_zero(b)
            if exact_quotient(b, a) is not None:
                return Answer.YES
            return self._is_zero(mod(b, a))
        except SizeError:
            return Answer.UNKNOWN

    def _is_zero(self, reduced: Extent) -> Answer:
        """Return whether a size without divisors of symbols, see `Bounds.reduced`, is zero."""
        found = self._bounds.is_zero(reduced)
        return Answer.UNKNOWN if found is None else Answer.YES if found else Answer.NO
