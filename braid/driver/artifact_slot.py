"""The place in the cache of the artifact of a model that is compiled with some options."""

import os
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, replace
from pathlib import Path

from braid.driver.compilation_key import SourceState, compilation_key, state_of
from braid.driver.options import CompileOptions
from braid.runtime.artifact_cache import default_artifacts
from braid.runtime.model import Model, model_of, saved_model
from braid.runtime.package import KeptArtifact, Package
from braid.support.compile_scope import extending_packages, is_default_scope
from braid.support.errors import BraidError
from braid.support.installation import stamped_packages

Compile = Callable[[str | os.PathLike[str] | bytes, CompileOptions], Model]
"""Compiles a model as options say, without caching the result."""


def slot_of(source: object, options: CompileOptions) -> "ArtifactSlot | None":
    """Return the place of the artifact of `source`; None if it must not be cached.

    It is used if the result does not follow from a key: for a model that is neither a file nor
    bytes, or has no key, or if code of this process extends or observes the compiler. Raises
    BraidError where `$BRAID_CACHE_LIMIT` is no size.
    """
    if not default_artifacts().limit or not is_default_scope():
        return None
    extending = extending_packages() - {"braid"}
    if extending and not extending <= stamped_packages():
        return None
    state = state_of(source, options)
    key = None if state is None else compilation_key(state, options)
    return None if state is None or key is None else ArtifactSlot(state, options, key)


@dataclass(frozen=True)
class ArtifactSlot:
    """The place for the artifact of `source` with `options`, under `key` in the cache."""

    source: SourceState
    options: CompileOptions
    key: str

    def __str__(self) -> str:
        return str(self.source)

    def find(self, compile: Compile) -> Model | None:
        """Return the model of the artifact there, all of whose digests hold.

        The result is None if there is no artifact, or it cannot be loaded: compilation then reports
        the reason, such as a missing device. Data that the artifact does not hold is compiled again
        on request.
        """
        artifact = default_artifacts().get(self.key)
        if artifact is None:
            return None
        kept = KeptArtifact(artifact, lambda: self._compile_again(compile))
        if not self.options.load:
            return saved_model(kept)
        with suppress(BraidError):
            return model_of(artifact, kept, self.options.threads)
        return None

    def keep(self, write: Callable[[Path], Package], weights_bytes: int) -> KeptArtifact | None:
        """Keep the artifact that `write` writes, unless its weights are larger than the cache.

        Nor is it kept if records or the file changed during the compilation, or if the cache cannot
        be written.
        """
        artifacts = default_artifacts()
        now = self.source.now(self.options)
        if now is None or compilation_key(now, self.options) != self.key:
            return None
        if weights_bytes > artifacts.limit:
            return None
        packages: list[Package] = []
        if not artifacts.put(self.key, lambda path: packages.append(write(path))):
            return None
        with suppress(BraidError):  # another process may need the space, or replace the entry
            artifact = artifacts.opened(self.key)
            artifact.check()
            # The weights that were written are mapped once more, with a descriptor that stays open.
            rest = replace(packages.pop(), weights=artifact.data[:0])
            return KeptArtifact(artifact, lambda: replace(rest, weights=artifact.weights_section))
        return None

    def _compile_again(self, compile: Compile) -> Package:
        """Compile the model as it is now. Raises BraidError where it is another by now."""
        now = self.source.now(self.options)
        if now is None or now.digests != self.source.digests:
            raise BraidError(
                f"{self.source}, or a file that options name, is not what it was when the model "
                "was compiled",
                hint="compile the model again",
            )
        options = replace(self.options, load=False)
        # The present settings may differ from those with which it was compiled: the default ones.
        model = Context().run(compile, self.source.source, options)
        package = model.packaged()
        assert isinstance(package, Package)
        return package
