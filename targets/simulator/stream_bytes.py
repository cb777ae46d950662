"""Instruction streams as bytes: the form that an artifact holds and the runtime executes.

The format is a header, 24 bytes for each instruction, the names of the ops, words of 8 bytes
(buffers, accesses, tensors), the names of kernels and of tensors, the target's name, and a SHA-256
of all of it. A buffer is its size, its address plus one (0 for none), the filling instruction, how
many end its use, these. An access is 0 for none, or else 1, its kernel's number plus one (0 for a
copy), step, steps, and three lists after their counts: address and size of the reads, of the
writes, and tensors. A tensor is its size.
"""

import struct
from collections.abc import Iterable, Iterator
from hashlib import sha256

from braid.support.errors import BraidError
from braid.targets.simulator.instructions import (
    Access,
    Buffer,
    Instruction,
    Kind,
    Range,
    Stream,
    Tensor,
    checked,
    kernels_of,
)

MAGIC = b"BRDI"
VERSION = 5
HEADER = struct.Struct("<4sHHIIIIII")
"""Magic, version, bytes of the target's name, count of instructions, bytes of the ops' names,
counts of words and of buffers and tensors, bytes of the names of kernels and tensors."""
_DIGEST_BYTES = 32
_RECORD = struct.Struct("<BBxxIQd")
"""Kind, unit, op, amount, and declared seconds or -1: 24 bytes."""


def to_bytes(stream: Stream) -> bytes:
    """Return the stream in binary."""
    ops = "\n".join(stream.ops).encode()
    kernels = kernels_of(stream.instructions)
    names = "\n".join((*kernels, "", *(tensor.name for tensor in stream.tensors))).encode()
    number = {name: place for place, name in enumerate(kernels)}
    words = [*_buffer_words(stream.buffers)]
    for instruction in stream.instructions:
        words += _access_words(instruction.access, number)
    words += [tensor.size for tensor in stream.tensors]
    target = stream.target.encode()
    counts = (len(stream.instructions), len(ops), len(words), len(stream.buffers))
    header = HEADER.pack(MAGIC, VERSION, len(target), *counts, len(stream.tensors), len(names))
    records = (
        _RECORD.pack(i.kind, i.unit, i.op, i.amount, -1.0 if i.seconds is None else i.seconds)
        for i in stream.instructions
    )
    packed = struct.pack(f"<{len(words)}Q", *words)
    data = b"".join((header, *records, ops, packed, names, target))
    return data + sha256(data).digest()


def _buffer_words(buffers: Iterable[Buffer]) -> Iterator[int]:
    for buffer in buffers:
        address = 0 if buffer.address is None else buffer.address + 1
        yield from (buffer.size, address, buffer.first, len(buffer.last), *buffer.last)


def _access_words(access: Access | None, number: dict[str, int]) -> list[int]:
    if access is None:
        return [0]
    kernel = number[access.kernel] + 1 if access.kernel else 0
    words = [1, kernel, access.step, access.steps]
    for ranges in (access.reads, access.writes):
        words += [len(ranges), *(word for r in ranges for word in (r.address, r.size))]
    return [*words, len(access.tensors), *access.tensors]


def from_bytes(data: bytes) -> Stream:
    """Return the stream in `data`. Raises BraidError for another format, version, or a cut file."""
    if len(data) < HEADER.size or data[:4] != MAGIC:
        raise BraidError("this is not an instruction stream: it does not begin with 'BRDI'")
    _, version, target_bytes, count, op_bytes, words, buffers, tensors, name_bytes = (
        HEADER.unpack_from(data)
    )
    if version != VERSION:
        raise BraidError(f"the stream has version {version}, expected {VERSION}")
    data, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if sha256(data).digest() != digest:
        raise BraidError(
            "the stream is damaged: its bytes do not match its digest",
            hint="compile the model again",
        )
    sizes = (HEADER.size, count * _RECORD.size, op_bytes, 8 * words, name_bytes, target_bytes)
    if len(data) != sum(sizes):
        raise BraidError(f"the stream has {len(data)} bytes, expected {sum(sizes)}")
    parts: list[bytes] = []
    for size in sizes:
        parts.append(data[:size])
        data = data[size:]
    _, records, op_names, packed, names, target = parts
    try:
        ops = tuple(op_names.decode().split("\n"))
        reader = _Words(iter(struct.unpack(f"<{words}Q", packed)), names.decode().split("\n"))
        found = tuple(reader.buffer() for _ in range(buffers))
        instructions = tuple(
            Instruction(
                Kind(kind), unit, amount, op, None if seconds < 0 else seconds, reader.access()
            )
            for kind, unit, op, amount, seconds in _RECORD.iter_unpack(records)
        )
        outside = reader.tensors(tensors)
        name = target.decode()
    except (ValueError, IndexError, RuntimeError, StopIteration) as error:
        raise BraidError(f"the stream is malformed: {error}") from error
    if any(instruction.op >= len(ops) for instruction in instructions):
        raise BraidError(f"the stream names ops beyond its {len(ops)}")
    return checked(Stream(instructions, ops, found, name, outside))


class _Words:
    """Reads numbers one after the other. Its methods raise ValueError for one that is missing."""

    def __init__(self, words: Iterator[int], names: list[str]) -> None:
        self._words = words
        end = names.index("")
        self._kernels, self._tensors = names[:end], names[end + 1 :]

    def buffer(self) -> Buffer:
        size, address, first = (self._next() for _ in range(3))
        return Buffer(size, first, self._list(), address - 1 if address else None)

    def access(self) -> Access | None:
        if not self._next():
            return None
        kernel, step, steps = (self._next() for _ in range(3))
        reads, writes = self._ranges(), self._ranges()
        name = self._kernels[kernel - 1] if kernel else ""
        return Access(reads, writes, self._list(), name, step, steps)

    def tensors(self, count: int) -> tuple[Tensor, ...]:
        return tuple(Tensor(self._next(), self._tensors[place]) for place in range(count))

    def _ranges(self) -> tuple[Range, ...]:
        return tuple(Range(self._next(), self._next()) for _ in range(self._next()))

    def _list(self) -> tuple[int, ...]:
        return tuple(self._next() for _ in range(self._next()))

    def _next(self) -> int:
        word = next(self._words, None)
        if word is None:
            raise ValueError("it ends before its last number")
        return word
