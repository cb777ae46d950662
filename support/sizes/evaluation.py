"""The values of sizes at numbers for their symbols, exact: no integer is too large."""

from collections.abc import Mapping

from braid.support.sizes.expression import Atom, Extent, SizeError, Symbol, terms_of
from braid.support.sizes.operators import Extreme, FloorDiv, Select
from braid.support.sizes.scalars import Rounded, evaluate_scalar, to_integer


def evaluate(extent: Extent, values: Mapping[str, int]) -> int:
    """Return the value of a size at these values of symbols.

    Raises `SizeError` where a symbol has no value, a divisor is zero, or a float is no integer of
    64 bits.
    """
    total = 0
    for monomial, coefficient in terms_of(extent):
        for atom in monomial:
            coefficient *= _value(atom, values)
        total += coefficient
    return total


def _value(atom: Atom, values: Mapping[str, int]) -> int:
    match atom:
        case Symbol(name=name):
            if name not in values:
                raise SizeError(f"size '{name}' has no value")
            return values[name]
        case FloorDiv(numerator=numerator, divisor=divisor):
            by = evaluate(divisor, values)
            if by == 0:
                raise SizeError(f"'{numerator} floordiv ({divisor})' divides by zero")
            return evaluate(numerator, values) // by
        case Extreme(is_max=is_max, arguments=arguments):
            return (max if is_max else min)(evaluate(argument, values) for argument in arguments)
        case Select(condition=condition, chosen=chosen, otherwise=otherwise):
            holds = condition.holds(evaluate(condition.size, values))
            return evaluate(chosen if holds else otherwise, values)
        case Rounded(rounding=rounding, scalar=scalar):
            return to_integer(rounding, evaluate_scalar(scalar, lambda s: evaluate(s, values)))
        case other:
            raise AssertionError(f"unknown atom {other}")
