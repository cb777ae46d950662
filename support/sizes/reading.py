"""Reads sizes from text, see `text.py`; any text gives a size or a `SizeError`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from braid.support.sizes.expression import (
    MOST_BITS,
    Extent,
    Monomial,
    SizeError,
    SizeLimitError,
    refuse,
    sum_of,
    symbol,
    terms_of,
)
from braid.support.sizes.operators import (
    Condition,
    ceildiv,
    floordiv,
    is_at_most,
    is_equal,
    maximum,
    minimum,
    mod,
    select,
)
from braid.support.sizes.scalars import (
    OPERATIONS,
    ROUNDINGS,
    Scalar,
    apply,
    convert,
    number,
    of_size,
    rounded,
)
from braid.support.sizes.text import INFIX, WORD

MOST_TEXT = 1 << 21
"""Characters that are read."""
_MOST_NESTING = 100
_TOKEN = re.compile(
    r"\s*(?:(?P<float>-?(?:0x[0-9a-f]+(?:\.[0-9a-f]*)?p[+-]?\d+|\d+\.\d*(?:e[+-]?\d+)?|inf\b|nan\b))"
    r"|(?P<int>\d+)"
    rf"|(?P<word>{WORD.pattern})"
    r'|(?P<quoted>"(?:[^"\\]|\\.)*")'
    r"|(?P<sign>!=|<=|>=|[-+*/(),=<>]))",
    re.ASCII,
)
_QUOTIENTS = {"floordiv": floordiv, "ceildiv": ceildiv, "mod": mod}
_WIDTHS = {"f32": 32, "f64": 64}
_CONVERSIONS = {"to_f32": 32, "to_f64": 64}


def parse_size(text: str) -> Extent:
    """Return the size or number that a text says. Raises `SizeError` for any other text."""
    if len(text) > MOST_TEXT:
        raise SizeLimitError(f"the text of a size has {len(text)} characters, at most {MOST_TEXT}")
    reader = _Reader(text)
    size = reader.sum()
    if reader.kind:
        reader.fail("the end")
    return size


@dataclass
class _Reader:
    """A recursive descent over the tokens of a text; `kind` is empty at its end."""

    text: str
    place: int = 0
    kind: str = ""
    token: str = ""
    nesting: int = 0

    def __post_init__(self) -> None:
        self.next()

    def next(self) -> None:
        """Take the next token."""
        found = _TOKEN.match(self.text, self.place)
        if found is None:
            self.kind, self.token = "", self.text[self.place :].strip()
            if self.token:
                self.place = len(self.text.rstrip())
                self.fail("a size")
            return
        self.kind = str(found.lastgroup)
        self.token, self.place = found[self.kind], found.end()

    def fail(self, expected: str) -> NoReturn:
        """Raise what is wrong at this token."""
        shown = self.text if len(self.text) <= 200 else f"{self.text[:200]}…"
        found = f"'{self.token[:50]}'" if self.token else "nothing"
        place = self.place - len(self.token) + 1
        raise SizeError(f"the size '{shown}' has {found} at character {place}, expected {expected}")

    def take(self, *tokens: str) -> str:
        """Take one of some signs and words if it is next; empty if it is not."""
        token = self.token
        if self.kind not in ("sign", "word") or token not in tokens:
            return ""
        self.next()
        return token

    def expect(self, sign: str) -> None:
        """Take a sign, which has to be next."""
        if not self.take(sign):
            self.fail(f"'{sign}'")

    def open(self) -> None:
        """Take a parenthesis that opens."""
        self.nesting += 1
        if self.nesting > _MOST_NESTING:
            raise SizeLimitError(f"a size has more than {_MOST_NESTING} parentheses in each other")
        self.expect("(")

    def close(self) -> None:
        """Take a parenthesis that closes."""
        self.nesting -= 1
        self.expect(")")

    # ---- Sizes ----

    def sum(self) -> Extent:
        """Read a size; like terms are added up once, at the end."""
        found: dict[Monomial, int] = {}
        factor = 1
        while True:
            for monomial, coefficient in terms_of(self.product()):
                found[monomial] = found.get(monomial, 0) + factor * coefficient
            sign = self.take("+", "-")
            if not sign:
                return sum_of(found)
            factor = 1 if sign == "+" else -1

    def product(self) -> Extent:
        """Read factors and quotients, from left to right."""
        left = self.factor()
        while sign := self.take("*", *_QUOTIENTS):
            right = self.factor()
            left = left * right if sign == "*" else _QUOTIENTS[sign](left, right)
            if isinstance(left, int) and abs(left) >> MOST_BITS:
                refuse()
        return left

    def factor(self) -> Extent:
        """Read the operands of infix operators."""
        is_negative = False
        while self.take("-"):
            is_negative = not is_negative
        found = self.primary()
        return -found if is_negative else found

    def primary(self) -> Extent:
        """Read a number, a name, a call or a size in parentheses."""
        if self.kind == "int":
            value = int(self.token) if len(self.token) <= MOST_BITS else 1 << MOST_BITS
            if value >> MOST_BITS:
                refuse()
            self.next()
            return value
        if self.kind == "quoted":
            name = _unquoted(self.token)
            self.next()
            return symbol(name)
        if self.kind == "sign" and self.token == "(":
            self.open()
            found = self.sum()
            self.close()
            return found
        if self.kind != "word":
            self.fail("a size")
        word = self.token
        self.next()
        return self.call(word)

    def call(self, word: str) -> Extent:
        """Read what follows a word, or nothing where it is a name."""
        match word:
            case "min":
                return minimum(*self.arguments())
            case "max":
                return maximum(*self.arguments())
            case "select":
                self.open()
                condition, is_negated = self.condition()
                self.expect(",")
                chosen = self.sum()
                self.expect(",")
                otherwise = self.sum()
                self.close()
                parts = (otherwise, chosen) if is_negated else (chosen, otherwise)
                return select(condition, *parts)
            case rounding if rounding in ROUNDINGS:
                self.open()
                scalar = self.scalar_sum()
                self.close()
                return rounded(rounding, scalar)
            case name:
                return symbol(name)

    def arguments(self) -> Sequence[Extent]:
        """Read one or more sizes in parentheses."""
        self.open()
        found = [self.sum()]
        while self.take(","):
            found.append(self.sum())
        self.close()
        return found

    def condition(self) -> tuple[Condition | bool, bool]:
        """Read a comparison; also returns whether its negation is meant."""
        left = self.sum()
        sign = self.take("=", "!=", "<=", "<", ">=", ">")
        if not sign:
            self.fail("a comparison")
        right = self.sum()
        match sign:
            case "=" | "!=":
                return is_equal(left, right), sign == "!="
            case "<=" | ">":
                return is_at_most(left, right), sign == ">"
            case _:
                return is_at_most(right, left), sign == "<"

    # ---- Floats ----

    def scalar_sum(self) -> Scalar:
        """Read a float."""
        left = self.scalar_product()
        while sign := self.take("+", "-"):
            left = apply(INFIX[sign], left, self.scalar_product())
        return left

    def scalar_product(self) -> Scalar:
        """Read factors, from left to right."""
        left = self.scalar()
        while sign := self.take("*", "/"):
            left = apply(INFIX[sign], left, self.scalar())
        return left

    def scalar(self) -> Scalar:
        """Read a float that no operator is part of."""
        if self.kind == "sign" and self.token == "(":
            word = ""
        elif not (word := self.take(*_WIDTHS, *_CONVERSIONS, *OPERATIONS)):
            self.fail("a float, such as f32(2.5)")
        self.open()
        if word in _WIDTHS:
            found = self.converted(_WIDTHS[word])
        else:
            found = self.scalar_sum()
            if word in _CONVERSIONS:
                found = convert(found, _CONVERSIONS[word])
            elif word:
                found = apply(word, found)
        self.close()
        return found

    def converted(self, width: int) -> Scalar:
        """Read a size, or the text of a float."""
        if self.kind != "float":
            return of_size(self.sum(), width)
        text = self.token
        self.next()
        try:
            value = float.fromhex(text) if "x" in text else float(text)
        except (OverflowError, ValueError):
            self.fail(f"a float, not '{text[:50]}'")
        return number(value, width)


def _unquoted(text: str) -> str:
    """Return the name that stands in quotes. Raises `SizeError` for escapes that mean nothing."""
    try:
        return text[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")
    except UnicodeDecodeError:
        raise SizeError(f"the name {text[:50]} of a size has an escape without a meaning") from None
