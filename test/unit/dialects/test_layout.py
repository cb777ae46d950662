"""Layout tags: their meaning, storage without loss, and invalid tags."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType, f32

from braid.dialects.braid.attributes import layout_of, with_layout
from braid.dialects.braid.layout import ALIASES, DYNAMIC, InvalidLayout, Layout
from braid.dialects.braid.relayout import to_storage, view_as_stored
from test.storage import from_storage


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Any permutation of up to four dims, some of them split once or twice."""
    letters = draw(st.permutations("abcd"[: draw(st.integers(1, 4))]))
    blocks = draw(st.lists(st.tuples(st.integers(1, 5), st.sampled_from(letters)), max_size=3))
    split = {letter for _, letter in blocks}
    outer = "".join(c.upper() if c in split else c for c in letters)
    return Layout.parse(outer + "".join(f"{size}{letter}" for size, letter in blocks))


def shapes(rank: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[st.integers(1, 7)] * rank)


@given(st.data())
def test_storage_round_trip(data: st.DataObject) -> None:
    layout = data.draw(layouts())
    shape = data.draw(shapes(layout.rank))
    array = np.arange(1, math.prod(shape) + 1).reshape(shape)
    stored = to_storage(array, layout)
    assert stored.shape == layout.storage_shape(shape)
    assert np.array_equal(from_storage(stored, layout, shape), array)
    assert np.count_nonzero(stored) == array.size  # the padding of whole blocks is zero


@given(st.data())
def test_storage_map_says_where_an_element_is(data: st.DataObject) -> None:
    layout = data.draw(layouts())
    shape = data.draw(shapes(layout.rank))
    array = np.arange(math.prod(shape)).reshape(shape)
    stored = to_storage(array, layout)
    index = tuple(data.draw(st.integers(0, extent - 1)) for extent in shape)
    assert stored[tuple(layout.storage_map.eval(index, []))] == array[index]


@given(layouts())
def test_a_tag_is_read_as_it_is_printed(layout: Layout) -> None:
    assert Layout.parse(str(layout)) == layout
    assert Layout.named(layout.tag) == layout
    assert layout.is_permutation == layout.tag.islower()


def test_tags_and_aliases_mean_what_onednn_says() -> None:
    assert Layout.parse("acdb").storage_shape((1, 3, 5, 7)) == (1, 5, 7, 3)
    assert Layout.parse("aBcd16b").storage_shape((1, 20, 5, 7)) == (1, 2, 5, 7, 16)
    assert Layout.parse("ABcd4b16a2b").storage_shape((20, 9, 3, 3)) == (2, 2, 3, 3, 4, 16, 2)
    assert Layout.parse("aBcd16b").storage_shape((DYNAMIC, DYNAMIC, 5, 7))[:2] == (DYNAMIC,) * 2
    assert {name: Layout.parse(name).tag for name in ALIASES} == ALIASES
    assert Layout.parse("HWIO").storage_shape((8, 3, 5, 7)) == (5, 7, 3, 8)
    assert Layout.parse("abcd:buffer").is_buffer
    assert not Layout.parse("abcd:buffer").is_row_major
    assert Layout.row_major(2) == Layout.parse("row_major")


def test_transformed_windows_have_no_elements() -> None:
    layout = Layout.parse("Acdb16a:winograd4")
    assert layout.storage_shape((20, 8, 3, 3)) == (2, 6, 6, 8, 16)
    assert (layout.rank, layout.block(0), layout.is_permutation) == (4, 16, False)
    assert layout.untransformed == Layout.parse("Acdb16a") != layout
    assert Layout.parse("abcd:winograd2").storage_shape((20, 8, 3, 3)) == (20, 8, 4, 4)
    for asked in (lambda: layout.dims, lambda: layout.storage_map):
        with pytest.raises(InvalidLayout, match="in which no element has a place"):
            asked()


@pytest.mark.parametrize(
    ("tag", "problem"),
    [
        ("ab:winograd4", "has 2 dims, of which none are windows"),
        ("abcD2d:winograd4", "has windows in blocks"),
        ("abcd:winograd3", "neither a layout tag nor one of"),
        ("ac", "does not name each of its 2 dims exactly once"),
        ("aab", "does not name each of its 3 dims exactly once"),
        ("aB", "must have an inner block for each capital"),
        ("ab16b", "must have an inner block for each capital"),
        ("aB0b", "neither a layout tag nor one of"),
        ("ab:texture", "neither a layout tag nor one of"),
        ("l0", "neither a layout tag nor one of"),
    ],
)
def test_what_is_no_tag(tag: str, problem: str) -> None:
    with pytest.raises(InvalidLayout, match=problem):
        Layout.parse(tag)


def test_an_abstract_layout_is_only_a_name() -> None:
    layout = Layout.named("l0")
    assert layout == Layout.abstract("l0") != Layout.abstract("l1")
    assert layout.is_abstract and not layout.is_row_major
    for ask in (
        lambda: layout.rank,
        lambda: layout.permutation,
        lambda: layout.is_permutation,
        lambda: layout.storage_map,
        lambda: layout.block(0),
        lambda: layout.storage_shape((2, 3)),
    ):
        with pytest.raises(InvalidLayout, match="'l0' is abstract"):
            ask()
    for name in ("abcd", "0l", "l", "l-0"):
        with pytest.raises(InvalidLayout, match="is not a name of an abstract layout"):
            Layout.abstract(name)


def test_row_major_is_no_encoding() -> None:
    plain = TensorType(f32, [2, 3])
    assert layout_of(plain) == Layout.row_major(2)
    turned = with_layout(plain, Layout.parse("ba"))
    assert layout_of(turned).tag == "ba"
    assert with_layout(turned, Layout.row_major(2)) == plain
    assert layout_of(with_layout(plain, Layout.abstract("l7"))).is_abstract


def test_blocks_that_divide_a_shape_need_no_copy() -> None:
    array = np.arange(8 * 6, dtype=np.float32).reshape(8, 6)
    view = view_as_stored(array, Layout.parse("Ab4a"))
    assert np.shares_memory(view, array)
    assert np.array_equal(view, array.reshape(2, 4, 6).transpose(0, 2, 1))
    assert not np.shares_memory(view_as_stored(array, Layout.parse("Ba4b")), array)  # 6 is padded
