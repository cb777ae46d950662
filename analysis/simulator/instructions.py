"""Instruction streams: what they say, as objects, as text and as bytes.

One instruction a line, `kind unit amount` and the op that it belongs to:

    load 0 602112 ; conv1
    sync 1 0 ; conv1

`amount` is bytes (load, store), scalar operations (matrix, vector), or for `sync` the number of
the instruction that must have ended before the unit goes on.
"""

import re
import struct
from dataclasses import dataclass
from enum import IntEnum

from braid.errors import BraidError


class Kind(IntEnum):
    """What an instruction does; the value is its opcode."""

    LOAD = 0
    STORE = 1
    MATRIX = 2
    VECTOR = 3
    SYNC = 4


@dataclass(frozen=True)
class Instruction:
    """One instruction for unit number `unit`; `op` is an index into `Stream.ops`."""

    kind: Kind
    unit: int
    amount: int
    op: int


@dataclass(frozen=True)
class Stream:
    """Instructions in the order of their issue, and the names of the ops they belong to."""

    instructions: tuple[Instruction, ...]
    ops: tuple[str, ...]


MAGIC = b"BRDI"
VERSION = 1
_HEADER = struct.Struct("<4sHHII")
"""Magic, version, 0, count of instructions, bytes of the names after them."""
_RECORD = struct.Struct("<BBxxIQ")
"""Kind, unit, op, amount: 16 bytes."""
_LINE = re.compile(r"(?P<kind>[a-z]+)\s+(?P<unit>\d+)\s+(?P<amount>\d+)\s*(?:;\s*(?P<op>.*\S))?")


def to_text(stream: Stream) -> str:
    """The stream as text, one instruction a line."""
    lines = (
        f"{i.kind.name.lower()} {i.unit} {i.amount} ; {stream.ops[i.op]}"
        for i in stream.instructions
    )
    return "".join(f"{line}\n" for line in lines)


def from_text(text: str) -> Stream:
    """The stream that `text` writes out. Raises BraidError naming the line that is malformed."""
    kinds = {kind.name.lower(): kind for kind in Kind}
    ops: dict[str, int] = {}
    instructions: list[Instruction] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
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
    return Stream(tuple(instructions), tuple(ops))


def to_bytes(stream: Stream) -> bytes:
    """The stream in binary: a header, 16 bytes an instruction, the names of the ops."""
    names = "\n".join(stream.ops).encode()
    header = _HEADER.pack(MAGIC, VERSION, 0, len(stream.instructions), len(names))
    records = (_RECORD.pack(i.kind, i.unit, i.op, i.amount) for i in stream.instructions)
    return header + b"".join(records) + names


def from_bytes(data: bytes) -> Stream:
    """The stream in `data`. Raises BraidError for another format, version, or a cut file."""
    if len(data) < _HEADER.size or data[:4] != MAGIC:
        raise BraidError("this is no instruction stream: it does not begin with 'BRDI'")
    _, version, _, count, name_bytes = _HEADER.unpack_from(data)
    if version != VERSION:
        raise BraidError(f"the stream has version {version}, expected {VERSION}")
    end = _HEADER.size + count * _RECORD.size
    if len(data) != end + name_bytes:
        raise BraidError(f"the stream has {len(data)} bytes, expected {end + name_bytes}")
    try:
        ops = tuple(data[end:].decode().split("\n"))
        records = _RECORD.iter_unpack(data[_HEADER.size : end])
        instructions = tuple(Instruction(Kind(k), u, amount, op) for k, u, op, amount in records)
    except ValueError as error:
        raise BraidError(f"the stream is malformed: {error}") from error
    if any(instruction.op >= len(ops) for instruction in instructions):
        raise BraidError(f"the stream names ops beyond its {len(ops)}")
    return Stream(instructions, ops)
