"""Simpler sizes with the same values, wherever checks hold that were made before."""

from collections.abc import Mapping

from braid.support.sizes.assumptions import Assumptions
from braid.support.sizes.expression import (
    Atom,
    Extent,
    Size,
    SizeError,
    Symbol,
    of_atom,
    substitute,
)


class Simplification:
    """The assumptions about symbols, and the checks; each is simplified by those before it.

    Sizes that ops infer from one another grow with each step until they are proven equal: a check
    that two sizes are equal lets one be replaced by the other.
    """

    def __init__(self, assumed: Assumptions) -> None:
        self._assumed = assumed
        self._solved: dict[Atom, Extent] = {}

    def add(self, at_least_zero: Extent, is_zero: bool = False) -> None:
        """Rely on a size being 0 or more, or just 0."""
        value = self.of(at_least_zero)
        if isinstance(value, int):
            return  # it follows from what is known, or never holds
        self._assumed = self._assumed.with_fact(value)
        if not is_zero:
            return
        self._assumed = self._assumed.with_fact(-value)
        if (found := _solved(value)) is not None:
            atom, equal = found
            self._solved = {
                each: _substituted(own, {atom: equal}) for each, own in self._solved.items()
            }
            self._solved[atom] = equal

    def of(self, extent: Extent) -> Extent:
        """Return a size that has the same value wherever the checks hold."""
        return self._assumed.simplified(_substituted(extent, self._solved))


def _substituted(extent: Extent, values: Mapping[Atom, Extent]) -> Extent:
    """Return the size as it was where it would be too large, or have no value."""
    try:
        return substitute(extent, values)
    except SizeError:
        return extent


def _solved(zero: Size) -> tuple[Atom, Extent] | None:
    """Return the outermost operator that an equation determines, and its equal.

    Symbols stay: sizes are computed from them.
    """
    terms = [
        (monomial[0], coefficient)
        for monomial, coefficient in zero.open_terms
        if len(monomial) == 1 and abs(coefficient) == 1 and not isinstance(monomial[0], Symbol)
    ]
    for atom, coefficient in sorted(terms, key=lambda term: term[0].depth, reverse=True):
        rest = zero - coefficient * of_atom(atom)
        if _substituted(rest, {atom: 0}) == rest:
            return atom, -coefficient * rest
    return None
