"""Random size expressions as they are written, with their meaning in a few lines of their own."""

import math
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from braid.support.sizes import operators, scalars
from braid.support.sizes.expression import Extent, symbol

NAMES = ("a", "b", "c")
Written = tuple[Any, ...]
"""An operator and its operands."""


def _operators(parts: st.SearchStrategy[Written]) -> st.SearchStrategy[Written]:
    comparisons = st.tuples(st.sampled_from(["=", "<=", "<", "!="]), parts, parts)
    return st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "floordiv", "ceildiv", "mod"]), parts, parts),
        st.tuples(st.sampled_from(["min", "max"]), parts, parts),
        st.tuples(st.sampled_from(["min", "max"]), parts, parts, parts),
        st.tuples(st.just("select"), comparisons, parts, parts),
    )


leaves: st.SearchStrategy[Written] = st.one_of(
    st.tuples(st.just("symbol"), st.sampled_from(NAMES)),
    st.tuples(st.just("number"), st.one_of(st.integers(-4, 20), st.sampled_from([16, 64]))),
)
integers = st.recursive(leaves, _operators, max_leaves=8)
floats: st.SearchStrategy[Written] = st.tuples(
    st.sampled_from(["floor", "ceil", "round", "trunc"]),
    st.sampled_from(["add", "sub", "mul", "div"]),
    st.sampled_from([32, 64]),
    integers,
    st.sampled_from([0.5, 1.5, 0.1, 7.0, 3e9]),
)
written = st.recursive(st.one_of(leaves, leaves, floats), _operators, max_leaves=8)


def made(expression: Written) -> Extent:
    """Return the size that is written. Raises `SizeError` where it divides by the number zero."""
    match expression:
        case ("symbol", name):
            return symbol(name)
        case ("number", value):
            return value
        case ("+", a, b):
            return made(a) + made(b)
        case ("-", a, b):
            return made(a) - made(b)
        case ("*", a, b):
            return made(a) * made(b)
        case ("floordiv" | "ceildiv" | "mod" as name, a, b):
            return getattr(operators, name)(made(a), made(b))
        case ("min", *arguments):
            return operators.minimum(*map(made, arguments))
        case ("max", *arguments):
            return operators.maximum(*map(made, arguments))
        case ("select", (sign, left, right), a, b):
            match sign:
                case "=" | "!=":
                    condition = operators.is_equal(made(left), made(right))
                case "<=":
                    condition = operators.is_at_most(made(left), made(right))
                case _:
                    condition = operators.is_at_most(made(left) + 1, made(right))
            parts = (made(b), made(a)) if sign == "!=" else (made(a), made(b))
            return operators.select(condition, *parts)
        case (rounding, operation, width, part, number):
            operands = scalars.of_size(made(part), width), scalars.number(number, width)
            return scalars.rounded(rounding, scalars.apply(operation, *operands))
        case _:
            raise AssertionError(expression)


def value(expression: Written, values: Mapping[str, int]) -> int | None:
    """Return what is written means, None where a divisor is zero or a float is no size."""
    match expression:
        case ("symbol", name):
            return values[name]
        case ("number", number):
            return number
        case ("select", (sign, left, right), a, b):
            x, y = value(left, values), value(right, values)
            if x is None or y is None:
                return None
            holds = {"=": x == y, "!=": x != y, "<=": x <= y, "<": x < y}[sign]
            return value(a if holds else b, values)
        case ("floor" | "ceil" | "round" | "trunc", *_):
            return _float_value(expression, values)
        case (operator, *parts):
            known = [found for part in parts if (found := value(part, values)) is not None]
            return _integer_value(operator, known) if len(known) == len(parts) else None
        case _:
            raise AssertionError(expression)


def _integer_value(operator: str, operands: list[int]) -> int | None:
    if operator in ("min", "max"):
        return min(operands) if operator == "min" else max(operands)
    a, b = operands
    if operator in ("floordiv", "ceildiv", "mod") and b == 0:
        return None
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "floordiv":
            return a // b
        case "ceildiv":
            return -(-a // b)
        case _:
            return a % b


def _float_value(expression: Written, values: Mapping[str, int]) -> int | None:
    """By numpy's scalars, which round each operation to their width."""
    import numpy as np

    rounding, operation, width, part, number = expression
    if (whole := value(part, values)) is None:
        return None
    kind = np.float32 if width == 32 else np.float64
    with np.errstate(all="ignore"):
        a, b = kind(whole), kind(number)
        result = {"add": a + b, "sub": a - b, "mul": a * b, "div": a / b}[operation]
        function = {"floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc}
        result = float(function[rounding](result))
    return int(result) if math.isfinite(result) and -(2.0**63) <= result < 2.0**63 else None
