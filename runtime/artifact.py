"""The artifact file (`.braid`): a manifest, code and weights in one mapped file.

The format is described in `runtime/native/include/braid/runtime.h`, whose C reader loads the same
files without Python. Each section carries a digest, and so does the table of them; no section is
used before its digest was compared.
"""

import mmap
import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from braid.runtime.dtypes import numpy_dtype
from braid.runtime.manifest import DeviceCodeSpec, Manifest
from braid.runtime.native_abi import load_library, map_file
from braid.runtime.weight_index import check_index
from braid.support.atomic_file import atomic_file
from braid.support.errors import BraidError
from braid.support.lockless import lockless_property
from braid.support.model_bytes import ARTIFACT_MAGIC
from braid.support.option_names import by_door

FORMAT_VERSION = 2
MAGIC = ARTIFACT_MAGIC
WEIGHTS_ALIGN = 4096

_HEADER = struct.Struct("<8sII")
_SECTION = struct.Struct("<IIQQQ")
_DIGEST = struct.Struct("<Q")

Bytes = NDArray[np.uint8]
Contents = tuple[Manifest, bytes, bytes]
"""The manifest, the code, and the code of other devices."""


class SectionKind(IntEnum):
    """The kind of a section, by its content."""

    MANIFEST = 1
    CODE = 2
    WEIGHTS = 3
    DEVICES = 4
    """Code of other devices than the host, only where there is any."""


def digest(data: bytes | memoryview | Bytes) -> int:
    """Return the XXH64 hash of the bytes, with seed 0."""
    array = np.frombuffer(data, np.uint8)
    return int(load_library().braid_digest(array.ctypes.data, array.size))


def write_artifact(
    path: str | os.PathLike[str],
    manifest: Manifest,
    code: bytes,
    weights: Bytes,
    devices: bytes = b"",
) -> None:
    """Write an artifact, whole or not at all.

    `code` is an ELF shared object that exports `braid_model`, `weights` are the bytes that it
    reads, laid out as the manifest's index says. `devices` is the code of other
    devices, as the manifest says.

    Raises:
        BraidError: the index does not fit the weights, or the file cannot be written, as on a
            full disk.

    """
    pieces = _pieces(manifest, code, weights, devices)
    with atomic_file(path) as file:
        for offset, piece in pieces:
            file.write(bytes(offset - file.tell()))
            file.write(piece.data)


def artifact_bytes(manifest: Manifest, code: bytes, weights: Bytes, devices: bytes = b"") -> Bytes:
    """Return the bytes of the file that `write_artifact` writes; raises as it does."""
    pieces = _pieces(manifest, code, weights, devices)
    data = np.zeros(max(offset + piece.size for offset, piece in pieces), np.uint8)
    for offset, piece in pieces:
        data[offset : offset + piece.size] = piece
    return data


def _pieces(
    manifest: Manifest, code: bytes, weights: Bytes, devices: bytes
) -> list[tuple[int, Bytes]]:
    """Return the header and the sections, each with its place, in the order of the file."""
    check_index(manifest.weights, weights.size)
    contents = _contents(manifest, code, devices)
    offsets = _offsets(contents, weights.size)
    contents[SectionKind.WEIGHTS] = weights
    header = np.frombuffer(_header(contents, offsets), np.uint8)
    return [(0, header), *((offsets[kind], contents[kind]) for kind in offsets)]


def fill_artifact(
    path: str | os.PathLike[str], weights_bytes: int, fill: Callable[[Bytes], Contents]
) -> None:
    """Write an artifact whose weights `fill` stores where they lie in the file, mapped to memory.

    So they need not be in memory in addition to the file. `fill` is given `weights_bytes` zeros,
    and gives all that `write_artifact` takes else. Nothing waits for the disk.

    Raises:
        BraidError: as `write_artifact`, or what `fill` raises.

    """
    with atomic_file(path, durable=False) as file:
        # Where the disk is full, to write to memory that is mapped would kill the process.
        os.posix_fallocate(file.fileno(), 0, WEIGHTS_ALIGN + weights_bytes)
        mapped = mmap.mmap(file.fileno(), WEIGHTS_ALIGN + weights_bytes)
        weights = np.frombuffer(mapped, np.uint8)[WEIGHTS_ALIGN:]
        manifest, code, devices = fill(weights)
        check_index(manifest.weights, weights_bytes)
        contents = _contents(manifest, code, devices)
        offsets = _offsets(contents, weights_bytes)
        for kind, content in contents.items():
            file.seek(offsets[kind])
            file.write(content.data)
        file.seek(0)
        file.write(_header({**contents, SectionKind.WEIGHTS: weights}, offsets))


def _contents(manifest: Manifest, code: bytes, devices: bytes) -> dict[SectionKind, Bytes]:
    """Return the sections beside the weights, in the order in which they are written."""
    manifest, devices = _stored_once(manifest, code, devices)
    contents = {SectionKind.MANIFEST: manifest.to_json().encode(), SectionKind.CODE: code}
    if devices:
        contents[SectionKind.DEVICES] = devices
    return {kind: np.frombuffer(content, np.uint8) for kind, content in contents.items()}


def _offsets(contents: Mapping[SectionKind, Bytes], weights_bytes: int) -> dict[SectionKind, int]:
    """Return where sections begin: the weights first, since nothing else has a place before it is
    made.
    """
    offsets = {SectionKind.WEIGHTS: WEIGHTS_ALIGN}
    end = WEIGHTS_ALIGN + weights_bytes
    for kind, content in contents.items():
        offsets[kind] = -(-end // 8) * 8
        end = offsets[kind] + content.size
    return offsets


def _header(contents: Mapping[SectionKind, Bytes], offsets: Mapping[SectionKind, int]) -> bytes:
    """Return the header, the table of sections and the digest of both."""
    header = _HEADER.pack(MAGIC, FORMAT_VERSION, len(contents))
    for kind in SectionKind:
        if kind in contents:
            size, digest_ = contents[kind].size, digest(contents[kind])
            header += _SECTION.pack(kind, 0, offsets[kind], size, digest_)
    return header + _DIGEST.pack(digest(header))


def _stored_once(manifest: Manifest, code: bytes, devices: bytes) -> tuple[Manifest, bytes]:
    """Return the manifest and the devices section without what the shared object holds already."""
    specs: list[DeviceCodeSpec] = []
    rest = b""
    for spec in manifest.devices:
        content = devices[spec.offset : spec.offset + spec.nbytes]
        found = code.find(content) if content else -1
        specs.append(replace(spec, offset=found if found >= 0 else len(rest), in_code=found >= 0))
        rest += content if found < 0 else b""
    return replace(manifest, devices=tuple(specs)), rest


@dataclass(frozen=True)
class _Section:
    content: Bytes
    digest: int

    def checked(self, what: str) -> Bytes:
        if digest(self.content) != self.digest:
            raise BraidError(f"the digest of its {what} is wrong")
        return self.content


@dataclass(frozen=True)
class Artifact:
    """An open artifact. The file stays mapped until the last view of it is released.

    `data` is the whole file. `code` and `weights` are read and checked when they are first asked
    for.
    """

    path: Path
    data: Bytes
    manifest: Manifest
    _sections: Mapping[int, _Section]

    @lockless_property
    def code(self) -> Bytes:
        """Return the shared object; raises `BraidError` where it is damaged."""
        return self._checked(SectionKind.CODE)

    @lockless_property
    def weights_section(self) -> Bytes:
        """Return the bytes that the code reads; raises `BraidError` where they are damaged."""
        return self._checked(SectionKind.WEIGHTS)

    @lockless_property
    def weights(self) -> Mapping[str, NDArray[Any]]:
        """Return the weights by name; raises `BraidError` where they are damaged."""
        section = self.weights_section
        return {
            spec.name: section[spec.offset : spec.offset + spec.nbytes]
            .view(numpy_dtype(spec.dtype))
            .reshape(spec.shape)
            for spec in self.manifest.weights
        }

    @lockless_property
    def device_code(self) -> tuple[Bytes, ...]:
        """Return the code of other devices, in the order of `manifest.devices`; raises `BraidError`
        for damage.
        """
        found: list[Bytes] = []
        for spec in self.manifest.devices:
            section = self.code if spec.in_code else self._devices
            if not 0 <= spec.offset <= spec.offset + spec.nbytes <= section.size:
                raise _unusable(self.path, BraidError("code of a device is outside of its section"))
            found.append(section[spec.offset : spec.offset + spec.nbytes])
        return tuple(found)

    @lockless_property
    def _devices(self) -> Bytes:
        return self._checked(SectionKind.DEVICES)

    def check(self) -> None:
        """Compare every section with its digest; raises `BraidError` where one is damaged."""
        for kind in SectionKind:
            if kind in self._sections:
                self._checked(kind)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the file, whole or not at all.

        Raises:
            BraidError: the file is damaged, or the copy cannot be written.

        """
        self.check()
        with atomic_file(path) as file:
            file.write(self.data.data)

    def artifact_bytes(self) -> Bytes:
        """Return the whole file; raises `BraidError` where it is damaged."""
        self.check()
        return self.data

    def _checked(self, kind: SectionKind) -> Bytes:
        try:
            section = self._sections.get(kind)
            if section is None:
                raise BraidError(f"it has no {kind.name.lower()} section")
            return section.checked(kind.name.lower())
        except BraidError as error:
            raise _unusable(self.path, error) from error


def read_artifact(path: str | os.PathLike[str]) -> Artifact:
    """Open an artifact for reading; check its header and its manifest.

    Raises:
        BraidError: the file is missing, damaged, of another format version, or no artifact.

    """
    return _artifact_of(Path(path), map_file(path))


def artifact_of_bytes(data: bytes | bytearray | memoryview, name: str) -> Artifact:
    """Open an artifact whose file is given as bytes, which are copied; `name` is for messages.

    Raises:
        BraidError: as `read_artifact`.

    """
    content = np.frombuffer(data, np.uint8)
    # Code reads weights at addresses that are as aligned as they are in a mapped file.
    pages = mmap.mmap(-1, max(1, content.size))
    copied = np.frombuffer(pages, np.uint8)[: content.size]
    copied[:] = content
    return _artifact_of(Path(name), copied)


def _artifact_of(path: Path, data: Bytes) -> Artifact:
    """Return the artifact in `data`, which came from `path`."""
    if data[: len(MAGIC)].tobytes() != MAGIC:
        raise _no_artifact(path, data)
    try:
        sections = _read_sections(data)
        text = sections[SectionKind.MANIFEST].checked("manifest")
        manifest = Manifest.from_json(text.tobytes())
        check_index(manifest.weights, sections[SectionKind.WEIGHTS].content.size)
    except BraidError as error:
        raise _unusable(path, error) from error
    return Artifact(path, data, manifest, sections)


def _unusable(path: Path, error: BraidError) -> BraidError:
    return BraidError(
        f"'{path}' is not a usable braid artifact: {error.message}", hint="compile the model again"
    )


def _no_artifact(path: Path, data: Bytes) -> BraidError:
    """Return the message about a file that does not start as an artifact does."""
    is_model = path.suffix.lower() in (".onnx", ".mlir")
    hint = "compile the model again"
    if is_model:
        hint = by_door("use braid.compile", "compile it first: braid compile")
    if data[:4].tobytes() == b"\x7fELF":
        made = by_door("Model.save_c_library writes", "'braid compile --emit=so' writes")
        hint = f"what {made} is for programs in C, which link with it"
    return BraidError(
        f"'{path}' is not a braid artifact: it starts with other bytes than {MAGIC!r}",
        hint=hint,
    )


def _read_sections(data: Bytes) -> dict[int, _Section]:
    _, version, count = _HEADER.unpack_from(data.data)
    if version != FORMAT_VERSION:
        raise BraidError(f"it has format version {version}, expected {FORMAT_VERSION}")
    end = _HEADER.size + count * _SECTION.size
    if end + _DIGEST.size > len(data):
        raise BraidError("it is truncated within its table of sections")
    if (digest(data[:end]),) != _DIGEST.unpack_from(data.data, end):
        raise BraidError("the digest of its header is wrong")
    sections: dict[int, _Section] = {}
    for kind, _, offset, size, expected in _SECTION.iter_unpack(data[_HEADER.size : end].data):
        if offset + size > len(data):
            raise BraidError(
                f"it is truncated: expected at least {offset + size} bytes, it has {len(data)}"
            )
        sections[kind] = _Section(data[offset : offset + size], expected)
    for kind in (SectionKind.MANIFEST, SectionKind.CODE, SectionKind.WEIGHTS):
        if kind not in sections:
            raise BraidError(f"it has no {kind.name.lower()} section")
    return sections
