"""What was compiled before of a model and its options, for commands that compile."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from braid.compilation_key import compilation_key
from braid.runtime.artifact_cache import default_artifacts
from braid.support.diagnostics import handle_diagnostics
from braid.tools.commands.diagnostics import show_diagnostic


class ArtifactSlot:
    """The place in the cache of the artifact of a model, for a target and with options.

    `options` are those whose values bear on the artifact. Models that have no key have no place:
    nothing is found, and nothing kept.
    """

    def __init__(self, model: Path, *, target: str | None, options: Mapping[str, object]) -> None:
        """Finds the place, by what the file of the model is now."""
        self._model = model
        self._key_now = partial(compilation_key, model, target=target, options=options)
        self._key = self._key_now()

    def find(self) -> Path | None:
        """The artifact there, all of whose digests hold; None where there is none."""
        if self._key is None:
            return None
        with handle_diagnostics(show_diagnostic):
            return default_artifacts().get(self._key)

    def keep(self, write: Callable[[Path], None]) -> None:
        """Keep the artifact that `write` writes, unless its model is larger than the cache.

        Nor is it kept where other records, or another file, have come while it was compiled.
        """
        artifacts = default_artifacts()
        if self._key is None or self._model.stat().st_size > artifacts.limit:
            return
        if self._key_now() == self._key:
            artifacts.put(self._key, write)
