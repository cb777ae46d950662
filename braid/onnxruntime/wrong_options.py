"""Find the option of a session that is to blame where its model is not compiled.

The compiler reports the error wherever it finds it. An option is wrong if an empty model cannot be
compiled with it either. An option about the model is wrong if the model can be read without it, or
is then refused for another reason.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from braid.driver.compile import compile_or_load
from braid.driver.options import CompileOptions
from braid.onnxruntime.entries import ABOUT_THE_MODEL, OWN_KEYS, read_entry
from braid.onnxruntime.errors import InvalidArgument
from braid.support.errors import BraidError, InfeasibleError
from braid.support.option_names import naming_entries

_NOTHING = b"""
module {
  func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> { return %x : tensor<1xf32> }
}
"""


def wrong_option(
    source: Any, options: CompileOptions, entries: Mapping[str, str], error: BraidError
) -> InvalidArgument | None:
    """Return the exception if an option is the reason why a model is refused with `error`, else
    None."""
    with naming_entries():
        return _wrong_alone(entries) or _wrong_of_model(source, options, error)


def _wrong_alone(entries: Mapping[str, str]) -> InvalidArgument | None:
    """Return the error of an option for any model; options may need each other."""
    values = {
        key: read_entry(key, text)
        for key, text in entries.items()
        if key in OWN_KEYS and OWN_KEYS[key] not in ABOUT_THE_MODEL
    }
    error = _refusal_of_nothing(values)
    if error is None or isinstance(error, InfeasibleError):
        return None
    for key in values:
        if _refusal_of_nothing({k: v for k, v in values.items() if k != key}) is None:
            named = "" if key in error.message else f"'{key}' is {entries[key]!r:.200}: "
            return InvalidArgument(named + error.message, hint=error.hint)
    return InvalidArgument(error.message, hint=error.hint)


def _wrong_of_model(
    source: Any, options: CompileOptions, error: BraidError
) -> InvalidArgument | None:
    about: dict[str, Any] = {name: None for name in ABOUT_THE_MODEL if getattr(options, name)}
    if not about or _refusal(source, options) != error.message:
        return None
    if _refusal(source, replace(options, **about)) == error.message:
        return None
    return InvalidArgument(error.message, location=error.location, hint=error.hint)


def _refusal_of_nothing(values: Mapping[str, object]) -> BraidError | None:
    given: dict[str, Any] = {OWN_KEYS[key]: value for key, value in values.items()}
    try:
        compile_or_load(_NOTHING, replace(CompileOptions(**given), load=False, cache=False))
    except BraidError as error:
        return error
    return None


_NO_STAGE = "as it was read"
"""A stage that no target has: to emit it ends once the model was read, which takes seconds."""


def _refusal(source: Any, options: CompileOptions) -> str | None:
    """Return why a model is not read with these options, or that it has no further stage."""
    from braid.driver.compile_source import emit_model  # the compiler

    try:
        emit_model(source, _NO_STAGE, options)
    except BraidError as error:
        return error.message
    return None
