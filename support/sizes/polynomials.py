"""Arithmetic of polynomials: division, common factors, and bounds on ranges of their atoms."""

from collections.abc import Callable, Mapping
from math import gcd

from braid.support.sizes.expression import (
    Atom,
    Extent,
    Monomial,
    Size,
    of_atom,
    substitute,
    sum_of,
    terms_of,
)
from braid.support.sizes.ranges import Range, product_range

_MOST_STEPS = 64
"""The most steps of a division, which is given up then."""


def split(a: Extent, b: int) -> tuple[Extent, Extent]:
    """Return (q, r) with a = b q + r; r has coefficients in (-b/2, b/2], its number in [0, b).

    The first coefficient of r may be -b/2, if that of `a` is negative: -(s floordiv 2) has it.
    """
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    is_first = True
    for monomial, coefficient in terms_of(a):
        quotient = -((b - 2 * coefficient) // (2 * b)) if monomial else coefficient // b
        left = coefficient - quotient * b
        if is_first and coefficient < 0 and 2 * left == b:
            quotient, left = quotient + 1, left - b
        is_first = is_first and not left
        whole[monomial], rest[monomial] = quotient, left
    return sum_of(whole), sum_of(rest)


def common_factor(*extents: Extent) -> tuple[Monomial, int]:
    """Return the product and the positive number that all terms of all sizes have as factors."""
    terms = [term for extent in extents for term in terms_of(extent)]
    number = gcd(*(coefficient for _, coefficient in terms))
    shared: list[Atom] = []
    for atom in dict.fromkeys(terms[0][0]):
        shared += [atom] * min(monomial.count(atom) for monomial, _ in terms)
    return tuple(shared), number


def without_factor(extent: Extent, monomial: Monomial, number: int) -> Extent:
    """Return a size without factors that all of its terms have."""
    return sum_of({_without(m, monomial): c // number for m, c in terms_of(extent)})


def _without(monomial: Monomial, factors: Monomial) -> Monomial:
    left = list(monomial)
    for atom in factors:
        left.remove(atom)
    return tuple(left)


def divide(a: Extent, b: Size) -> tuple[Extent, Extent]:
    """Return (q, r) with a = q b + r: the division of polynomials by the first term of b.

    No term of r has that product as a factor with a coefficient that a whole step makes smaller.
    """
    whole: Extent = 0
    rest: Extent = a
    lead, number = b.terms[0]
    for _ in range(_MOST_STEPS):
        for monomial, coefficient in terms_of(rest):
            quotient = -((number - 2 * coefficient) // (2 * number))
            if quotient and all(monomial.count(x) >= lead.count(x) for x in lead):
                step = sum_of({_without(monomial, lead): quotient})
                whole, rest = whole + step, rest - step * b
                break
        else:
            return whole, rest
    return 0, a


def exact_quotient(a: Extent, b: Extent) -> Extent | None:
    """Return q with a = q b as polynomials, None if it does not exist."""
    if isinstance(b, int):
        whole, rest = (a, a) if b == 0 else split(a, abs(b))
        return None if rest != 0 else (whole if b > 0 else -whole)
    if b.terms[0][1] < 0:
        found = exact_quotient(a, -b)
        return None if found is None else -found
    whole, rest = divide(a, b)
    return whole if rest == 0 else None


def map_coefficients(extent: Extent, change: Callable[[int], int]) -> Extent:
    """Return a size with changed coefficients."""
    return sum_of({monomial: change(c) for monomial, c in terms_of(extent)})


def linear_parts(size: Size, atom: Atom) -> tuple[Extent, Extent] | None:
    """Return (factor, rest) with size = factor · atom + rest, None if it has the atom's square."""
    factor: dict[tuple[Atom, ...], int] = {}
    rest: dict[tuple[Atom, ...], int] = {}
    for monomial, coefficient in size.terms:
        count = monomial.count(atom)
        if count > 1:
            return None
        if count:
            place = monomial.index(atom)
            factor[monomial[:place] + monomial[place + 1 :]] = coefficient
        else:
            rest[monomial] = coefficient
    return sum_of(factor), sum_of(rest)


def shifted_bound(size: Size, ranges: Mapping[Atom, Range]) -> int | None:
    """Return the value at the least of all atoms, if it is the largest: no product is added."""
    lows = {atom: low for atom, (low, _) in ranges.items() if low is not None}
    if len(lows) < len(ranges):
        return None
    moved = substitute(size, {atom: of_atom(atom) + low for atom, low in lows.items()})
    if isinstance(moved, int):
        return moved
    return None if any(c > 0 for _, c in moved.open_terms) else moved.constant


def termwise_bound(size: Size, ranges: Mapping[Atom, Range]) -> int | None:
    """Return the sum of the bounds of all products."""
    total = 0
    for monomial, coefficient in size.terms:
        _, high = product_range([(coefficient, coefficient), *(ranges[a] for a in monomial)])
        if high is None:
            return None
        total += high
    return total
