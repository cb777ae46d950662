"""Instruction streams: what they say, as objects, as text and as bytes.

One instruction a line, `kind unit amount` and the op that it belongs to:

    load 0 602112 ; conv1
    sync 1 0 ; conv1

`amount` is bytes (load, store), scalar operations (matrix, vector), or for `sync` the number of
the instruction that must have ended before the unit goes on. Where an op declares what it takes,
the seconds stand behind the amount (`vector 3 0 2e-09 ; b`). Behind them stand the buffers on the
chip, `buffer size first last…`: bytes, the instruction that fills it, and those that end its use:

    buffer 602112 0 4 7

The first line may say for which target the stream is: `target npu-small`.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256
from math import inf

from braid.support.errors import BraidError


class Kind(IntEnum):
    """What an instruction does; the value is its opcode."""

    LOAD = 0
    STORE = 1
    MATRIX = 2
    VECTOR = 3
    SYNC = 4

    @staticmethod
    def named(resource: str) -> "Kind":
        """The kind of instruction that a unit with this resource executes.

        Raises BraidError for a resource of no chip that is programmed by instructions.
        """
        try:
            return Kind[resource.upper()]
        except KeyError as error:
            raise BraidError(f"no instruction uses a unit for '{resource}'") from error


@dataclass(frozen=True)
class Instruction:
    """One instruction for unit number `unit`; `op` is an index into `Stream.ops`."""

    kind: Kind
    unit: int
    amount: int
    op: int
    seconds: float | None = None
    """What it takes in all where that is declared, whatever the amount."""


@dataclass(frozen=True)
class Buffer:
    """`size` bytes on the chip, taken from instruction `first` until all of `last` have ended."""

    size: int
    first: int
    last: tuple[int, ...]


@dataclass(frozen=True)
class Stream:
    """Instructions in the order of their issue, the names of their ops, and their buffers.

    `target` is the name of the machine they are for, "" where nobody has said.
    """

    instructions: tuple[Instruction, ...]
    ops: tuple[str, ...]
    buffers: tuple[Buffer, ...] = ()
    target: str = ""

    def require_target(self, name: str) -> None:
        """Raises BraidError unless the stream is for the target of this name, or says for none."""
        if self.target not in ("", name):
            raise BraidError(
                f"the stream was made for target '{self.target}', not for '{name}'",
                hint=f"simulate it with --target {self.target}, or compile the model for '{name}'",
            )


MAGIC = b"BRDI"
VERSION = 4
_HEADER = struct.Struct("<4sHHIII")
"""Magic, version, bytes of the target's name, count of instructions, bytes of the names after them,
words of buffers."""
_DIGEST_BYTES = 32
_RECORD = struct.Struct("<BBxxIQd")
"""Kind, unit, op, amount, and declared seconds or -1: 24 bytes."""
_TARGET = re.compile(r"target\s+(?P<name>\S.*)")
_BUFFER = re.compile(r"buffer(?P<numbers>(\s+\d{1,20}){2,})")
_LINE = re.compile(
    r"(?P<kind>[a-z]+)\s+(?P<unit>\d{1,9})\s+(?P<amount>\d{1,20})"
    r"(?:\s+(?P<seconds>\d{1,20}(?:\.\d{1,20})?(?:e[-+]\d{1,3})?))?\s*(?:;\s*(?P<op>.*\S))?"
)


def to_text(stream: Stream) -> str:
    """The stream as text, one instruction or buffer a line."""
    lines = (
        f"{i.kind.name.lower()} {i.unit} {i.amount}{_seconds(i)} ; {stream.ops[i.op]}"
        for i in stream.instructions
    )
    buffers = (
        " ".join(map(str, ("buffer", buffer.size, buffer.first, *buffer.last)))
        for buffer in stream.buffers
    )
    target = [f"target {stream.target}"] if stream.target else []
    return "".join(f"{line}\n" for line in (*target, *lines, *buffers))


def _seconds(instruction: Instruction) -> str:
    return "" if instruction.seconds is None else f" {instruction.seconds!r}"


def from_text(text: str) -> Stream:
    """The stream that `text` writes out. Raises BraidError naming the line that is malformed."""
    kinds = {kind.name.lower(): kind for kind in Kind}
    ops: dict[str, int] = {}
    instructions: list[Instruction] = []
    buffers: list[Buffer] = []
    target = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if number == 1 and (named := _TARGET.fullmatch(line.strip())):
            target = named["name"]
            continue
        if buffer := _BUFFER.fullmatch(line.strip()):
            size, first, *last = map(int, buffer["numbers"].split())
            buffers.append(Buffer(size, first, tuple(last)))
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None or match["kind"] not in kinds:
            raise BraidError(
                f"line {number} is '{line.strip()}', expected 'kind unit amount [seconds] ; op'",
                hint=f"kinds are {', '.join(kinds)}",
            )
        op = ops.setdefault(match["op"] or "", len(ops))
        unit, amount = int(match["unit"]), int(match["amount"])
        seconds = None if match["seconds"] is None else float(match["seconds"])
        instructions.append(Instruction(kinds[match["kind"]], unit, amount, op, seconds))
    return _checked(Stream(tuple(instructions), tuple(ops), tuple(buffers), target))


def to_bytes(stream: Stream) -> bytes:
    """The stream in binary, of which the last part is a SHA-256 of all the others.

    These are a header, 24 bytes an instruction, the ops' names, the buffers, the target's name.
    A buffer is words of 8 bytes: its size, the filling instruction, how many end its use, these.
    """
    names = "\n".join(stream.ops).encode()
    words = [w for b in stream.buffers for w in (b.size, b.first, len(b.last), *b.last)]
    target = stream.target.encode()
    counts = (len(target), len(stream.instructions), len(names), len(words))
    header = _HEADER.pack(MAGIC, VERSION, *counts)
    records = (
        _RECORD.pack(i.kind, i.unit, i.op, i.amount, -1.0 if i.seconds is None else i.seconds)
        for i in stream.instructions
    )
    packed = struct.pack(f"<{len(words)}Q", *words)
    data = header + b"".join(records) + names + packed + target
    return data + sha256(data).digest()


def from_bytes(data: bytes) -> Stream:
    """The stream in `data`. Raises BraidError for another format, version, or a cut file."""
    if len(data) < _HEADER.size or data[:4] != MAGIC:
        raise BraidError("this is not an instruction stream: it does not begin with 'BRDI'")
    _, version, target_bytes, count, name_bytes, words = _HEADER.unpack_from(data)
    if version != VERSION:
        raise BraidError(f"the stream has version {version}, expected {VERSION}")
    data, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if sha256(data).digest() != digest:
        raise BraidError(
            "the stream is damaged: its bytes do not match its digest",
            hint="compile it again with braid compile",
        )
    names = _HEADER.size + count * _RECORD.size
    end = names + name_bytes
    expected = end + 8 * words + target_bytes
    if len(data) != expected:
        raise BraidError(f"the stream has {len(data)} bytes, expected {expected}")
    try:
        target = data[expected - target_bytes :].decode() if target_bytes else ""
        ops = tuple(data[names:end].decode().split("\n"))
        records = _RECORD.iter_unpack(data[_HEADER.size : names])
        instructions = tuple(
            Instruction(Kind(kind), unit, amount, op, None if seconds < 0 else seconds)
            for kind, unit, op, amount, seconds in records
        )
    except ValueError as error:
        raise BraidError(f"the stream is malformed: {error}") from error
    if any(instruction.op >= len(ops) for instruction in instructions):
        raise BraidError(f"the stream names ops beyond its {len(ops)}")
    numbers = struct.unpack_from(f"<{words}Q", data, end)
    return _checked(Stream(instructions, ops, tuple(_buffers(numbers)), target))


def _buffers(words: Sequence[int]) -> Iterator[Buffer]:
    place = 0
    while place + 3 <= len(words):
        size, first, count = words[place : place + 3]
        place += 3 + count
        yield Buffer(size, first, tuple(words[place - count : place]))


def _checked(stream: Stream) -> Stream:
    """The stream itself.

    Raises BraidError where a buffer is of no instruction or of a sync, and for endless ones.
    """
    count = len(stream.instructions)
    for place, each in enumerate(stream.instructions):
        if each.seconds is not None and not 0 <= each.seconds < inf:
            raise BraidError(f"instruction {place} takes {each.seconds} s")
    for buffer in stream.buffers:
        for place in (buffer.first, *buffer.last):
            if place >= count or stream.instructions[place].kind is Kind.SYNC:
                what = "a sync" if place < count else f"beyond the {count} instructions"
                raise BraidError(f"a buffer names instruction {place}, which is {what}")
    return stream
