"""What may be done to results: `numerics`, `precision`, of `braid.compile` or the environment."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import TypeVar

from braid.support.compile_scope import compile_setting
from braid.support.errors import BraidError, did_you_mean

VARIABLE, PRECISION_VARIABLE = "BRAID_NUMERICS", "BRAID_PRECISION"
"""Names of what holds where nothing else is said."""


class Numerics(StrEnum):
    """Which roundings may change: reassociated and fused sums alone, or approximations too.

    That is approximate algorithms, of families that say so (`is_approximate`), since their sums
    cancel, and scales and shifts that passes fold into products (docs/numerics.md).
    """

    STRICT = "strict"
    FAST = "fast"


class Precision(StrEnum):
    """In which type products of f32 are made: as the model says, or of bf16 with sums in f32."""

    MODEL = "model"
    BF16 = "bf16"


_Choice = TypeVar("_Choice", Numerics, Precision)
_NUMERICS: ContextVar[Numerics | None] = compile_setting("numerics", None)
_PRECISION: ContextVar[Precision | None] = compile_setting("precision", None)


def numerics_chosen() -> Numerics:
    """What the innermost `with_numerics` says, else the environment, else `fast`.

    Raises `BraidError` for a variable with another value.
    """
    return _NUMERICS.get() or _parsed(Numerics, os.environ.get(VARIABLE) or Numerics.FAST)


def precision_chosen() -> Precision:
    """What the innermost `with_numerics` says, else the environment, else `model`.

    Raises `BraidError` for a variable with another value.
    """
    given = os.environ.get(PRECISION_VARIABLE) or Precision.MODEL
    return _PRECISION.get() or _parsed(Precision, given)


@contextmanager
def with_numerics(numerics: str | None, precision: str | None = None) -> Generator[None]:
    """Let results be as these say; None changes nothing. Raises `BraidError` for others."""
    first, second = _NUMERICS.get(), _PRECISION.get()
    first = first if numerics is None else _parsed(Numerics, numerics)
    second = second if precision is None else _parsed(Precision, precision)
    tokens = _NUMERICS.set(first), _PRECISION.set(second)
    try:
        yield
    finally:
        _NUMERICS.reset(tokens[0])
        _PRECISION.reset(tokens[1])


def _parsed(kind: type[_Choice], text: str) -> _Choice:
    if text not in list(kind):
        verb = "numerics are" if kind is Numerics else "precision is"
        raise BraidError(
            f"{verb} {text!r}, expected one of {', '.join(kind)}",
            hint=did_you_mean(str(text), kind),
        )
    return kind(text)
