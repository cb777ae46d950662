"""Compile a model, or load what was compiled of it before: the steps are those of this folder.

Nothing of the compiler is imported where an artifact is found.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from braid.driver.artifact_slot import ArtifactSlot, slot_of
from braid.driver.options import CompileOptions
from braid.runtime.model import Model

if TYPE_CHECKING:
    from braid.driver.read_source import ModelSource


def compile_or_load(
    source: "ModelSource",
    options: CompileOptions,
    *,
    around: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Model:
    """Return the model that is kept of `source`, else compile it within `around`.

    Raises:
        BraidError: as `braid.compile`.

    """
    options.check()
    slot = slot_of(source, options) if options.cache else None
    kept = None if slot is None else slot.find(_compile)
    if kept is not None:
        return kept
    with around():
        return _compile(source, options, slot)


def _compile(
    source: "ModelSource", options: CompileOptions, slot: ArtifactSlot | None = None
) -> Model:
    from braid.driver.compile_source import compile_source  # the compiler

    return compile_source(source, options, slot)
