"""Winograd's algorithms give what sums of products give."""

import numpy as np
import pytest

from braid.dialects.braid.layout import Layout
from braid.dialects.braid.relayout import to_storage
from braid.dialects.braid.winograd import TRANSFORMS, WINDOW, is_pair, transformed_windows


@pytest.mark.parametrize("results", TRANSFORMS)
def test_tiles_are_convolved(results) -> None:
    transforms = TRANSFORMS[results]
    of_input, of_output = np.array(transforms.of_input), np.array(transforms.of_output)
    assert of_output.shape == (results, transforms.tile) and transforms.tile == results + 2
    generator = np.random.default_rng(results)
    window = generator.standard_normal((WINDOW, WINDOW))
    tile = generator.standard_normal((transforms.tile, transforms.tile))
    products = transformed_windows(window, results) * (of_input @ tile @ of_input.T)
    expected = [
        [(tile[i : i + WINDOW, j : j + WINDOW] * window).sum() for j in range(results)]
        for i in range(results)
    ]
    np.testing.assert_allclose(of_output @ products @ of_output.T, expected, atol=1e-13)


@pytest.mark.parametrize("results", TRANSFORMS)
def test_points_come_in_pairs(results) -> None:
    transforms = TRANSFORMS[results]
    columns = list(zip(*transforms.of_output, strict=True))
    for place in range(1, transforms.tile - 1, 2):
        assert is_pair(*transforms.of_input[place : place + 2])
        assert is_pair(*columns[place : place + 2])
    assert not is_pair(*transforms.of_input[:2])


@pytest.mark.parametrize("results", TRANSFORMS)
@pytest.mark.parametrize(
    "tag", ["Acdb16a", "abcd", "cdba", "bcAd4a", "dBac8b", "aBcde4b", "Adbec8a"]
)
def test_windows_are_stored_transformed(tag, results) -> None:
    rank = len(Layout.parse(tag).permutation)
    shape = (20, 6, *(2,) * (rank - 4), WINDOW, WINDOW)
    weight = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    stored = to_storage(weight, Layout.parse(f"{tag}:winograd{results}"))
    matrix = np.array(TRANSFORMS[results].of_window)
    expected = to_storage(matrix @ weight @ matrix.T, Layout.parse(tag))
    assert stored.dtype == np.float32
    np.testing.assert_allclose(stored, expected, rtol=1e-6, atol=1e-6)
