"""Sizes as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.support.byte_sizes import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (4096, 4096),
        ("4096", 4096),
        ("0", 0),
        ("512KiB", 512 * 1024),
        ("64MiB", 64 * 1024**2),
        ("64 MB", 64_000_000),
        ("1.5gib", 3 * 1024**3 // 2),
        ("8B", 8),
    ],
)
def test_accepted(text: int | str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "64XB", "-1", -1, "1.0001KiB", "1e3", "12MiB3"])
def test_rejected(text: int | str) -> None:
    with pytest.raises(ValueError, match=r"size|bytes"):
        parse_size(text)


def test_formatted() -> None:
    assert [format_size(n) for n in (0, 1023, 1024, 1536, 5 << 30)] == [
        "0 B",
        "1023 B",
        "1 KiB",
        "1.5 KiB",
        "5 GiB",
    ]


@given(st.integers(0, 1 << 50))
def test_what_is_printed_is_within_a_percent(size: int) -> None:
    number, unit = format_size(size).split()
    assert float(number) * parse_size(f"1{unit}") == pytest.approx(size, rel=0.01)
