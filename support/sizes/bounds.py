"""The least and the largest value of sizes, as far as they follow from what is assumed.

A bound is found by replacing atoms, the outermost first, by their upper or lower bounds: a floordiv
b by a / b, or by (a - b + 1) / b, as its coefficient's sign says; the rest of the size is
multiplied by b for it, or b has to divide the coefficient min, max, select by each of their
operands, assuming that it is chosen, and the worst counts; by the best one where any of them is a
bound until a polynomial of symbols is left, which is largest at an end of the range of each symbol
whose coefficient has a sign. Facts, sizes that are not negative, may be added before. This proves
`16 * ((s + 15) floordiv 16) >= s`, where intervals of each part alone say nothing.

Symbols that are multiples of m are written as m · x before all that, so that what divides is seen
by the operators' rules. MLIR's ValueBoundsConstraintSet asks a solver of linear programs instead;
extents are products of dims, for which that has no answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import gcd
from typing import TypeAlias

from braid.support.sizes.expression import (
    Atom,
    Extent,
    Size,
    SizeError,
    Symbol,
    all_factors,
    atom_alone,
    of_atom,
    substitute,
    terms_of,
)
from braid.support.sizes.operators import (
    Extreme,
    FloorDiv,
    Select,
)
from braid.support.sizes.polynomials import (
    exact_quotient,
    linear_parts,
    shifted_bound,
    termwise_bound,
)
from braid.support.sizes.ranges import Range, quotient_range, rounded_range
from braid.support.sizes.scalars import Rounded

Facts: TypeAlias = tuple[Size, ...]
_Case: TypeAlias = tuple[Mapping[Atom, Extent], Facts]
_FUEL = 100
"""Polynomials that are looked at for one bound."""
_MOST_CASES = 16
"""The most sizes that are compared to find out whether a size is zero."""


class Bounds:
    """Bounds of sizes whose symbols have ranges: (least, largest or None, a divisor)."""

    def __init__(
        self, ranges: Mapping[Symbol, tuple[int, int | None, int]], facts: Sequence[Size]
    ) -> None:
        self._written: dict[Atom, Extent] = {}
        self._ranges: dict[Atom, Range] = {}
        self._fixed: dict[Atom, Extent] = {}
        for atom, (least, largest, divisor) in ranges.items():
            low, high = -(-least // divisor), None if largest is None else largest // divisor
            if low == high:
                self._written[atom] = self._fixed[atom] = low * divisor
            else:
                self._ranges[atom] = low, high
                if divisor > 1:
                    self._written[atom] = divisor * of_atom(atom)
        self._facts: Facts = ()
        for fact in facts:
            with suppress(SizeError):  # it has no value anywhere
                self._facts = _joined(self._facts, self.reduced(fact))
        self._known: dict[Size, int | None] = {}

    def reduced(self, extent: Extent) -> Extent:
        """Return a size in symbols that replaces others without their divisors."""
        return substitute(extent, self._written)

    def upper(self, extent: Extent) -> int | None:
        """Return a number that the size never exceeds, None if none is found."""
        return self._upper(self.reduced(extent))

    def lower(self, extent: Extent) -> int | None:
        """Return a number that the size is never below, None if none is found."""
        return _negated(self._upper(-self.reduced(extent)))

    def is_zero(self, reduced: Extent, cases: int = _MOST_CASES) -> bool | None:
        """Return whether a reduced size is zero for all values, or for none; None if unknown."""
        if isinstance(reduced, int):
            return reduced == 0
        if reduced.constant % gcd(*(c for _, c in reduced.open_terms)):
            return False
        high, low = self._upper(reduced), _negated(self._upper(-reduced))
        if high == low == 0:
            return True
        if (high is not None and high < 0) or (low is not None and low > 0):
            return False
        chosen = next(_choices(reduced), None)
        if chosen is None:
            return None
        try:
            parts = [values for values, _ in _Search(self._ranges).cases(chosen, self._facts)]
            if len(parts) > cases:
                return None
            left = cases // len(parts)
            answers = {self.is_zero(substitute(reduced, values), left) for values in parts}
        except SizeError:  # too large, or a divisor is zero in one of the cases
            return None
        return answers.pop() if len(answers) == 1 else None

    def simplified(self, extent: Extent) -> Extent:
        """Return a size with the same values: what is decided is left out."""
        total: Extent = 0
        for monomial, coefficient in terms_of(extent):
            product: Extent = coefficient
            for atom in monomial:
                product = product * self._simplified(atom)
            total = total + product
        return total

    def _simplified(self, atom: Atom) -> Extent:
        if isinstance(atom, Symbol):
            return self._fixed.get(atom, of_atom(atom))
        children = tuple(map(self.simplified, atom.children))
        if isinstance(atom, Extreme):
            found = atom.with_children(self._undominated(children, atom.is_max))
        elif isinstance(atom, Select) and (holds := self._decided(atom, children[0])) is not None:
            return children[1] if holds else children[2]
        elif isinstance(atom, Select) and self._are_one(children[1], children[2]):
            return children[2]
        else:
            found = atom.with_children(children)
        low, high = self.lower(found), self.upper(found)
        return low if low is not None and low == high else found

    def _are_one(self, chosen: Extent, otherwise: Extent) -> bool:
        """Return whether parts of a select are equal, and have a value whichever is chosen."""
        has_value = not any(map(_divides_by_sizes, (chosen, otherwise)))
        return has_value and self.is_zero(self.reduced(chosen - otherwise)) is True

    def _undominated(self, arguments: Sequence[Extent], is_max: bool) -> tuple[Extent, ...]:
        """Return the arguments of an extreme without those that another one always dominates."""
        kept = list(dict.fromkeys(arguments))
        for argument in arguments:
            others = [other for other in kept if other != argument]
            differences = (other - argument if is_max else argument - other for other in others)
            bounds = [self.lower(difference) for difference in differences]
            if any(bound is not None and bound >= 0 for bound in bounds):
                kept = others
        return tuple(kept)

    def _decided(self, atom: Select, size: Extent) -> bool | None:
        if atom.condition.is_zero:
            return self.is_zero(self.reduced(size))
        if (high := self.upper(size)) is not None and high <= 0:
            return True
        return False if (low := self.lower(size)) is not None and low > 0 else None

    def _upper(self, reduced: Extent) -> int | None:
        if isinstance(reduced, int):
            return reduced
        if reduced not in self._known:
            try:
                found = _Search(self._ranges).upper(reduced, self._facts)
            except SizeError:  # too large, or the divisor of a part is zero
                found = None
            self._known[reduced] = found
        return self._known[reduced]


class _Search:
    """The search for one bound, which ends when its fuel is used up."""

    def __init__(self, ranges: Mapping[Atom, Range]) -> None:
        self._ranges = ranges
        self._fuel = _FUEL
        self._known: dict[tuple[Size, Facts, frozenset[Atom]], int | None] = {}

    def upper(
        self, size: Extent, facts: Facts, opaque: frozenset[Atom] = frozenset()
    ) -> int | None:
        """Return a number that a size never exceeds; atoms that are `opaque` are not replaced."""
        if isinstance(size, int):
            return size
        key = size, facts, opaque
        if key not in self._known:
            self._fuel -= 1
            if self._fuel < 0:
                return None
            self._known[key] = None  # has no bound of its own
            self._known[key] = self._found(size, facts, opaque)
        return self._known[key]

    def lower(
        self, size: Extent, facts: Facts, opaque: frozenset[Atom] = frozenset()
    ) -> int | None:
        """Return a number that a size is never below."""
        return _negated(self.upper(-size, facts, opaque))

    def _found(self, size: Size, facts: Facts, opaque: frozenset[Atom]) -> int | None:
        left = [
            atom
            for atom in dict.fromkeys(all_factors(size))
            if not isinstance(atom, Symbol | Rounded) and atom not in opaque
        ]
        if not left:
            found = self._polynomial(size, facts, opaque)
            for scale, total, others in _with_facts(size, facts):
                found = _least(found, _divided(self.upper(total, others, opaque), scale))
            return found
        atom = max(left, key=lambda atom: (atom.depth, atom.order))
        hidden = opaque | {atom}
        if not isinstance(atom, FloorDiv):
            return self._by_cases(size, atom, facts, opaque)
        found = None
        if (parts := linear_parts(size, atom)) is not None:
            for scale, total in self._quotient_replaced(atom, *parts, facts):
                found = _least(found, _divided(self.upper(total, facts, opaque), scale))
        return _least(found, self.upper(size, facts, hidden))

    # ---- Atoms ----

    def _by_cases(
        self, size: Size, atom: Atom, facts: Facts, opaque: frozenset[Atom]
    ) -> int | None:
        bounds = [
            self.upper(substitute(size, values), known, opaque)
            for values, known in self.cases(atom, facts)
        ]
        found = _largest(bounds)
        parts = linear_parts(size, atom)
        if isinstance(atom, Extreme) and parts is not None and isinstance(parts[0], int):
            factor, rest = parts[0], parts[1]
            if (factor < 0) == atom.is_max:
                for argument in atom.arguments:
                    found = _least(found, self.upper(factor * argument + rest, facts, opaque))
        return found

    def cases(self, atom: Atom, facts: Facts) -> Iterator[_Case]:
        """Yield the alternatives of an extreme or a select, with the facts that hold for each."""
        if isinstance(atom, Extreme):
            for argument in atom.arguments:
                sign = 1 if atom.is_max else -1
                differences = (sign * (argument - other) for other in atom.arguments)
                yield {atom: argument}, _joined(facts, *differences)
            return
        assert isinstance(atom, Select)
        size = atom.condition.size
        if not atom.condition.is_zero:
            yield {atom: atom.chosen}, _joined(facts, -size)
            yield {atom: atom.otherwise}, _joined(facts, size - 1)
            return
        symbol = atom_alone(size - size.constant)
        known: dict[Atom, Extent] = {atom: atom.chosen}
        if isinstance(symbol, Symbol):
            yield {**known, symbol: -size.constant}, facts
        else:
            yield known, _joined(facts, size, -size)
        low, high = self.lower(size, facts), self.upper(size, facts)
        more = [size - 1] if low == 0 else [-size - 1] if high == 0 else []
        yield {atom: atom.otherwise}, _joined(facts, *more)

    def _quotient_replaced(
        self, atom: FloorDiv, factor: Extent, rest: Extent, facts: Facts
    ) -> Iterator[tuple[int, Extent]]:
        """Yield (scale, total) with scale · (factor · atom + rest) ≤ total."""
        numerator, divisor = atom.numerator, atom.divisor
        if isinstance(divisor, int):
            for bound in self._ends(factor, numerator, divisor, facts):
                yield divisor, divisor * rest + factor * bound
            return
        low = self.lower(divisor, facts)
        if low is None or low < 1:
            return
        whole = exact_quotient(factor, divisor)
        if whole is not None:
            for bound in self._ends(whole, numerator, divisor, facts):
                yield 1, rest + whole * bound
        elif self._sign(factor, facts) > 0 and self._sign(numerator, facts) > 0:
            yield low, low * rest + factor * numerator

    def _ends(
        self, factor: Extent, numerator: Extent, divisor: Extent, facts: Facts
    ) -> Iterator[Extent]:
        """Yield upper, or lower, bounds of divisor · quotient, for a factor with that sign."""
        sign = self._sign(factor, facts)
        if sign:
            yield numerator if sign > 0 else numerator - divisor + 1

    def _sign(self, extent: Extent, facts: Facts) -> int:
        """Return 1 for a size that is 0 or more, -1 for one that is 0 or less, else 0."""
        if isinstance(extent, int):
            return 1 if extent >= 0 else -1
        if (low := self.lower(extent, facts)) is not None and low >= 0:
            return 1
        return -1 if (high := self.upper(extent, facts)) is not None and high <= 0 else 0

    # ---- Polynomials ----

    def _polynomial(self, size: Size, facts: Facts, opaque: frozenset[Atom]) -> int | None:
        """Return a bound of a size of which all atoms have ranges."""
        ranges = {atom: self._range(atom, facts) for atom in all_factors(size)}
        undecided: list[Atom] = []
        for atom, (low, high) in ranges.items():
            parts = linear_parts(size, atom)
            if parts is None or (low is None and high is None):
                continue
            sign = self._sign(parts[0], facts) if parts[0] != 0 else 0
            end = high if sign > 0 else low
            if sign and end is not None:
                return self.upper(parts[0] * end + parts[1], facts, opaque)
            if not sign and low is not None and high is not None:
                undecided.append(atom)
        for atom in undecided[:1]:
            parts = linear_parts(size, atom)
            assert parts is not None
            ends = [end for end in ranges[atom] if end is not None]
            return _largest([self.upper(parts[0] * end + parts[1], facts, opaque) for end in ends])
        return _least(shifted_bound(size, ranges), termwise_bound(size, ranges))

    def _range(self, atom: Atom, facts: Facts) -> Range:
        """Return the range of an atom by those of its parts."""
        match atom:
            case Symbol():
                return self._ranges.get(atom, (0, None))
            case Rounded():
                return rounded_range(atom, lambda size: self._both(size, facts))
            case FloorDiv():
                return quotient_range(
                    self._both(atom.numerator, facts), self._both(atom.divisor, facts)
                )
            case _:
                return None, None

    def _both(self, extent: Extent, facts: Facts) -> Range:
        return self.lower(extent, facts), self.upper(extent, facts)


def _with_facts(size: Size, facts: Facts) -> Iterator[tuple[int, Extent, Facts]]:
    """Yield (scale, total, the other facts) with scale · size ≤ total, a product less in it."""
    for number, fact in enumerate(facts):
        others = facts[:number] + facts[number + 1 :]
        ours = dict(size.open_terms)
        for monomial, coefficient in fact.open_terms:
            own = ours.get(monomial, 0)
            if own * coefficient < 0:
                common = gcd(own, coefficient)
                scale = abs(coefficient) // common
                yield scale, scale * size + abs(own) // common * fact, others


def _choices(size: Extent) -> Iterator[Atom]:
    """Yield the extremes and selects of a size, those inside of operators first."""
    for atom in all_factors(size):
        for child in atom.children:
            yield from _choices(child)
        if isinstance(atom, Extreme | Select):
            yield atom


def _divides_by_sizes(extent: Extent) -> bool:
    return any(
        (isinstance(atom, FloorDiv) and isinstance(atom.divisor, Size))
        or isinstance(atom, Rounded)
        or any(map(_divides_by_sizes, atom.children))
        for atom in all_factors(extent)
    )


def _joined(facts: Facts, *more: Extent) -> Facts:
    return (*facts, *(fact for fact in more if isinstance(fact, Size) and fact not in facts))


def _least(a: int | None, b: int | None) -> int | None:
    """Return the better one of two upper bounds."""
    return b if a is None else a if b is None else min(a, b)


def _largest(bounds: Sequence[int | None]) -> int | None:
    """Return an upper bound of all."""
    known = [bound for bound in bounds if bound is not None]
    return max(known) if len(known) == len(bounds) else None


def _divided(bound: int | None, scale: int) -> int | None:
    return None if bound is None else bound // scale


def _negated(bound: int | None) -> int | None:
    return None if bound is None else -bound
