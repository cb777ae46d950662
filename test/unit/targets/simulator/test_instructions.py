"""Streams as text and as bytes."""

from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.support.errors import BraidError
from braid.targets.simulator.instructions import (
    Buffer,
    Instruction,
    Kind,
    Stream,
    from_text,
    to_text,
)
from braid.targets.simulator.stream_bytes import from_bytes, to_bytes

OPS = ("conv1", "relu#2")
instructions = st.builds(
    Instruction,
    st.sampled_from(list(Kind)),
    st.integers(0, 255),
    st.integers(0, (1 << 64) - 1),
    st.integers(0, 1),
    st.none() | st.floats(0, 1e6),
)


@settings(deadline=None)
@given(st.lists(instructions), st.sampled_from(["", "npu-small", "my chip"]))
def test_both_forms_keep_everything(listed: list[Instruction], target: str) -> None:
    stream = Stream(
        (Instruction(Kind.LOAD, 0, 1, 0), Instruction(Kind.LOAD, 0, 1, 1), *listed),
        OPS,
        (Buffer(9, 0, (1,)), Buffer(7, 1, ())),
        target,
    )
    assert from_text(to_text(stream)) == stream
    assert from_bytes(to_bytes(stream)) == stream


@pytest.mark.parametrize(
    ("last", "message"),
    [("buffer 8 0 3", "instruction 3, which is beyond"), ("buffer 8 1", "1, which is a sync")],
)
def test_buffers_are_of_instructions_that_do_something(last: str, message: str) -> None:
    with pytest.raises(BraidError, match=message):
        from_text(f"load 0 1\nsync 1 0\n{last}\n")


@pytest.mark.parametrize(
    "text",
    [
        "jump 0 1",
        "load 0",
        "load 0 1 2s",
        "load -1 2",
        "load 0 x ; op",
        "load 0 1 %0 -> 0+4 -> 4+4",
        "load 0 1 0+4 -> %0",
        "matrix 0 1 k0 0+4 4 -> 0+4",
    ],
)
def test_malformed_text_names_its_line(text: str) -> None:
    with pytest.raises(BraidError, match="line 2 is"):
        from_text(f"load 0 1\n{text}\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"ELF" + data[3:], "not an instruction stream"),
        (lambda data: data[:4] + b"\x09" + data[5:], "version 9"),
        (lambda data: data[:-1], "bytes, expected"),
        (lambda data: data + b"n", "bytes, expected"),
        (lambda data: data[:32] + b"\x63" + data[33:], "malformed"),
        (lambda data: data[:36] + b"\x63" + data[37:], "names ops beyond"),
    ],
)  # fmt: skip
def test_malformed_bytes(change, message: str) -> None:  # type: ignore[no-untyped-def]
    data = change(to_bytes(Stream((Instruction(Kind.LOAD, 0, 1, 0),), OPS))[:-32])
    with pytest.raises(BraidError, match=message):
        from_bytes(data + sha256(data).digest())


def test_every_changed_byte_is_found() -> None:
    data = to_bytes(Stream((Instruction(Kind.LOAD, 0, 1, 0),), OPS, (), "npu-small"))
    for index in range(len(data)):
        for damaged in (data[:index] + bytes([data[index] ^ 4]) + data[index + 1 :], data[:index]):
            with pytest.raises(BraidError, match="stream"):
                from_bytes(damaged)


def test_a_stream_is_for_the_target_it_names() -> None:
    Stream((), ()).require_target("npu-small")
    Stream((), (), (), "npu-small").require_target("npu-small")
    with pytest.raises(BraidError, match="'npu-davinci', not for 'npu-small'"):
        Stream((), (), (), "npu-davinci").require_target("npu-small")
