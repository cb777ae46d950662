"""The artifact file (`.braid`): a manifest, code and weights in one mapped file.

The format is described in `runtime/native/include/braid/runtime.h`, whose C reader loads the same
files without Python.
"""

import functools
import mmap
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from braid.runtime.manifest import Manifest, WeightSpec
from braid.support.atomic_file import atomic_file
from braid.support.errors import BraidError

FORMAT_VERSION = 1
MAGIC = b"BRAIDART"
TENSOR_ALIGN = 64
WEIGHTS_ALIGN = 4096

_HEADER = struct.Struct("<8sII")
_SECTION = struct.Struct("<IIQQ")


class SectionKind(IntEnum):
    """What a section holds."""

    MANIFEST = 1
    CODE = 2
    WEIGHTS = 3


def _align_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


@functools.cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the dtype of a manifest's dtype name, numpy's or ml_dtypes'.

    Raises:
        BraidError: neither knows the name.

    """
    try:
        return np.dtype(getattr(ml_dtypes, name, name))
    except TypeError as error:
        raise BraidError(f"unknown dtype '{name}'") from error


def index_weights(weights: Mapping[str, NDArray[Any]]) -> tuple[WeightSpec, ...]:
    """Place the weights one after the other, each on a 64-byte boundary, in the mapping's order."""
    specs: list[WeightSpec] = []
    offset = 0
    for name, array in weights.items():
        specs.append(WeightSpec(name, array.dtype.name, array.shape, offset, array.nbytes))
        offset = _align_up(offset + array.nbytes, TENSOR_ALIGN)
    return tuple(specs)


def write_artifact(
    path: str | os.PathLike[str],
    manifest: Manifest,
    code: bytes,
    weights: Mapping[str, NDArray[Any]],
) -> None:
    """Write an artifact, whole or not at all.

    `code` is an ELF shared object that exports `braid_model`. The weights are written one by one,
    so that mapped ones never take memory at once; the manifest's own index of them is replaced by
    that of `index_weights`.

    Raises:
        BraidError: the file cannot be written, as on a full disk.

    """
    index = index_weights(weights)
    text = manifest.with_weights(index).to_json().encode()
    sizes = {
        SectionKind.MANIFEST: len(text),
        SectionKind.CODE: len(code),
        SectionKind.WEIGHTS: index[-1].offset + index[-1].nbytes if index else 0,
    }
    offsets: dict[SectionKind, int] = {}
    end = _HEADER.size + _SECTION.size * len(sizes)
    for kind, size in sizes.items():
        offsets[kind] = _align_up(end, WEIGHTS_ALIGN if kind is SectionKind.WEIGHTS else 8)
        end = offsets[kind] + size
    with atomic_file(path) as file:
        file.write(_HEADER.pack(MAGIC, FORMAT_VERSION, len(sizes)))
        for kind, size in sizes.items():
            file.write(_SECTION.pack(kind, 0, offsets[kind], size))
        _write_at(file, offsets[SectionKind.MANIFEST], text)
        _write_at(file, offsets[SectionKind.CODE], code)
        for spec, array in zip(index, weights.values(), strict=True):
            raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            _write_at(file, offsets[SectionKind.WEIGHTS] + spec.offset, raw.data)
        _write_at(file, end, b"")


def _write_at(file: IO[bytes], offset: int, data: bytes | memoryview) -> None:
    """Write at `offset`, filling the gap since the last write with zeros."""
    file.write(bytes(offset - file.tell()))
    file.write(data)


@dataclass(frozen=True)
class Artifact:
    """An open artifact. Use it as a context manager, or close it by `close`.

    `code` and `weights` are views of the mapped file: nothing is read before it is used.
    """

    path: Path
    manifest: Manifest
    code: memoryview
    weights: Mapping[str, NDArray[Any]]

    def __enter__(self) -> "Artifact":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give up the view of the code; the mapping itself goes with the last of its views."""
        self.code.release()


def read_artifact(path: str | os.PathLike[str]) -> Artifact:
    """Open an artifact for reading.

    Raises:
        BraidError: there is no such file, or it is truncated, of another format version, or not
            an artifact at all.

    """
    try:
        with Path(path).open("rb") as file:
            data = memoryview(_map(file))
    except OSError as error:
        raise BraidError(f"cannot open '{path}': {error.strerror or error}") from error
    try:
        return _read(Path(path), data)
    except BraidError as error:
        raise BraidError(
            f"'{path}' is not a usable braid artifact: {error.message}",
            hint="compile the model again",
        ) from error


def _map(file: IO[bytes]) -> mmap.mmap | bytes:
    if os.fstat(file.fileno()).st_size == 0:  # an empty file cannot be mapped
        return b""
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _read(path: Path, data: memoryview) -> Artifact:
    sections = _read_sections(data)
    for kind in (SectionKind.MANIFEST, SectionKind.CODE):
        if kind not in sections:
            raise BraidError(f"it has no {kind.name.lower()} section")
    manifest = Manifest.from_json(bytes(sections[SectionKind.MANIFEST]))
    blob = sections.get(SectionKind.WEIGHTS, memoryview(b""))
    weights = {spec.name: _view_weight(blob, spec) for spec in manifest.weights}
    return Artifact(path, manifest, sections[SectionKind.CODE], weights)


def _read_sections(data: memoryview) -> dict[int, memoryview]:
    if len(data) < _HEADER.size:
        raise BraidError(f"it is {len(data)} bytes long, its header alone takes {_HEADER.size}")
    magic, version, count = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise BraidError(f"it starts with {magic!r}, expected {MAGIC!r}")
    if version != FORMAT_VERSION:
        raise BraidError(f"it has format version {version}, expected {FORMAT_VERSION}")
    if _HEADER.size + count * _SECTION.size > len(data):
        raise BraidError("it is truncated within its table of sections")
    sections: dict[int, memoryview] = {}
    for i in range(count):
        kind, _, offset, size = _SECTION.unpack_from(data, _HEADER.size + i * _SECTION.size)
        if offset + size > len(data):
            raise BraidError(
                f"it is truncated: expected at least {offset + size} bytes, it has {len(data)}"
            )
        sections[kind] = data[offset : offset + size]
    return sections


def _view_weight(blob: memoryview, spec: WeightSpec) -> NDArray[Any]:
    data = blob[spec.offset : spec.offset + spec.nbytes]
    try:
        return np.frombuffer(data, numpy_dtype(spec.dtype)).reshape(spec.shape)
    except ValueError as error:
        raise BraidError(f"weight '{spec.name}' is malformed: {error}") from error
