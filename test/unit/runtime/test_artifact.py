"""The artifact file: what is written is read, and what is broken is refused."""

import dataclasses
import json
import struct
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.runtime.artifact import index_weights, read_artifact, write_artifact
from braid.runtime.manifest import Manifest
from braid.runtime.native import NativeModel
from braid.support.errors import BraidError

DTYPES = (np.float32, np.float64, np.int8, np.int64, np.bool_, np.float16, ml_dtypes.bfloat16)


def test_what_is_written_is_read(
    artifact_path: Path, code: bytes, weights: dict[str, np.ndarray], manifest: Manifest
) -> None:
    with read_artifact(artifact_path) as artifact:
        assert bytes(artifact.code) == code
        assert dataclasses.replace(artifact.manifest, weights=()) == manifest
        assert artifact.weights.keys() == weights.keys()
        for name, array in artifact.weights.items():
            np.testing.assert_array_equal(array, weights[name])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 5, 7)])
def test_weights_of_every_dtype_and_shape(
    dtype: type, shape: tuple[int, ...], tmp_path: Path, manifest: Manifest
) -> None:
    values = np.random.default_rng(0).integers(0, 2, shape)
    array = np.asarray(values).astype(dtype)
    write_artifact(
        tmp_path / "m.braid", manifest, b"code", {"pad": np.ones(3, np.int8), "w": array}
    )
    with read_artifact(tmp_path / "m.braid") as artifact:
        assert artifact.weights["w"].dtype == array.dtype
        assert artifact.weights["w"].shape == shape
        np.testing.assert_array_equal(artifact.weights["w"], array)


@given(st.lists(st.integers(0, 300), max_size=8))
def test_weights_are_aligned_and_disjoint(sizes: list[int]) -> None:
    index = index_weights({str(i): np.zeros(n, np.int8) for i, n in enumerate(sizes)})
    end = 0
    for spec in index:
        assert spec.offset % 64 == 0
        assert spec.offset >= end
        end = spec.offset + spec.nbytes


def test_weights_section_is_on_a_page(artifact_path: Path) -> None:
    data = artifact_path.read_bytes()
    sections = [struct.unpack_from("<IIQQ", data, 16 + 24 * i) for i in range(3)]
    assert {kind: offset % 4096 for kind, _, offset, _ in sections}[3] == 0


@pytest.mark.parametrize("keep", [0, 7, 15, 40, 200, 5000, -1])
def test_truncated_files_are_refused_by_both_readers(artifact_path: Path, keep: int) -> None:
    artifact_path.write_bytes(artifact_path.read_bytes()[:keep])
    with pytest.raises(BraidError, match=r"model\.braid' is not a usable braid artifact"):
        read_artifact(artifact_path)
    with pytest.raises(BraidError, match=r"truncated|shorter than its header"):
        NativeModel.open(artifact_path)


@given(st.binary(max_size=400))
def test_garbage_is_refused(tmp_path_factory: pytest.TempPathFactory, garbage: bytes) -> None:
    path = tmp_path_factory.mktemp("garbage") / "g.braid"
    path.write_bytes(b"BRAIDART" + struct.pack("<I", 1) + garbage)
    with pytest.raises(BraidError):
        read_artifact(path)
    with pytest.raises(BraidError):
        NativeModel.open(path)


@pytest.mark.parametrize(
    ("offset", "patch", "python_says", "native_says"),
    [
        (0, b"NOTBRAID", "expected b'BRAIDART'", "wrong magic"),
        (8, struct.pack("<I", 9), "format version 9, expected 1", "format version 9"),
        (12, struct.pack("<I", 1 << 30), "table of sections", "table of sections"),
        (16, struct.pack("<I", 77), "no manifest section", None),
        (40, struct.pack("<I", 77), "no code section", "holds no code"),
    ],
)
def test_damaged_headers_are_refused(
    artifact_path: Path, offset: int, patch: bytes, python_says: str, native_says: str | None
) -> None:
    data = bytearray(artifact_path.read_bytes())
    data[offset : offset + len(patch)] = patch
    artifact_path.write_bytes(data)
    with pytest.raises(BraidError, match=python_says):
        read_artifact(artifact_path)
    if native_says is not None:
        with pytest.raises(BraidError, match=native_says):
            NativeModel.open(artifact_path)


def test_manifest_with_a_missing_field_is_refused(manifest: Manifest) -> None:
    fields = json.loads(manifest.to_json())
    del fields["arena_bytes"]
    with pytest.raises(BraidError, match="arena_bytes"):
        Manifest.from_json(json.dumps(fields))


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
manifest = Manifest("m", (), (), 0, "t", (), "test")
try:
    write_artifact(sys.argv[1], manifest, b"", {"w": np.zeros(1_000_000, np.uint8)})
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
