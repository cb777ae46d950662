"""Questions of type inference about extents, and its assumptions.

A rule of shapes holds for numbers or does not. A fact about sizes may hold only for some values of
their symbols: it is then assumed, and each run checks it (`collect-size-checks`).
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from braid.dialects.braid.layout import DYNAMIC
from braid.support.sizes.assumptions import Answer, Assumptions
from braid.support.sizes.expression import Extent
from braid.support.sizes.text import print_size

_NOTHING = Assumptions.of({})
"""Nothing is assumed but that symbols are sizes: 0 or more."""


@dataclass(frozen=True)
class SizeFact:
    """A relation that an op takes for granted: a size equals another, or is at most that."""

    left: Extent
    right: Extent
    is_equality: bool

    @property
    def size(self) -> Extent:
        """Return a size that is 0 if they are equal, or not negative if left is at most right."""
        return self.left - self.right if self.is_equality else self.right - self.left

    def __str__(self) -> str:
        relation = "=" if self.is_equality else "<="
        return f"{print_size(self.left)} {relation} {print_size(self.right)}"


_granted: ContextVar[dict[SizeFact, None] | None] = ContextVar("granted_sizes", default=None)


@contextmanager
def collecting_facts() -> Generator[dict[SizeFact, None]]:
    """Collect the assumptions within the `with` block that nothing proves."""
    facts: dict[SizeFact, None] = {}
    token = _granted.set(facts)
    try:
        yield facts
    finally:
        _granted.reset(token)


def may_equal(a: Extent, b: Extent) -> bool:
    """Return whether two extents may be equal for some sizes; this is then assumed."""
    if a == b or DYNAMIC in (a, b):
        return True
    if isinstance(a, int) and isinstance(b, int):
        return False
    return _may_be(_NOTHING.equal(a, b), SizeFact(a, b, is_equality=True))


def may_be_at_most(a: Extent, b: Extent) -> bool:
    """Return whether an extent may be at most another for some sizes; this is then assumed."""
    if DYNAMIC in (a, b):
        return True
    if isinstance(a, int) and isinstance(b, int):
        return a <= b
    return _may_be(_NOTHING.at_most(a, b), SizeFact(a, b, is_equality=False))


def take_as_equal(extents: Sequence[Extent]) -> None:
    """Note that extents of operands, but for ones, are taken to be equal: see `collecting_facts`.

    Code that repeats an operand does so where its extent is the number 1, and never otherwise.
    """
    if _granted.get() is not None:
        first, *others = [e for e in dict.fromkeys(extents) if e not in (1, DYNAMIC)] or [1]
        for other in others:
            may_equal(first, other)


def _may_be(answer: Answer, fact: SizeFact) -> bool:
    facts = _granted.get()
    if facts is not None and answer is Answer.UNKNOWN:
        facts[fact] = None
    return answer is not Answer.NO


def total(extents: Iterable[Extent]) -> Extent:
    """Return the sum of extents, DYNAMIC if one of them is."""
    found: Extent = 0
    for extent in extents:
        if extent == DYNAMIC:
            return DYNAMIC
        found = found + extent
    return found
