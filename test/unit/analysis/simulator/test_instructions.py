"""Streams as text and as bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.analysis.simulator.instructions import (
    Instruction,
    Kind,
    Stream,
    from_bytes,
    from_text,
    to_bytes,
    to_text,
)
from braid.errors import BraidError

OPS = ("conv1", "relu#2")
instructions = st.builds(
    Instruction,
    st.sampled_from(list(Kind)),
    st.integers(0, 255),
    st.integers(0, (1 << 64) - 1),
    st.integers(0, 1),
)


@given(st.lists(instructions))
def test_both_forms_keep_everything(listed: list[Instruction]) -> None:
    stream = Stream(
        (Instruction(Kind.LOAD, 0, 1, 0), Instruction(Kind.LOAD, 0, 1, 1), *listed), OPS
    )
    assert from_text(to_text(stream)) == stream
    assert from_bytes(to_bytes(stream)) == stream


@pytest.mark.parametrize("text", ["jump 0 1", "load 0", "load -1 2", "load 0 x ; op"])
def test_malformed_text_names_its_line(text: str) -> None:
    with pytest.raises(BraidError, match="line 2 is"):
        from_text(f"load 0 1\n{text}\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"ELF" + data[3:], "no instruction stream"),
        (lambda data: data[:4] + b"\x09" + data[5:], "version 9"),
        (lambda data: data[:-1], "bytes, expected"),
        (lambda data: data[:16] + b"\x63" + data[17:], "malformed"),
        (lambda data: data[:20] + b"\x63" + data[21:], "names ops beyond"),
    ],
)  # fmt: skip
def test_malformed_bytes(change, message: str) -> None:  # type: ignore[no-untyped-def]
    data = to_bytes(Stream((Instruction(Kind.LOAD, 0, 1, 0),), OPS))
    with pytest.raises(BraidError, match=message):
        from_bytes(change(data))
