"""The package that a loaded or compiled model is written from: to a file, or to its bytes."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from braid.runtime.artifact import Artifact, Bytes, artifact_bytes, write_artifact
from braid.runtime.manifest import Manifest

AnyPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Package:
    """The contents that files are written from: `link` makes a shared object of `objects`.

    `weights` are the bytes that the code reads; the manifest has the layout of these bytes.
    `link_c_library` writes manifest, objects and weights as a shared object for C at a path.
    """

    manifest: Manifest
    objects: Sequence[bytes]
    weights: NDArray[np.uint8]
    link: Callable[[Sequence[bytes]], bytes]
    link_c_library: Callable[[AnyPath, Manifest, Sequence[bytes], NDArray[np.uint8]], None]
    devices: bytes = b""

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write an artifact; raises `BraidError` as `write_artifact` does."""
        code = self.link(self.objects)
        write_artifact(path, self.manifest, code, self.weights, self.devices)

    def artifact_bytes(self) -> Bytes:
        """Return what `write` would write; raises `BraidError` where it cannot be linked."""
        code = self.link(self.objects)
        return artifact_bytes(self.manifest, code, self.weights, self.devices)


@dataclass(frozen=True)
class KeptArtifact:
    """An artifact that represents a compiled model; `package` is what it was written from."""

    artifact: Artifact
    package: Callable[[], Package]

    @property
    def manifest(self) -> Manifest:
        """The name of the artifact."""
        return self.artifact.manifest

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a copy; raises `BraidError` as `Artifact.write` does."""
        self.artifact.write(path)

    def artifact_bytes(self) -> Bytes:
        """Return the whole file; raises `BraidError` where it is damaged."""
        return self.artifact.artifact_bytes()
