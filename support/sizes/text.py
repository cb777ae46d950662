"""Sizes as text, for people and files: `batch * ((sequence + 15) floordiv 16)`.

The operators are those of MLIR's affine expressions, with their precedence: `*`, `floordiv`,
`ceildiv` and `mod` from left to right, before `+` and `-`. Besides there are `min(a, b)`, `max(a,
b)`, `select(a = 1, b, c)`, whose conditions compare by `=`, `!=`, `<=`, `<`, `>=` or `>`, and
floats in `floor(…)`, `ceil(…)`, `round(…)` and `trunc(…)`: there `f32(s)` and `f64(s)` convert a
size or hold a number, `to_f32` and `to_f64` convert floats. A name is quoted unless it consists of
letters, digits, `_`, `.`, `$` and `:`.

`reading.parse_size` reads it: what `print_size` writes gives the same size.
"""

import re

from braid.support.sizes.expression import (
    Atom,
    Extent,
    Monomial,
    Size,
    Symbol,
    atom_alone,
    terms_of,
)
from braid.support.sizes.operators import Condition, Extreme, FloorDiv, Select
from braid.support.sizes.scalars import OPERATIONS, Rounded, Scalar, value_of

QUOTIENTS = ("floordiv", "ceildiv", "mod")
INFIX = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
"""Operators of floats."""
WORD = re.compile(r"[A-Za-z_][\w.$:]*", re.ASCII)
KEYWORDS = {
    *(*QUOTIENTS, *OPERATIONS, "min", "max", "select", "inf", "nan"),
    *("f32", "f64", "to_f32", "to_f64"),
}


def print_size(extent: Extent) -> str:
    """Return the text of a size or a number."""
    if isinstance(extent, int):
        return str(extent)
    terms = dict(extent.terms)
    parts = [part for term in extent.terms if (part := _remainder(term, terms)) is not None]
    parts += [_product(monomial, c) for monomial, c in terms.items()]
    text = parts[0] if parts else "0"
    for part in parts[1:]:
        text += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
    return text


Size.printed = staticmethod(print_size)


def _remainder(term: tuple[Monomial, int], terms: dict[Monomial, int]) -> str | None:
    """Return k · (a mod b) if the terms contain it, and remove it from them."""
    monomial, coefficient = term
    atom = monomial[0] if len(monomial) == 1 else None
    if not isinstance(atom, FloorDiv) or not isinstance(atom.divisor, int):
        return None
    factor, rest = divmod(-coefficient, atom.divisor)
    numerator = dict(terms_of(atom.numerator))
    constant = numerator.pop((), 0)
    if rest or any(terms.get(m) != factor * c for m, c in numerator.items()):
        return None
    for used in (monomial, *numerator):
        del terms[used]
    left = terms.pop((), 0) - factor * constant
    if left:
        terms[()] = left
    text = f"{_operand(atom.numerator)} mod {atom.divisor}"
    return text if factor == 1 else _scaled(factor, f"({text})")


def _product(monomial: Monomial, coefficient: int) -> str:
    if not monomial:
        return str(coefficient)
    factors: list[str] = []
    for atom in monomial:
        text = _atom(atom, coefficient if len(monomial) == 1 else 0)
        if text.startswith("-"):
            coefficient, text = -coefficient, text[1:]
        factors.append(text)
    return _scaled(coefficient, " * ".join(factors))


def _scaled(coefficient: int, text: str) -> str:
    if abs(coefficient) == 1:
        return text if coefficient > 0 else f"-{text}"
    return f"{coefficient} * {text}"


def _atom(atom: Atom, coefficient: int) -> str:
    """Return the text of a factor; it begins with `-` where it is the negative of the rest.

    A quotient is in parentheses unless it is only added.
    """
    match atom:
        case Symbol(name=name):
            return print_name(name)
        case FloorDiv(numerator=numerator, divisor=divisor):
            is_negative = terms_of(numerator)[0][1] < 0
            left = _operand(-numerator if is_negative else numerator)
            text = f"{left} {'ceildiv' if is_negative else 'floordiv'} {_operand(divisor)}"
            is_added = coefficient == (-1 if is_negative else 1)
            return ("-" if is_negative else "") + (text if is_added else f"({text})")
        case Extreme(is_max=is_max, arguments=arguments):
            return f"{'max' if is_max else 'min'}({', '.join(map(print_size, arguments))})"
        case Select(condition=condition, chosen=chosen, otherwise=otherwise):
            return f"select({_condition(condition)}, {print_size(chosen)}, {print_size(otherwise)})"
        case Rounded(rounding=rounding, scalar=scalar):
            return f"{rounding}({print_scalar(scalar)})"
        case other:
            raise AssertionError(f"unknown atom {other}")


def _operand(extent: Extent) -> str:
    """Return the text of a size beside an operator that binds its operands."""
    text = print_size(extent)
    is_simple = text.isdigit() or isinstance(
        atom_alone(extent), Symbol | Extreme | Select | Rounded
    )
    return text if is_simple else f"({text})"


def _condition(condition: Condition) -> str:
    """Return the condition with its number at the right."""
    size = condition.size
    left = print_size(size - size.constant)
    return f"{left} {'=' if condition.is_zero else '<='} {-size.constant}"


def print_scalar(scalar: Scalar) -> str:
    """Return the text of a float that is computed from sizes."""
    operands = [print_scalar(operand) for operand in scalar.operands]
    match scalar.operation:
        case "number":
            return f"f{scalar.width}({_number(value_of(scalar.bits))})"
        case "of_size":
            return f"f{scalar.width}({print_size(scalar.size)})"
        case "convert":
            return f"to_f{scalar.width}({operands[0]})"
        case operation if len(operands) == 2:
            sign = next(sign for sign, name in INFIX.items() if name == operation)
            return f"({operands[0]} {sign} {operands[1]})"
        case operation:
            return f"{operation}({operands[0]})"


def _number(value: float) -> str:
    return re.sub(r"\.?0*p", "p", value.hex(), count=1)


def print_name(name: str) -> str:
    """Return the name of a symbol as it stands in text."""
    if WORD.fullmatch(name) and name not in KEYWORDS:
        return name
    return f'"{name.encode("unicode_escape").decode().replace(chr(34), chr(92) + "x22")}"'
