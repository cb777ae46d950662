"""Parameter files: what is written is read, and damaged files are refused."""

import io
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from braid.frontends.parameters import ParameterFile, write_parameters
from braid.support.errors import BraidError, UnsupportedError

PARAMETERS = {
    "flag": np.array([True, False, True]),
    "w": np.arange(12, dtype=np.float32).reshape(3, 4),
    "half": np.linspace(0, 1, 5).astype(ml_dtypes.bfloat16),
    "wide/name": np.array(-7, np.int64),
    "empty": np.zeros((0, 3), np.float32),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "p.safetensors"
    with path.open("wb") as file:
        write_parameters(file, PARAMETERS)
    return path


def test_round_trip(path: Path) -> None:
    read = ParameterFile(path)
    assert set(read) == set(PARAMETERS) and len(read) == len(PARAMETERS)
    for key, value in PARAMETERS.items():
        assert read[key].dtype == value.dtype and read[key].shape == value.shape
        np.testing.assert_array_equal(read[key], value)
        assert not read[key].flags.writeable and not read[key].flags.owndata


def test_tensors_are_aligned_and_without_gaps(path: Path) -> None:
    """The format forbids gaps; wide elements come first, so that all are aligned anyway."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    ranges = sorted(entry["data_offsets"] for entry in header.values())
    assert ranges[0][0] == 0 and ranges[-1][1] == len(data) - 8 - length
    assert all(a[1] == b[0] for a, b in itertools.pairwise(ranges))
    assert all(array.flags.aligned for array in ParameterFile(path).values())


def test_views_need_not_be_contiguous(tmp_path: Path) -> None:
    with (tmp_path / "r").open("wb") as file:
        write_parameters(file, {"w": PARAMETERS["w"].T})
    np.testing.assert_array_equal(ParameterFile(tmp_path / "r")["w"], PARAMETERS["w"].T)


def test_a_dtype_without_a_name() -> None:
    with pytest.raises(UnsupportedError, match="parameter 'c' has dtype complex64"):
        write_parameters(io.BytesIO(), {"c": np.zeros(2, np.complex64)})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"", "the file is empty"),
        (lambda data: data[:4], "header should end"),
        (lambda data: b"\xff" * 100, "header should end"),
        (lambda data: data[:-1], "should end at byte"),
        (lambda data: data.replace(b'"F32"', b'"F31"'), "dtype F31, expected one of"),
        (lambda data: data.replace(b"[3,4]", b"[3,5]"), "has 48 bytes, expected 60"),
        (lambda data: data.replace(b"{", b"[", 1), "not a parameter file"),
        (lambda data: data.replace(b"data_offsets", b"date_offsets"), "not a parameter file"),
    ],
)
def test_damaged_files(path: Path, damage: Callable[[bytes], bytes], message: str) -> None:
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BraidError, match=message):
        ParameterFile(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BraidError, match=r"cannot read the parameter file .*No such file"):
        ParameterFile(tmp_path / "none")
