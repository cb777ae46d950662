"""Orders of bytes against what they are for: sums of products that fit 16 bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.dialects.braid.byte_pairs import (
    SHUFFLED,
    columns_of_chunk,
    order_bytes,
    pair_orders,
    shuffles,
)
from braid.dialects.braid.layout import InvalidLayout, Layout, TransformedLayoutError
from braid.dialects.braid.relayout import to_storage
from braid.support.errors import BraidError


def weights(seed: int, columns: int, positions: int, depth: int, spread: float) -> np.ndarray:
    numbers = np.random.default_rng(seed).normal(0, spread, (columns, positions, depth))
    return np.clip(np.rint(numbers), -128, 127).astype(np.int8)


def extremes(pairs: np.ndarray) -> tuple[int, int]:
    """Return the largest and the least sum of two products with unsigned bytes."""
    wide = pairs.astype(np.int64).reshape(*pairs.shape[:-1], -1, 2)
    products = 255 * np.maximum(wide, 0).sum(-1), 255 * np.minimum(wide, 0).sum(-1)
    return int(products[0].max()), int(products[1].min())


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    columns=st.integers(1, 200),
    positions=st.sampled_from([1, 2, 9]),
    depth=st.integers(8, 40).map(lambda n: 2 * n),
    spread=st.sampled_from([5.0, 20.0, 26.0, 40.0]),
)
def test_sums_of_pairs_fit(seed, columns, positions, depth, spread) -> None:
    weight = weights(seed, columns, positions, depth, spread)
    orders = pair_orders(weight)
    if orders is None:
        assert spread > 5
        return
    size = columns_of_chunk(positions)
    assert orders.shape == (-(-columns // size), depth)
    for chunk, order in enumerate(orders):
        assert sorted(order) == list(range(depth))
        assert (order // SHUFFLED == np.arange(depth) // SHUFFLED).all()
        most, least = extremes(weight[chunk * size : (chunk + 1) * size][..., order])
        assert -(2**15) <= least <= most < 2**15
    # The order is the result of `pshufb` on the bytes with the masks.
    masks = shuffles(orders)
    assert masks.size == order_bytes(columns, positions, depth)
    for mask, order in zip(masks, orders, strict=True):
        for begin in range(0, depth, SHUFFLED):
            source = min(begin, depth - SHUFFLED)
            taken = mask[begin : begin + SHUFFLED]
            count = min(SHUFFLED, depth - begin)
            assert (source + taken[:count] == order[begin : begin + count]).all()
            assert (taken[count:] == 0x80).all()


@settings(max_examples=200, deadline=None)
@given(bits=st.lists(st.sampled_from([-128, -100, -60, 20, 70, 127]), min_size=32, max_size=32))
def test_orders_are_found_wherever_there_are_any(bits) -> None:
    """The last block of two has eight bytes, few enough to try all pairings of them."""
    weight = np.zeros((4, 1, 24), np.int8)
    weight[:, 0, 16:] = np.reshape(bits, (4, 8))

    def fits(first: int, second: int) -> bool:
        most, least = extremes(weight[..., [first, second]])
        return least >= -(2**15) and most < 2**15

    def pairable(left: frozenset[int]) -> bool:
        if not left:
            return True
        first = min(left)
        rest = left - {first}
        return any(fits(first, other) and pairable(rest - {other}) for other in rest)

    assert (pair_orders(weight) is not None) == pairable(frozenset(range(16, 24)))


def test_too_few_bytes_have_no_order() -> None:
    assert pair_orders(np.ones((3, 1, 14), np.int8)) is None


@pytest.mark.parametrize("tag", ["BA16b4a:pairs", "aCB24c4b:pairs", "AcdB16a4b:pairs"])
def test_stored_blocks_are_followed_by_orders(tag) -> None:
    layout = Layout.parse(tag)
    columns, depth = layout.pair_dims
    shape = [1 if layout.rank == 3 else 2] * layout.rank
    shape[columns], shape[depth] = 70, 26
    spread = np.random.default_rng(3).normal(0, 20, shape)
    weight = np.clip(np.rint(spread), -127, 127).astype(np.int8)
    stored = to_storage(weight, layout)
    assert stored.shape == layout.storage_shape(shape)
    plain = layout.untransformed
    blocks = int(np.prod(plain.storage_shape(shape)))
    # The orders put every byte where it was: of any one column and position.
    masks = stored[blocks:].view(np.uint8).reshape(-1, 32)
    padded = np.pad(weight, [(0, -n % 4 if dim == depth else 0) for dim, n in enumerate(shape)])
    orders = masks[:, :28].astype(int) + np.where(np.arange(28) < 16, 0, 12)
    size = columns_of_chunk(weight.size // 70 // 26)
    moved = np.moveaxis(padded, (columns, depth), (0, -1))
    ordered = np.stack([moved[c][..., orders[c // size]] for c in range(70)])
    expected = to_storage(np.moveaxis(ordered, (0, -1), (columns, depth)), plain)
    np.testing.assert_array_equal(stored[:blocks], expected.ravel())


@pytest.mark.parametrize("tag", ["ab:pairs", "BA24b3a:pairs", "A4a4a:pairs", "AB16a:pairs"])
def test_layouts_without_pairs_are_refused(tag) -> None:
    with pytest.raises(InvalidLayout):
        Layout.parse(tag)


def test_no_element_has_a_place() -> None:
    with pytest.raises(TransformedLayoutError, match="orders of their own"):
        _ = Layout.parse("BA16b4a:pairs").dims


@pytest.mark.parametrize(
    "array",
    [np.full((16, 16), 127, np.int8), np.ones((16, 16), np.uint8), np.ones((8, 8), np.int8)],
)
def test_what_has_no_order_is_not_stored(array) -> None:
    with pytest.raises(BraidError, match="cannot be stored in layout 'BA16b4a:pairs'"):
        to_storage(array, Layout.parse("BA16b4a:pairs"))
