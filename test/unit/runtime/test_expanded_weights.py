"""Weights that the runtime expands when it loads a model, and descriptions of them it refuses."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from braid.runtime.native import NativeModel
from braid.support.errors import BraidError
from test.unit.runtime.conftest import Build

SOURCE = Path(__file__).parent / "expanded_weights.c"
OUTER, INPUTS, INNER = 2, 2, 21
MATRIX = np.array([[1, 0], [0.5, -2], [0, 0]])
DTYPES = {1: np.float32, 10: np.float16, 16: ml_dtypes.bfloat16}


def section(values: np.ndarray) -> np.ndarray:
    memory = np.zeros(64 + 4 * OUTER * INPUTS * INNER + 64, np.uint8)
    weights = memory[-memory.ctypes.data % 64 :][: 64 + 4 * OUTER * INPUTS * INNER]
    weights[64 : 64 + values.nbytes] = values.ravel().view(np.uint8)
    return weights


@pytest.mark.parametrize("number", DTYPES)
def test_a_map_of_vectors(build_code: Build, number: int) -> None:
    values = np.random.default_rng(number).standard_normal((OUTER, INPUTS, INNER))
    values[0, 0, :6] = [0.0, -0.0, 65504.0, 2.0**-24, -(2.0**-14), 5 * 2.0**-20]
    stored = values.astype(DTYPES[number])
    model = NativeModel.from_memory(build_code(SOURCE, DTYPE=number), section(stored))
    (y,) = model.context().run([])
    expected = np.einsum("ti,oix->otx", MATRIX, stored.astype(np.float64))
    np.testing.assert_array_equal(y, expected.astype(np.float32))


@pytest.mark.parametrize("number", [10, 16])
def test_all_numbers_of_16_bits(build_code: Build, number: int) -> None:
    size = OUTER * INPUTS * INNER
    patterns = np.arange(1 << 16, dtype=np.uint16)
    code = build_code(SOURCE, DTYPE=number)
    for begin in range(0, len(patterns), size):
        bits = np.resize(patterns[begin : begin + size], (OUTER, INPUTS, INNER))
        (y,) = NativeModel.from_memory(code, section(bits)).context().run([])
        # The first row of the matrix is (1, 0): it gives the numbers as they are.
        expected = bits[:, 0].view(DTYPES[number]).astype(np.float32)
        np.testing.assert_array_equal(y[:, 0], expected)


@pytest.mark.parametrize(
    ("definitions", "message"),
    [
        ({"DTYPE": 7}, "malformed: expansion 0"),
        ({"STORED": -64}, "malformed: expansion 0"),
        ({"STORED": 32}, "malformed: expansion 0"),
        ({"STORED": 128}, "malformed: expansion 0"),
        ({"EXPANDED": 128}, "malformed: expansion 0"),
        ({"EXPANDED": 4}, "malformed: expansion 0"),
        ({"OUTER": -1}, "malformed: expansion 0"),
        ({"OUTER": 3}, "malformed: expansion 0"),
        ({"OUTER": 1 << 61}, "malformed: expansion 0"),
        ({"INNER": -1}, "malformed: expansion 0"),
        ({"INNER": 22}, "malformed: expansion 0"),
        ({"INPUTS": 0}, "malformed: expansion 0"),
        ({"INPUTS": 65, "INNER": 0}, "malformed: expansion 0"),
        ({"OUTPUTS": 65, "INNER": 0}, "malformed: expansion 0"),
        ({"OUTPUTS": 4}, "malformed: expansion 0"),
        ({"COUNT": -1}, "malformed: number of expansions -1"),
        ({"EXPANDED_BYTES": -1}, "malformed: expanded bytes -1"),
        ({"EXPANDED_BYTES": (1 << 63) - 1}, "malformed: expanded bytes"),
        ({"EXPANDED_BYTES": 1 << 60}, "out of memory: the model's expanded weights take 11529"),
    ],
)
def test_refused(build_code: Build, definitions: dict[str, str | int], message: str) -> None:
    weights = section(np.zeros((OUTER, INPUTS, INNER), np.float32))
    with pytest.raises(BraidError, match=message):
        NativeModel.from_memory(build_code(SOURCE, **definitions), weights)
