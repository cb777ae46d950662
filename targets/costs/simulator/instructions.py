"""Instruction streams: what they say, as objects, as text and as bytes.

One instruction a line, `kind unit amount` and the op that it belongs to:

    load 0 602112 ; conv1
    sync 1 0 ; conv1

`amount` is bytes (load, store), scalar operations (matrix, vector), or for `sync` the number of
the instruction that must have ended before the unit goes on. Behind them stand the buffers on the
chip, `buffer size first last…`: bytes, the instruction that fills it, and those that end its use:

    buffer 602112 0 4 7
"""

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

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


@dataclass(frozen=True)
class Buffer:
    """`size` bytes on the chip, taken from instruction `first` until all of `last` have ended."""

    size: int
    first: int
    last: tuple[int, ...]


@dataclass(frozen=True)
class Stream:
    """Instructions in the order of their issue, the names of their ops, and their buffers."""

    instructions: tuple[Instruction, ...]
    ops: tuple[str, ...]
    buffers: tuple[Buffer, ...] = ()


MAGIC = b"BRDI"
VERSION = 2
_HEADER = struct.Struct("<4sHHIII")
"""Magic, version, 0, count of instructions, bytes of the names after them, words of buffers."""
_RECORD = struct.Struct("<BBxxIQ")
"""Kind, unit, op, amount: 16 bytes."""
_BUFFER = re.compile(r"buffer(?P<numbers>(\s+\d+){2,})")
_LINE = re.compile(r"(?P<kind>[a-z]+)\s+(?P<unit>\d+)\s+(?P<amount>\d+)\s*(?:;\s*(?P<op>.*\S))?")


def to_text(stream: Stream) -> str:
    """The stream as text, one instruction or buffer a line."""
    lines = (
        f"{i.kind.name.lower()} {i.unit} {i.amount} ; {stream.ops[i.op]}"
        for i in stream.instructions
    )
    buffers = (
        " ".join(map(str, ("buffer", buffer.size, buffer.first, *buffer.last)))
        for buffer in stream.buffers
    )
    return "".join(f"{line}\n" for line in (*lines, *buffers))


def from_text(text: str) -> Stream:
    """The stream that `text` writes out. Raises BraidError naming the line that is malformed."""
    kinds = {kind.name.lower(): kind for kind in Kind}
    ops: dict[str, int] = {}
    instructions: list[Instruction] = []
    buffers: list[Buffer] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if buffer := _BUFFER.fullmatch(line.strip()):
            size, first, *last = map(int, buffer["numbers"].split())
            buffers.append(Buffer(size, first, tuple(last)))
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None or match["kind"] not in kinds:
            raise BraidError(
                f"line {number} is '{line.strip()}', expected 'kind unit amount ; op'",
                hint=f"kinds are {', '.join(kinds)}",
            )
        op = ops.setdefault(match["op"] or "", len(ops))
        unit, amount = int(match["unit"]), int(match["amount"])
        instructions.append(Instruction(kinds[match["kind"]], unit, amount, op))
    return _checked(Stream(tuple(instructions), tuple(ops), tuple(buffers)))


def to_bytes(stream: Stream) -> bytes:
    """The stream in binary: a header, 16 bytes an instruction, the ops' names, the buffers.

    A buffer is words of 8 bytes: its size, the filling instruction, how many end its use, these.
    """
    names = "\n".join(stream.ops).encode()
    words = [w for b in stream.buffers for w in (b.size, b.first, len(b.last), *b.last)]
    header = _HEADER.pack(MAGIC, VERSION, 0, len(stream.instructions), len(names), len(words))
    records = (_RECORD.pack(i.kind, i.unit, i.op, i.amount) for i in stream.instructions)
    return header + b"".join(records) + names + struct.pack(f"<{len(words)}Q", *words)


def from_bytes(data: bytes) -> Stream:
    """The stream in `data`. Raises BraidError for another format, version, or a cut file."""
    if len(data) < _HEADER.size or data[:4] != MAGIC:
        raise BraidError("this is no instruction stream: it does not begin with 'BRDI'")
    _, version, _, count, name_bytes, words = _HEADER.unpack_from(data)
    if version != VERSION:
        raise BraidError(f"the stream has version {version}, expected {VERSION}")
    names = _HEADER.size + count * _RECORD.size
    end = names + name_bytes
    if len(data) != end + 8 * words:
        raise BraidError(f"the stream has {len(data)} bytes, expected {end + 8 * words}")
    try:
        ops = tuple(data[names:end].decode().split("\n"))
        records = _RECORD.iter_unpack(data[_HEADER.size : names])
        instructions = tuple(Instruction(Kind(k), u, amount, op) for k, u, op, amount in records)
    except ValueError as error:
        raise BraidError(f"the stream is malformed: {error}") from error
    if any(instruction.op >= len(ops) for instruction in instructions):
        raise BraidError(f"the stream names ops beyond its {len(ops)}")
    numbers = struct.unpack_from(f"<{words}Q", data, end)
    return _checked(Stream(instructions, ops, tuple(_buffers(numbers))))


def _buffers(words: Sequence[int]) -> Iterator[Buffer]:
    place = 0
    while place + 3 <= len(words):
        size, first, count = words[place : place + 3]
        place += 3 + count
        yield Buffer(size, first, tuple(words[place - count : place]))


def _checked(stream: Stream) -> Stream:
    """The stream itself. Raises BraidError where a buffer is of no instruction, or of a sync."""
    count = len(stream.instructions)
    for buffer in stream.buffers:
        for place in (buffer.first, *buffer.last):
            if place >= count or stream.instructions[place].kind is Kind.SYNC:
                what = "a sync" if place < count else f"beyond the {count} instructions"
                raise BraidError(f"a buffer names instruction {place}, which is {what}")
    return stream
