"""Settings that change the code of a model, besides its target and the passes that run.

A module holds them in `braid.settings` (`dialects/braid/settings.py`), which is all that passes,
backends and kernel families read. Keywords, options of commands and variables of the environment
only write that attribute, before the first pass.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from braid.support.errors import BraidError, did_you_mean
from braid.support.option_names import option_text


class Numerics(StrEnum):
    """The roundings that may change: those of reassociated and fused sums alone, or more.

    `fast` permits approximate algorithms too, of families that say so (`is_approximate`), since
    their sums cancel, and scales and shifts that passes fold into products (docs/numerics.md).
    """

    STRICT = "strict"
    FAST = "fast"


class Precision(StrEnum):
    """The type of products of f32: as the model says, or of bf16 with sums in f32."""

    MODEL = "model"
    BF16 = "bf16"


class Kernels(StrEnum):
    """Whose kernels a model gets.

    Which kernels run: braid's own; those of a vendor's library, wherever it has one; the best of
    both, by measurements; or none, so that the generic lowering makes all code.
    """

    GENERATED = "generated"
    LIBRARY = "library"
    BEST = "best"
    GENERIC = "generic"


@dataclass(frozen=True)
class Settings:
    """The settings that a module gives by `braid.settings`.

    With `library_on_miss`, a kernel without a record of a search is a vendor's, if there is one.
    With `emulate`, the host stands in for backends that are not installed.
    """

    numerics: Numerics = Numerics.FAST
    precision: Precision = Precision.MODEL
    kernels: Kernels = Kernels.GENERATED
    library_on_miss: bool = False
    emulate: bool = False

    @property
    def is_strict(self) -> bool:
        """Return whether results may differ from exact ones by the order of sums alone."""
        return self.numerics is Numerics.STRICT

    @property
    def said(self) -> dict[str, str | bool]:
        """Return the values that are not the default ones, by name."""
        return {name: value for name, value in vars(self).items() if value != _DEFAULTS[name]}

    def with_given(self, given: Mapping[str, object]) -> "Settings":
        """Return the settings with the values that are `given`; None gives nothing.

        Raises BraidError for an unknown name or value.
        """
        found = {name: _value(name, value) for name, value in given.items() if value is not None}
        return replace(self, **found) if found else self


DEFAULTS = Settings()
"""The settings of a module that says none."""
_DEFAULTS: Mapping[str, StrEnum | bool] = vars(DEFAULTS)

NUMERICS, PRECISION, EMULATE = VARIABLES = ("BRAID_NUMERICS", "BRAID_PRECISION", "BRAID_EMULATE")
"""The variables of the environment that write settings on modules that say none."""


def settings_of_environment() -> Settings:
    """Return the settings that the environment asks for.

    Raises BraidError for a variable with another value than its setting has.
    """
    emulate = os.environ.get(EMULATE, "") not in ("", "0")  # as the runtime reads it
    found = DEFAULTS.with_given({"emulate": emulate})
    given = {
        "numerics": (NUMERICS, os.environ.get(NUMERICS)),
        "precision": (PRECISION, os.environ.get(PRECISION)),
    }
    for name, (variable, value) in given.items():
        try:
            found = found.with_given({name: value or None})
        except BraidError as error:
            raise BraidError(
                f"{variable} of the environment: {error.message}",
                hint=error.hint or f"unset {variable}",
            ) from error
    return found


def _value(name: str, value: object) -> object:
    if name not in _DEFAULTS:
        raise BraidError(
            f"there is no setting '{name}'",
            hint=did_you_mean(name, _DEFAULTS) or f"settings are {', '.join(_DEFAULTS)}",
        )
    default = _DEFAULTS[name]
    if isinstance(default, bool):
        if value not in (True, False, "true", "false"):
            raise BraidError(f"{option_text(name)} is {value!r}, expected true or false")
        return value in (True, "true")
    known = list(type(default))
    if value not in known:
        called = option_text(name)
        verb = "are" if called in ("kernels", "numerics") else "is"
        raise BraidError(
            f"{called} {verb} {value!r}, expected one of {', '.join(known)}",
            hint=did_you_mean(str(value), known) or f"such as {option_text(name, known[0])}",
        )
    return next(each for each in known if each == value)
