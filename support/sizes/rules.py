"""Rules by which elementwise ops compute with sizes, and with bools that depend on sizes.

Models compute shapes by ops on integers: their quotients are rounded toward zero, and bools choose
between sizes. A bool is a size that is 0 or 1.
"""

import operator
from collections.abc import Callable

from braid.support.sizes.assumptions import Answer, Assumptions
from braid.support.sizes.expression import (
    Atom,
    Extent,
    Size,
    SizeError,
    all_factors,
    of_atom,
    substitute,
    terms_of,
)
from braid.support.sizes.operators import (
    Condition,
    FloorDiv,
    Select,
    ceildiv,
    is_at_most,
    is_equal,
    maximum,
    minimum,
    select,
)
from braid.support.sizes.program import is_int64

_LARGEST_FACTOR = 2**32
"""Products of larger numbers with an extent may exceed 64 bits."""

Rule = Callable[..., Extent | None]
"""A rule gives the result of an op, from what is assumed of symbols and the operands' values.

It is None if the result is no size, or depends on unknown values.
"""


def _plain(function: Callable[..., Extent]) -> Rule:
    """Return the rule of a function that need not know anything of the symbols."""

    def rule(known: Assumptions, *values: Extent) -> Extent:
        return function(*values)

    return rule


def _in_cases(rule: Rule) -> Rule:
    """Return a rule that distinguishes the two cases of a condition where that is shorter.

    Models compute quotients that are rounded down by comparisons of quotients and remainders that
    are rounded toward zero; where nothing is negative, the cases are alike.
    """

    def in_cases(known: Assumptions, *values: Extent) -> Extent | None:
        factors = [atom for value in values for atom in all_factors(value)]
        selects = [atom for atom in factors if isinstance(atom, Select)]
        for condition in dict.fromkeys(atom.condition for atom in selects):
            alike = [atom for atom in selects if atom.condition == condition]
            cases: list[dict[Atom, Extent]] = [
                {atom: atom.chosen for atom in alike},
                {atom: atom.otherwise for atom in alike},
            ]
            try:
                chosen, otherwise = (
                    rule(known, *(substitute(value, parts) for value in values)) for parts in cases
                )
            except SizeError:
                continue  # one of the cases has no value
            if chosen is not None and chosen == otherwise:
                return chosen
            if isinstance(chosen, int) and isinstance(otherwise, int):
                return select(condition, chosen, otherwise)
        return rule(known, *values)

    return in_cases


def _negative(a: Extent) -> Extent:
    return 0 - a


def _same(a: Extent) -> Extent:
    return a


def _chosen(condition: Extent, a: Extent, b: Extent) -> Extent:
    """Return a select by a bool, which is often itself a select of 0 and 1."""
    factors = all_factors(condition)
    for atom in (atom for atom in factors if isinstance(atom, Select)):
        cases = [substitute(condition, {atom: part}) for part in (atom.chosen, atom.otherwise)]
        if all(isinstance(case, int) for case in cases):
            first, second = (b if case == 0 else a for case in cases)
            rounded = _rounded_up(atom.condition)
            if rounded is not None and second - first in (1, -1):
                return first + (second - first) * rounded
            return select(atom.condition, first, second)
    return select(is_equal(condition, 0), b, a)


def _rounded_up(condition: Condition) -> Extent | None:
    """Return a ceildiv b - a floordiv b, which is 0 where a mod b is, where that is the condition.

    It is 1 elsewhere: a quotient corrected by cases is rounded in the other direction.
    """
    for atom in all_factors(condition.size) if condition.is_zero else ():
        if isinstance(atom, FloorDiv) and isinstance(atom.divisor, int) and atom.divisor > 0:
            rest = atom.numerator - atom.divisor * of_atom(atom)
            if condition.size in (rest, 0 - rest):
                return ceildiv(atom.numerator, atom.divisor) - of_atom(atom)
    return None


def _quotient(known: Assumptions, a: Extent, b: Extent) -> Extent | None:
    """Return the quotient, which models round toward zero; None where its sign is unknown.

    It has no value where the divisor is zero, as in the model.
    """
    if b == 0 or not _at_most(known, 0, b):
        return None
    if _at_most(known, 0, a):
        return a // b
    return 0 - (0 - a) // b if _at_most(known, a, 0) else None


def _remainder(known: Assumptions, a: Extent, b: Extent) -> Extent | None:
    quotient = _quotient(known, a, b)
    return None if quotient is None else a - b * quotient


def _at_most(known: Assumptions, a: Extent, b: Extent) -> bool:
    return known.at_most(a, b) is Answer.YES


def _largest(known: Assumptions, a: Extent, b: Extent) -> Extent:
    return known.simplified(maximum(a, b))


def _least(known: Assumptions, a: Extent, b: Extent) -> Extent:
    return known.simplified(minimum(a, b))


def _sign(known: Assumptions, a: Extent) -> Extent | None:
    for sign, size in ((1, a), (-1, 0 - a)):
        if _at_most(known, 1, size):
            return sign
        if _at_most(known, 0, size):
            return select(is_equal(a, 0), 0, sign)
    return None


ARITHMETIC: dict[str, Rule] = {
    "add": _plain(operator.add),
    "sub": _plain(operator.sub),
    "mul": _plain(operator.mul),
    "div": _quotient,
    "rem": _remainder,
    "neg": _plain(_negative),
    "maximum": _largest,
    "minimum": _least,
    "cast": _plain(_same),
    "sign": _in_cases(_sign),
    "select": _in_cases(_plain(_chosen)),
}
"""The rules of 64-bit integers, which extents of tensors never exceed, by the names of ops."""


def _equal(known: Assumptions, a: Extent, b: Extent) -> Extent:
    return _bool(known.equal(a, b), is_equal(a, b))


def _no_more(known: Assumptions, a: Extent, b: Extent) -> Extent:
    return _bool(known.at_most(a, b), is_at_most(a, b))


def _bool(answer: Answer, condition: Condition | bool) -> Extent:
    """Return 1 or 0 for an answer, or the size that is 1 where the condition holds."""
    return select(condition, 1, 0) if answer is Answer.UNKNOWN else int(answer is Answer.YES)


def _not_equal(known: Assumptions, a: Extent, b: Extent) -> Extent:
    return 1 - _equal(known, a, b)


def _less(known: Assumptions, a: Extent, b: Extent) -> Extent:
    return 1 - _no_more(known, b, a)


def _no_less(known: Assumptions, a: Extent, b: Extent) -> Extent:
    return _no_more(known, b, a)


def _more(known: Assumptions, a: Extent, b: Extent) -> Extent:
    return 1 - _no_more(known, a, b)


def _or(a: Extent, b: Extent) -> Extent:
    return a + b - a * b


def _xor(a: Extent, b: Extent) -> Extent:
    return a + b - 2 * a * b


def _not(a: Extent) -> Extent:
    return 1 - a


LOGIC: dict[str, Rule] = {
    name: _in_cases(rule)
    for name, rule in {
        "eq": _equal,
        "ne": _not_equal,
        "le": _no_more,
        "lt": _less,
        "ge": _no_less,
        "gt": _more,
        "and": _plain(operator.mul),
        "or": _plain(_or),
        "xor": _plain(_xor),
        "not": _plain(_not),
    }.items()
}
"""The rules of bools, which are numbers and sizes of 0 and 1, and of comparisons."""


def may_wrap(extent: Extent) -> bool:
    """Return whether a number does not fit 64 bits, or a size does not for extents of up to
    2^31."""
    if isinstance(extent, Size):
        return any(abs(factor) > _LARGEST_FACTOR for product, factor in terms_of(extent) if product)
    return not is_int64(extent)
