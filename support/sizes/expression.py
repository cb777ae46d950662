"""Size expressions: polynomials with integer coefficients over atoms, each in one form.

A polynomial is a sum of products of atoms, in a fixed order, with like terms added up: two sizes
that are the same polynomial are the same object by `==` and `hash`. An atom is a symbol, or an
operator that no polynomial expresses (`operators.py`) on arguments that are such sums themselves.

A size that is a number is an `int`, never a `Size`: operators give one wherever all symbols cancel,
and code on known extents never meets this file. `a == b` compares two sizes as expressions;
`Assumptions.equal` compares their values. A `Size` has no truth value and no `<`: code that forgets
to ask fails at once.

An expression has a value at numbers for its symbols unless a divisor is zero there, or a float is
no number of 64 bits. Simplification keeps the value wherever the expression as it was written has
one.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NoReturn, TypeAlias, TypeVar

from braid.support.errors import BraidError

Order: TypeAlias = tuple[object, ...]
"""Nested tuples by which atoms are sorted, and which are equal where atoms are."""

MOST_WEIGHT = 2000
"""The number of symbols, numbers and operators of one expression, as it is printed."""
MOST_DEPTH = 40
"""The maximum nesting of operators."""
MOST_BITS = 512
"""The most bits of a coefficient."""
MOST_CHARACTERS = 200
"""The most characters of a symbol's name."""


class SizeError(BraidError):
    """A size that has no value, or is too large to be kept as an expression."""


class SizeLimitError(SizeError):
    """An expression is too large: who makes it should define a new symbol instead."""


@dataclass(frozen=True, eq=False)
class Atom:
    """A factor of products: equal to another if `order` is."""

    order: Order = field(init=False, repr=False)
    weight: int = field(init=False, repr=False)
    depth: int = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)

    @property
    def children(self) -> "tuple[Extent, ...]":
        """The sizes that this is an operator on."""
        raise NotImplementedError

    def with_children(self, children: "tuple[Extent, ...]") -> "Extent":
        """Return the size that the same operator gives on other sizes."""
        raise NotImplementedError

    def _finish(self, order: Order, levels: int = 1) -> None:
        """Set what follows from the fields, and refuse what is too large.

        The operator counts as `levels` nested operators.
        """
        weight = levels + sum(weight_of(child) for child in self.children)
        depth = levels + max((depth_of(child) for child in self.children), default=0)
        if weight > MOST_WEIGHT or depth > MOST_DEPTH:
            refuse()
        for name, value in (("order", order), ("weight", weight), ("depth", depth)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_hash", hash(order))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Atom) and self._hash == other._hash and self.order == other.order

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments: hashes of names differ between processes."""
        return type(self), tuple(getattr(self, own.name) for own in fields(self) if own.init)


@dataclass(frozen=True, eq=False)
class Symbol(Atom):
    """A size with a name: of an open dim of an input, or one that an op makes."""

    name: str

    def __post_init__(self) -> None:
        if not 0 < len(self.name) <= MOST_CHARACTERS:
            raise SizeError(
                f"the name of a size has {len(self.name)} characters, "
                f"expected 1 to {MOST_CHARACTERS}"
            )
        self._finish((0, self.name))

    @property
    def children(self) -> "tuple[Extent, ...]":
        """None."""
        return ()

    def with_children(self, children: "tuple[Extent, ...]") -> "Extent":
        """Return the symbol itself."""
        return of_atom(self)


Monomial: TypeAlias = tuple[Atom, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Size:
    """A sum of (product of atoms, coefficient), not all of them constant; see `sum_of`."""

    terms: tuple[tuple[Monomial, int], ...]
    _hash: int = field(init=False, repr=False)

    quotient: ClassVar[Callable[["Extent", "Extent"], "Extent"]]
    """The function that computes `//`: `operators.floordiv`; its file imports this and sets it."""
    printed: ClassVar[Callable[["Extent"], str]]
    """The function that `str` calls: `text.print_size`, set in the same way."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.terms))

    @property
    def constant(self) -> int:
        """The number that is added to all products of atoms."""
        monomial, coefficient = self.terms[-1]
        return coefficient if not monomial else 0

    @property
    def open_terms(self) -> tuple[tuple[Monomial, int], ...]:
        """All terms but the constant."""
        return self.terms if self.terms[-1][0] else self.terms[:-1]

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same expression; `Assumptions.equal` compares values."""
        if self is other:
            return True
        return isinstance(other, Size) and self._hash == other._hash and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments, as atoms do."""
        return Size, (self.terms,)

    # The type of comparisons, which are no conditions: type checkers report a use of the truth of a
    # size.
    def __bool__(self) -> str:
        raise TypeError("a size has no truth value: ask Assumptions.equal or at_most")

    def __add__(self, other: "Extent") -> "Extent":
        if isinstance(other, int):
            if other == 0:
                return self
            constant = self.constant + other
            if abs(constant) >> MOST_BITS:
                refuse()
            last = (((), constant),) if constant else ()
            return Size((*self.open_terms, *last))
        return add_scaled(self, other, 1)

    __radd__ = __add__

    def __neg__(self) -> "Extent":
        return Size(tuple((monomial, -coefficient) for monomial, coefficient in self.terms))

    def __sub__(self, other: "Extent") -> "Extent":
        if isinstance(other, int):
            return self + -other
        return add_scaled(self, other, -1)

    def __rsub__(self, other: "Extent") -> "Extent":
        return -self + other

    def __mul__(self, other: "Extent") -> "Extent":
        if isinstance(other, int):
            return sum_of({monomial: c * other for monomial, c in self.terms}) if other else 0
        if len(self.terms) * len(other.terms) > MOST_WEIGHT:
            refuse()
        found: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                product = multiplied(left, right)
                found[product] = found.get(product, 0) + a * b
        return sum_of(found)

    __rmul__ = __mul__

    def __floordiv__(self, other: "Extent") -> "Extent":
        return Size.quotient(self, other)

    def __rfloordiv__(self, other: int) -> "Extent":
        return Size.quotient(other, self)

    def __mod__(self, other: "Extent") -> "Extent":
        return self - other * (self // other)

    def __rmod__(self, other: int) -> "Extent":
        return other - self * (other // self)

    def __str__(self) -> str:
        return Size.printed(self)

    def __repr__(self) -> str:
        return Size.printed(self)


Extent: TypeAlias = int | Size
ExtentT = TypeVar("ExtentT", bound=Extent)
"""The extents of a shape: It is `int` if all of them are numbers, else `Extent`."""


def symbol(name: str) -> Size:
    """Return the size of this name. Raises `SizeError` for names of no or too many characters."""
    return of_atom(Symbol(name))


def of_atom(atom: Atom) -> Size:
    """Return the size that is this atom alone."""
    return Size((((atom,), 1),))


def atom_alone(extent: Extent) -> Atom | None:
    """Return the atom that a size is, None if it is anything else."""
    if not isinstance(extent, Size):
        return None
    monomial, coefficient = extent.terms[0]
    is_one = coefficient == 1 and len(extent.terms) == len(monomial) == 1
    return monomial[0] if is_one else None


def sum_of(terms: Mapping[Monomial, int]) -> Extent:
    """Return the sum of coefficient × product; products are sorted, coefficients may be zero.

    Raises `SizeLimitError` where it is too large.
    """
    kept = [term for term in terms.items() if term[1]]
    if not kept:
        return 0
    weight = len(kept) + sum(atom.weight for monomial, _ in kept for atom in monomial)
    if weight > MOST_WEIGHT or any(abs(c) >> MOST_BITS for _, c in kept):
        refuse()
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    kept.sort(key=_term_order)
    return Size(tuple(kept))


def add_scaled(a: Size, b: Size, factor: int) -> Extent:
    """Return a + factor · b."""
    found = dict(a.terms)
    for monomial, coefficient in b.terms:
        found[monomial] = found.get(monomial, 0) + factor * coefficient
    return sum_of(found)


def multiplied(left: Monomial, right: Monomial) -> Monomial:
    """Return the product of two products."""
    if not left or not right:
        return left or right
    return tuple(sorted((*left, *right), key=_atom_order))


def terms_of(extent: Extent) -> tuple[tuple[Monomial, int], ...]:
    """Return the terms of a size or a number."""
    if isinstance(extent, Size):
        return extent.terms
    return (((), extent),) if extent else ()


def order_of(extent: Extent) -> Order:
    """Return the sort key of sizes and numbers: that of terms, largest degree first."""
    return tuple((_monomial_order(monomial), c) for monomial, c in terms_of(extent))


def weight_of(extent: Extent) -> int:
    """Return the number of symbols, numbers and operators, as it is written out."""
    if isinstance(extent, int):
        return 1
    return len(extent.terms) + sum(atom.weight for atom in all_factors(extent))


def depth_of(extent: Extent) -> int:
    """Return the nesting of operators."""
    return max((atom.depth for atom in all_factors(extent)), default=0)


def all_factors(extent: Extent) -> Iterable[Atom]:
    """Yield the atoms of all products, with repetition, without those inside of atoms."""
    return (atom for monomial, _ in terms_of(extent) for atom in monomial)


def known(extent: Extent) -> int:
    """Return an extent that is a number, as all are where no dim is open."""
    assert isinstance(extent, int), f"{extent} is a number where sizes are"
    return extent


def symbols_of(*extents: Extent) -> set[str]:
    """Return the names of all symbols that the values of sizes depend on."""
    found: set[str] = set()
    left = [atom for extent in extents for atom in all_factors(extent)]
    while left:
        atom = left.pop()
        if isinstance(atom, Symbol):
            found.add(atom.name)
        left += [inner for child in atom.children for inner in all_factors(child)]
    return found


def substitute(extent: Extent, values: Mapping[Atom, Extent]) -> Extent:
    """Return the size with other sizes in place of atoms, inside of operators too."""
    if isinstance(extent, int) or not values:
        return extent
    total: Extent = 0
    unchanged: dict[Monomial, int] = {}
    for monomial, coefficient in extent.terms:
        factors = [_substituted(atom, values) for atom in monomial]
        if all(new is None for new in factors):
            unchanged[monomial] = unchanged.get(monomial, 0) + coefficient
            continue
        product: Extent = coefficient
        for atom, new in zip(monomial, factors, strict=True):
            product = product * (of_atom(atom) if new is None else new)
        total = total + product
    return total + sum_of(unchanged)


def _substituted(atom: Atom, values: Mapping[Atom, Extent]) -> Extent | None:
    """Return the replacement of an atom, None to keep it."""
    if (found := values.get(atom)) is not None:
        return found
    children = atom.children
    if not children:
        return None
    new = tuple(substitute(child, values) for child in children)
    return None if new == children else atom.with_children(new)


def _atom_order(atom: Atom) -> Order:
    return atom.order


def _monomial_order(monomial: Monomial) -> Order:
    """Return a graded sort key: products of more atoms come first, the constant last."""
    return (-len(monomial), *(atom.order for atom in monomial))


def _term_order(term: tuple[Monomial, int]) -> Order:
    return _monomial_order(term[0])


def refuse() -> NoReturn:
    """Raise the error of an expression that is too large."""
    raise SizeLimitError(
        f"a size expression has more than {MOST_WEIGHT} parts, {MOST_DEPTH} operators inside of "
        f"each other or coefficients of more than {MOST_BITS} bits",
        hint="fix the extents from which it is computed, or bound them",
    )
