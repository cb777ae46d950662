"""The artifact file: what is written is read, and what is broken is refused."""

import dataclasses
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.runtime.artifact import digest, read_artifact, write_artifact
from braid.runtime.manifest import Manifest, WeightSpec
from braid.runtime.native import NativeModel
from braid.runtime.weight_index import check_index
from braid.support.errors import BraidError
from test.unit.runtime.conftest import place

DTYPES = (np.float32, np.float64, np.int8, np.int64, np.bool_, np.float16, ml_dtypes.bfloat16)


def test_what_is_written_is_read(
    artifact_path: Path, code: bytes, weights: dict[str, np.ndarray], manifest: Manifest
) -> None:
    artifact = read_artifact(artifact_path)
    assert artifact.code.tobytes() == code
    assert artifact.manifest == manifest
    assert artifact.weights.keys() == weights.keys()
    for name, array in artifact.weights.items():
        np.testing.assert_array_equal(array, weights[name])


def test_a_copy_is_the_same_file(artifact_path: Path, tmp_path: Path) -> None:
    read_artifact(artifact_path).write(tmp_path / "copy.braid")
    assert (tmp_path / "copy.braid").read_bytes() == artifact_path.read_bytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 5, 7)])
def test_weights_of_every_dtype_and_shape(
    dtype: type, shape: tuple[int, ...], tmp_path: Path, manifest: Manifest
) -> None:
    values = np.random.default_rng(0).integers(0, 2, shape)
    array = np.asarray(values).astype(dtype)
    section, index = place({"pad": np.ones(3, np.int8), "w": array})
    described = dataclasses.replace(manifest, weights=index)
    write_artifact(tmp_path / "m.braid", described, b"code", section)
    read = read_artifact(tmp_path / "m.braid").weights["w"]
    assert read.dtype == array.dtype
    assert read.shape == shape
    np.testing.assert_array_equal(read, array)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (WeightSpec("w", "float32", (4,), 0, 16), None),
        (WeightSpec("w", "float32", (4,), 112, 16), "lies at 112"),
        (WeightSpec("w", "float32", (4,), 192, 16), "an end at 192"),
        (WeightSpec("w", "float32", (4,), 128, 20), "expected 16 for"),
        (WeightSpec("w", "float32", (2**62, 4), 0, 0), "expected"),
        (WeightSpec("w", "float32", (-1,), 0, 4), r"shape \[-1\]"),
        (WeightSpec("w", "finfo", (4,), 0, 16), "unknown dtype 'finfo'"),
        (WeightSpec("w", "f4,f4", (4,), 0, 32), "unknown dtype"),
        (WeightSpec("w", "object", (4,), 0, 32), "unknown dtype"),
    ],
)
def test_indices_of_weights(spec: WeightSpec, message: str | None) -> None:
    other = WeightSpec("other", "int8", (10,), 64, 10)
    if message is None:
        check_index([other, spec], 192)
        return
    with pytest.raises(BraidError, match=message):
        check_index([other, spec], 192)


def test_overlapping_weights_are_refused() -> None:
    with pytest.raises(BraidError, match="lies at 0, expected a multiple of 64 from 65 on"):
        check_index([WeightSpec(n, "int8", (65,), 0, 65) for n in "ab"], 192)


def test_weights_section_is_on_a_page(artifact_path: Path) -> None:
    data = artifact_path.read_bytes()
    sections = [struct.unpack_from("<IIQQQ", data, 16 + 32 * i) for i in range(3)]
    assert {kind: offset % 4096 for kind, _, offset, _, _ in sections}[3] == 0


@pytest.mark.parametrize("keep", [0, 7, 15, 40, 200, 5000, -1])
def test_truncated_files_are_refused_by_both_readers(artifact_path: Path, keep: int) -> None:
    artifact_path.write_bytes(artifact_path.read_bytes()[:keep])
    message = r"model\.braid' is.*(truncated|shorter than its header)"
    for read in (read_artifact, NativeModel.open):
        with pytest.raises(BraidError, match=message):
            read(artifact_path)


@given(st.binary(max_size=400))
def test_garbage_is_refused(tmp_path_factory: pytest.TempPathFactory, garbage: bytes) -> None:
    path = tmp_path_factory.mktemp("garbage") / "g.braid"
    path.write_bytes(b"BRAIDART" + struct.pack("<I", 2) + garbage)
    with pytest.raises(BraidError):
        read_artifact(path)
    with pytest.raises(BraidError):
        NativeModel.open(path)


@pytest.mark.parametrize(
    ("offset", "patch", "python_says", "native_says"),
    [
        (0, b"NOTBRAID", "other bytes than b'BRAIDART'", "wrong magic"),
        (8, struct.pack("<I", 9), "format version 9, expected 2", "format version 9"),
        (8, struct.pack("<I", 1), "format version 1, expected 2", "compile it again"),
        (12, struct.pack("<I", 1 << 30), "table of sections", "table of sections"),
        (16, struct.pack("<I", 77), "no manifest section", "no section with its manifest"),
        (48, struct.pack("<I", 77), "no code section", "no section with its code"),
        (48, struct.pack("<I", 1), "no code section", "two sections of kind 1"),
        (88, struct.pack("<Q", 64), "no code section|contradicts|digest", "page boundary"),
        (88, struct.pack("<Q", 2**64 - 64), "truncated", "truncated"),
        (96, struct.pack("<Q", 2**64 - 64), "truncated", "truncated"),
    ],
)
def test_wrong_headers_are_refused(
    artifact_path: Path, offset: int, patch: bytes, python_says: str, native_says: str
) -> None:
    """Even where their digest is right."""
    data = bytearray(artifact_path.read_bytes())
    data[offset : offset + len(patch)] = patch
    data[112:120] = struct.pack("<Q", digest(data[:112]))
    artifact_path.write_bytes(data)
    with pytest.raises(BraidError, match=python_says):
        assert read_artifact(artifact_path).weights is None
    with pytest.raises(BraidError, match=native_says):
        NativeModel.open(artifact_path)


@pytest.mark.parametrize("at", [8, 12, 16, 40, 60, 111, 112, 119])
def test_damaged_headers_are_refused(artifact_path: Path, at: int) -> None:
    data = bytearray(artifact_path.read_bytes())
    data[at] ^= 0x10
    artifact_path.write_bytes(data)
    for read in (read_artifact, NativeModel.open):
        with pytest.raises(BraidError, match=r"digest of its header|version|table of sections"):
            read(artifact_path)


def test_manifest_with_a_missing_field_is_refused(manifest: Manifest) -> None:
    fields = json.loads(manifest.to_json())
    del fields["arena_bytes"]
    with pytest.raises(BraidError, match="arena_bytes"):
        Manifest.from_json(json.dumps(fields))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "malformed"),
        ("[]", "expected an object"),
        ('{"model": 3}', "'model' holds 3, expected text"),
        ("\udcff", "malformed"),
    ],
)
def test_malformed_manifests(text: str, message: str) -> None:
    with pytest.raises(BraidError, match=message):
        Manifest.from_json(text.encode(errors="surrogateescape"))


@pytest.mark.parametrize("number", [True, 1.5, "1", None, 2**63, -2, [1]])
def test_manifest_with_a_wrong_number_is_refused(manifest: Manifest, number: object) -> None:
    fields = json.loads(manifest.to_json())
    fields["arena_bytes"] = number
    with pytest.raises(BraidError, match=r"'arena_bytes' holds .*, expected a whole number"):
        Manifest.from_json(json.dumps(fields))


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for read in (read_artifact, NativeModel.open):
        with pytest.raises(BraidError, match="not a regular file"):
            read(tmp_path / "fifo")


def xxh64(data: bytes) -> int:
    """XXH64 with seed 0, written down from its specification."""
    primes = (
        *(0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63),
        0x27D4EB2F165667C5,
    )
    p1, p2, p3, p4, p5 = primes
    mask = 2**64 - 1

    def rotated(value: int, bits: int) -> int:
        value &= mask
        return (value << bits | value >> (64 - bits)) & mask

    def round_of(lane: int, word: int) -> int:
        return rotated(lane + word * p2, 31) * p1 & mask

    rest = data
    lanes = [p1 + p2, p2, 0, -p1]
    while len(rest) >= 32:
        words = struct.unpack("<4Q", rest[:32])
        lanes = [round_of(lane, word) for lane, word in zip(lanes, words, strict=True)]
        rest = rest[32:]
    value = p5
    if len(data) >= 32:
        value = sum(rotated(a, bits) for a, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            value = (value ^ round_of(0, lane)) * p1 + p4 & mask
    value = value + len(data) & mask
    while len(rest) >= 8:
        value = rotated(value ^ round_of(0, int.from_bytes(rest[:8], "little")), 27) * p1 + p4
        rest = rest[8:]
    if len(rest) >= 4:
        value = rotated(value ^ int.from_bytes(rest[:4], "little") * p1, 23) * p2 + p3
        rest = rest[4:]
    for byte in rest:
        value = rotated(value ^ byte * p5, 11) * p1
    value = ((value & mask) ^ (value & mask) >> 33) * p2 & mask
    value = (value ^ value >> 29) * p3 & mask
    return value ^ value >> 32


def test_published_digests() -> None:
    text = b"Call me Ishmael. Some years ago--never mind how long precisely-"
    assert digest(b"") == 0xEF46DB3751D8E999
    assert digest(b"abc") == 0x44BC2CF5AD770999
    assert digest(text) == 0x02A2E85470D6FD96


@given(st.binary(max_size=200))
def test_digests_are_xxh64(data: bytes) -> None:
    assert digest(data) == xxh64(data)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BraidError, match="No such file"):
        read_artifact(tmp_path / "none.braid")
    with pytest.raises(BraidError, match="No such file"):
        NativeModel.open(tmp_path / "none.braid")


_WRITE_TOO_MUCH = """
import resource, signal, sys
import numpy as np
from braid.support.errors import BraidError
from braid.runtime.artifact import write_artifact
from braid.runtime.manifest import Manifest
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
manifest = Manifest("m", (), (), 0, "t", "t", (), "test")
try:
    write_artifact(sys.argv[1], manifest, b"", np.zeros(1_000_000, np.uint8))
except BraidError as error:
    print(error)
"""


def test_no_room_leaves_nothing_behind(artifact_path: Path) -> None:
    """A limit on the file's size fails in the same place as a full disk."""
    before = artifact_path.read_bytes()
    command = [sys.executable, "-c", _WRITE_TOO_MUCH, artifact_path]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "cannot write" in result.stdout
    assert artifact_path.read_bytes() == before
    assert list(artifact_path.parent.iterdir()) == [artifact_path]
