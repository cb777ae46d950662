"""Compile a model, or load its cached artifact: the steps are those of this folder.

Nothing of the compiler is imported where an artifact is found.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from braid.driver.artifact_slot import ArtifactSlot, slot_of
from braid.driver.options import CompileOptions
from braid.runtime.model import Model
from braid.support import logs
from braid.support.collector import rare_collections
from braid.support.progress import telling_progress

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
        logs.log(logs.DEBUG, "loaded what was compiled of %s before", slot)
        return kept
    begun = time.perf_counter()
    with around(), telling_progress(options.progress):
        model = _compile(source, options, slot)
    logs.log(logs.INFO, "compiled %r in %.2f s", model, time.perf_counter() - begun)
    return model


def _compile(
    source: "ModelSource", options: CompileOptions, slot: ArtifactSlot | None = None
) -> Model:
    with rare_collections(imports=True):
        from braid.driver.compile_source import compile_source  # the compiler

    return compile_source(source, options, slot)
