"""Operators on sizes that no polynomial expresses: quotients, min, max and select.

Quotients round down, as Python's: `a floordiv b` is the largest integer that is at most a / b. The
other two follow: `a ceildiv b` is `-(-a floordiv b)`, and `a mod b` is `a - b * (a floordiv b)`,
which has b's sign. A select has the value of the operand that its condition chooses; the other one
need not have a value. A condition is a `Condition`, or a `bool` where it is decided.

Arguments are brought into one form where an equality holds for all integers:
    (16 a + 5 b + 20) floordiv 16 = a + 1 + (5 b + 4) floordiv 16      whole parts go out
    (4 a + 6) floordiv 8 = (2 a + 3) floordiv 4                        common factors
    ((a floordiv 2) + b) floordiv 3 = (a + 2 b) floordiv 6             quotients of quotients
    min(a + 3, a + 5, b + 3) = min(a, b) + 3                           common terms
    max(-a, -b) = -min(a, b)                                           signs
TVM's arith::RewriteSimplifier and MLIR's AffineExpr do likewise, with the same reasons.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

from braid.support.sizes.expression import (
    Atom,
    Extent,
    Size,
    SizeError,
    Symbol,
    atom_alone,
    of_atom,
    order_of,
    substitute,
    sum_of,
    terms_of,
)
from braid.support.sizes.polynomials import (
    common_factor,
    divide,
    map_coefficients,
    split,
    without_factor,
)

_KEPT = 4096
"""Results of an operator: models have the same layers many times."""


@dataclass(frozen=True, eq=False)
class FloorDiv(Atom):
    """The largest integer that is at most numerator / divisor; no value where that is zero."""

    numerator: Extent
    divisor: Extent

    def __post_init__(self) -> None:
        self._finish((1, order_of(self.numerator), order_of(self.divisor)))

    @property
    def children(self) -> tuple[Extent, ...]:
        """The numerator and the divisor."""
        return self.numerator, self.divisor

    def with_children(self, children: tuple[Extent, ...]) -> Extent:
        """Return the quotient of other sizes."""
        return floordiv(*children)


@dataclass(frozen=True, eq=False)
class Extreme(Atom):
    """The least or the largest of two or more sizes."""

    is_max: bool
    arguments: tuple[Extent, ...]

    def __post_init__(self) -> None:
        self._finish((2, self.is_max, *map(order_of, self.arguments)))

    @property
    def children(self) -> tuple[Extent, ...]:
        """The sizes that are compared."""
        return self.arguments

    def with_children(self, children: tuple[Extent, ...]) -> Extent:
        """Return the extreme of other sizes."""
        return _extreme(children, self.is_max)


@dataclass(frozen=True)
class Condition:
    """The condition that `size` is zero (`is_zero`), or else whether it is zero or less."""

    is_zero: bool
    size: Size

    def holds(self, value: int) -> bool:
        """Return whether it holds where `size` has this value."""
        return value == 0 if self.is_zero else value <= 0


@dataclass(frozen=True, eq=False)
class Select(Atom):
    """`chosen` where the condition holds, else `otherwise`."""

    condition: Condition
    chosen: Extent
    otherwise: Extent

    def __post_init__(self) -> None:
        parts = (self.condition.size, self.chosen, self.otherwise)
        self._finish((3, self.condition.is_zero, *map(order_of, parts)))

    @property
    def children(self) -> tuple[Extent, ...]:
        """Return the size that is compared with zero, and the two parts."""
        return self.condition.size, self.chosen, self.otherwise

    def with_children(self, children: tuple[Extent, ...]) -> Extent:
        """Return the choice between others."""
        size, chosen, otherwise = children
        is_zero = self.condition.is_zero
        condition = is_equal(size, 0) if is_zero else is_at_most(size, 0)
        return select(condition, chosen, otherwise)


# ---- Quotients ----


def floordiv(a: Extent, b: Extent) -> Extent:
    """Return a / b, rounded down. Raises `SizeError` where b is the number zero."""
    if isinstance(b, int):
        if b == 0:
            raise SizeError(f"size '{a} floordiv 0' divides by zero")
        if isinstance(a, int):
            return a // b
        return _by_number(a, b) if b > 0 else _by_number(-a, -b)
    return _by_size(a, b)


Size.quotient = staticmethod(floordiv)


def ceildiv(a: Extent, b: Extent) -> Extent:
    """Return a / b, rounded up. Raises `SizeError` where b is the number zero."""
    return -floordiv(-a, b)


def mod(a: Extent, b: Extent) -> Extent:
    """Return a - b · (a floordiv b). Raises `SizeError` where b is the number zero."""
    return a - b * floordiv(a, b)


@lru_cache(_KEPT)
def _by_number(a: Extent, b: int) -> Extent:
    """Return `a floordiv b` for a positive number b."""
    whole, rest = split(a, b)
    if not isinstance(rest, Size):
        return whole + rest // b
    if rest.terms[0][1] < 0:
        # floor(x / b) = -floor((b - 1 - x) / b), so that the first term is positive.
        return whole - _by_number(b - 1 - rest, b)
    common = gcd(b, *(c for _, c in rest.open_terms))
    if common > 1:
        return whole + _by_number(map_coefficients(rest, lambda c: c // common), b // common)
    inner = [
        atom
        for monomial, c in rest.terms
        if c == 1 and len(monomial) == 1
        for atom in monomial
        if isinstance(atom, FloorDiv) and isinstance(atom.divisor, int)
    ]
    if len(inner) == 1:
        (atom,) = inner
        assert isinstance(atom.divisor, int)
        numerator = (rest - of_atom(atom)) * atom.divisor + atom.numerator
        return whole + _by_number(numerator, atom.divisor * b)
    return whole + of_atom(FloorDiv(rest, b))


@lru_cache(_KEPT)
def _by_size(a: Extent, b: Size) -> Extent:
    if a == 0:
        return 0
    if b.terms[0][1] < 0:
        return floordiv(-a, -b)
    factor = common_factor(a, b)
    if factor != ((), 1):
        return floordiv(without_factor(a, *factor), without_factor(b, *factor))
    whole, rest = divide(a, b)
    if rest == 0:
        return whole
    if whole != 0:
        return whole + floordiv(rest, b)
    return of_atom(FloorDiv(a, b))


# ---- Extremes ----


def minimum(*arguments: Extent) -> Extent:
    """Return the least of one or more sizes."""
    return _extreme(arguments, False)


def maximum(*arguments: Extent) -> Extent:
    """Return the largest of one or more sizes."""
    return _extreme(arguments, True)


@lru_cache(_KEPT)
def _extreme(arguments: tuple[Extent, ...], is_max: bool) -> Extent:
    better = max if is_max else min
    groups: dict[Extent, int] = {}
    for argument in _flattened(arguments, is_max):
        open_part, constant = _parted(argument)
        groups[open_part] = better(groups.get(open_part, constant), constant)
    found = [part + constant for part, constant in groups.items()]
    if len(found) == 1:
        return found[0]
    common = _common_terms(found)
    found = [each - common for each in found]
    number = gcd(*(c for each in found for _, c in terms_of(each)))
    if number > 1 or common != 0:
        # Without these an argument may be such an extreme itself.
        found = [map_coefficients(each, lambda c: c // number) for each in found]
        return common + number * _extreme(tuple(found), is_max)
    if _is_negative(found):
        return -_extreme(tuple(-each for each in found), not is_max)
    return of_atom(Extreme(is_max, tuple(sorted(found, key=order_of))))


def _flattened(arguments: Iterable[Extent], is_max: bool) -> Iterable[Extent]:
    """Yield the arguments, with nested ones of the same extreme flattened."""
    for argument in arguments:
        if isinstance(argument, Size):
            atom = atom_alone(argument - argument.constant)
            if isinstance(atom, Extreme) and atom.is_max == is_max:
                yield from (inner + argument.constant for inner in atom.arguments)
                continue
        yield argument


def _parted(extent: Extent) -> tuple[Extent, int]:
    """Return a size without its number, and that."""
    if isinstance(extent, int):
        return 0, extent
    return sum_of(dict(extent.open_terms)), extent.constant


def _common_terms(extents: Sequence[Extent]) -> Extent:
    """Return the terms that all sizes have, and the index of the first size that is no number."""
    first, *others = [dict(terms_of(extent)) for extent in extents]
    shared = {
        monomial: coefficient
        for monomial, coefficient in first.items()
        if monomial and all(other.get(monomial) == coefficient for other in others)
    }
    open_ones = [extent for extent in extents if isinstance(extent, Size)]
    least = min(open_ones, key=lambda extent: order_of(_parted(extent)[0]))
    return sum_of(shared) + least.constant


def _is_negative(extents: Sequence[Extent]) -> bool:
    """Return whether the coefficients of the first product of any of the sizes are all negative."""
    terms = [term for extent in extents if isinstance(extent, Size) for term in extent.open_terms]
    first = min(order_of(sum_of({monomial: 1})) for monomial, _ in terms)
    return all(c < 0 for monomial, c in terms if order_of(sum_of({monomial: 1})) == first)


# ---- Conditions and select ----


def is_equal(a: Extent, b: Extent) -> Condition | bool:
    """Return the condition that a = b, a `bool` where that holds for all values or for none."""
    difference = a - b
    if isinstance(difference, int):
        return difference == 0
    number = gcd(*(c for _, c in difference.open_terms))
    if difference.constant % number:
        return False
    if difference.terms[0][1] < 0:
        number = -number
    return Condition(True, _as_size(map_coefficients(difference, lambda c: c // number)))


def is_at_most(a: Extent, b: Extent) -> Condition | bool:
    """Return the condition that a ≤ b, a `bool` where that holds for all values or for none."""
    difference = a - b
    if isinstance(difference, int):
        return difference <= 0
    number = gcd(*(c for _, c in difference.open_terms))
    terms = {monomial: c // number for monomial, c in difference.open_terms}
    # g x + c ≤ 0 where x + ceil(c / g) ≤ 0.
    return Condition(False, _as_size(sum_of(terms) - (-difference.constant // number)))


@lru_cache(_KEPT)
def select(condition: Condition | bool, chosen: Extent, otherwise: Extent) -> Extent:
    """Return the size that is `chosen` where the condition holds, else `otherwise`."""
    if isinstance(condition, bool):
        return chosen if condition else otherwise
    if (known := _known_by(condition)) is not None:
        chosen = substitute(chosen, {known[0]: known[1]})
        if substitute(otherwise, {known[0]: known[1]}) == chosen:
            return otherwise
    if chosen == otherwise:
        return chosen
    if not condition.is_zero and condition.size.terms[0][1] < 0:
        # Not x ≤ 0 is -x + 1 ≤ 0: the first term is positive.
        negated = Condition(False, _as_size(1 - condition.size))
        return select(negated, otherwise, chosen)
    first, second = dict(terms_of(chosen)), dict(terms_of(otherwise))
    common = sum_of({m: c for m, c in first.items() if m and second.get(m) == c})
    return common + of_atom(Select(condition, chosen - common, otherwise - common))


def _known_by(condition: Condition) -> tuple[Symbol, int] | None:
    """Return the symbol whose value the condition gives, and that value.

    The least of a symbol and a larger number is the symbol; that of broadcasts is compared with 1.
    """
    atom = atom_alone(condition.size - condition.size.constant)
    if not condition.is_zero:
        return None
    value = -condition.size.constant
    if isinstance(atom, Extreme):
        numbers = [part for part in atom.arguments if isinstance(part, int)]
        others = [part for part in atom.arguments if isinstance(part, Size)]
        decided = all(number < value if atom.is_max else number > value for number in numbers)
        if len(others) != 1 or not decided:
            return None
        value -= others[0].constant
        atom = atom_alone(others[0] - others[0].constant)
    return (atom, value) if isinstance(atom, Symbol) else None


def _as_size(extent: Extent) -> Size:
    assert isinstance(extent, Size)
    return extent


def product_of(extents: Iterable[Extent]) -> Extent:
    """Return the product of sizes, 1 of none."""
    total: Extent = 1
    for extent in extents:
        total = total * extent
    return total
