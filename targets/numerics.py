"""What kernels may do to results: `numerics` of `braid.compile`, and the environment."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum

from braid.support.errors import BraidError, did_you_mean

VARIABLE = "BRAID_NUMERICS"
"""Names what holds where nothing else is said."""


class Numerics(StrEnum):
    """Sums in another order and contracted multiply-adds alone, or also approximate algorithms.

    Those are of families that say so (`is_approximate`): their sums cancel.
    """

    STRICT = "strict"
    FAST = "fast"


_CHOSEN: ContextVar[Numerics | None] = ContextVar("_CHOSEN", default=None)


def numerics_chosen() -> Numerics:
    """What the innermost `with_numerics` says, else the environment, else `fast`.

    Raises `BraidError` for a variable with another value.
    """
    chosen = _CHOSEN.get()
    return _parsed(os.environ.get(VARIABLE) or Numerics.FAST) if chosen is None else chosen


@contextmanager
def with_numerics(numerics: str | None) -> Generator[None]:
    """Let kernels be as `numerics` says; None changes nothing. Raises `BraidError` for others."""
    token = _CHOSEN.set(_CHOSEN.get() if numerics is None else _parsed(numerics))
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def _parsed(text: str) -> Numerics:
    if text not in list(Numerics):
        raise BraidError(
            f"numerics are {text!r}, expected one of {', '.join(Numerics)}",
            hint=did_you_mean(str(text), Numerics),
        )
    return Numerics(text)
