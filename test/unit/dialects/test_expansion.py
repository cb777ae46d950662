"""Expanding what is stored gives what the layout stores."""

import math

import ml_dtypes
import numpy as np
import pytest

from braid.dialects.braid.expansion import LEAST_BYTES, expansion_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.relayout import to_storage

F32 = np.dtype(np.float32)
TAGS = ("Acdb16a", "abcd", "cdba", "bcAd4a", "dBac8b", "aBcde4b", "Adbec8a")


@pytest.mark.parametrize("results", [2, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("tag", TAGS)
def test_transformed_windows(tag: str, dtype: type, results: int) -> None:
    layout = Layout.parse(f"{tag}:winograd{results}")
    shape = (*((9, 17, 4) if layout.rank == 5 else (33, 17)), 3, 3)
    random = np.random.default_rng(len(tag))
    weight = random.standard_normal(shape).astype(dtype)
    expansion = expansion_of(shape, layout, np.dtype(dtype))
    rows = layout.untransformed.permutation.index(layout.rank - 2)
    if layout.untransformed.permutation[rows + 1 : rows + 2] != (layout.rank - 1,):
        assert expansion is None
        return
    assert expansion is not None
    stored = to_storage(weight, expansion.layout)
    assert stored.nbytes == expansion.stored_bytes
    vectors = stored.reshape(expansion.outer, expansion.inputs, expansion.inner)
    expanded = np.einsum("ti,oix->otx", expansion.matrix, vectors.astype(np.float64))
    expected = to_storage(weight.astype(np.float32), layout)
    np.testing.assert_allclose(expanded.ravel(), expected.ravel(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_numbers_of_16_bits(dtype: type) -> None:
    expansion = expansion_of((100, 30), Layout.parse("aB16b"), np.dtype(dtype))
    assert expansion is not None
    assert (expansion.outer, expansion.inputs, expansion.outputs) == (1, 1, 1)
    assert expansion.stored_bytes == 100 * 32 * 2


@pytest.mark.parametrize(
    ("shape", "tag", "dtype"),
    [
        ((100, 30), "ab", F32),
        ((math.isqrt(LEAST_BYTES // 4) - 1,) * 2, "ab", np.dtype(np.float16)),
        ((0, 64, 3, 3), "Acdb16a:winograd4", F32),
    ],
)
def test_stored_whole(shape: tuple[int, ...], tag: str, dtype: np.dtype) -> None:
    assert expansion_of(shape, Layout.parse(tag), dtype) is None
