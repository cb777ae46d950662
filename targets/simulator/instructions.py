"""Instruction streams: their contents as objects, as text and as bytes.

One instruction a line, `kind unit amount`, its operands and results, and its op:

    load 0 602112 %0 -> 0+602112 ; conv1
    sync 1 0 ; conv1
    matrix 1 1806336 k0 0+602112 602112+1728 -> 603840+401408 ; conv1
    store 3 401408 603840+401408 -> %2 ; conv1

`amount` is bytes (load, store), scalar operations (matrix, vector), or for `sync` the number of the
instruction that must have ended before the unit goes on. If an op declares its time, the seconds
follow the amount (`vector 3 0 2e-09 ; b`).

`address+size` are bytes on the chip and `%n` is tensor n outside of it. An instruction computes the
kernel with a name, here `k0`; `k0:1/2` is the first of two instructions that compute it. A load
without one copies. Streams that are only simulated may say none of this.

They are followed by the buffers on the chip, `buffer size[@address] first last…`: its bytes, its
address, the instruction that fills it, and those that end its use; then the tensors outside, each
with its bytes and its role:

    buffer 602112@0 0 4 7
    tensor 602112 argument 0

The first line may say for which target the stream is: `target npu-small`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import inf

from braid.support.errors import BraidError
from braid.support.option_names import option_text


class Kind(IntEnum):
    """The kind of an instruction, by what it does; the value is its opcode."""

    LOAD = 0
    STORE = 1
    MATRIX = 2
    VECTOR = 3
    SYNC = 4

    @staticmethod
    def named(resource: str) -> "Kind":
        """Return the kind of instruction that a unit with this resource executes.

        Raises BraidError for a resource of no chip that is programmed by instructions.
        """
        try:
            return Kind[resource.upper()]
        except KeyError as error:
            raise BraidError(f"no instruction uses a unit for '{resource}'") from error


@dataclass(frozen=True)
class Range:
    """`size` bytes on the chip from `address` on."""

    address: int
    size: int

    @property
    def end(self) -> int:
        """Return the address after the last byte."""
        return self.address + self.size

    def overlaps(self, other: "Range") -> bool:
        """Return whether they share a byte."""
        return self.address < other.end and other.address < self.end


@dataclass(frozen=True)
class Access:
    """The reads and writes of an instruction: ranges on the chip, and `tensors` outside.

    A load reads the tensors and a store writes its one. `kernel` names what is computed, "" for a
    copy. If several units work on an op in sequence, each has a `step`, from 1 to `steps`, and
    reads the results of the step before.
    """

    reads: tuple[Range, ...]
    writes: tuple[Range, ...]
    tensors: tuple[int, ...] = ()
    kernel: str = ""
    step: int = 1
    steps: int = 1


@dataclass(frozen=True)
class Tensor:
    """`size` bytes outside of the chip, and their role: `argument 0`, a parameter, a spill."""

    size: int
    name: str


@dataclass(frozen=True)
class Instruction:
    """One instruction for unit number `unit`; `op` is an index into `Stream.ops`."""

    kind: Kind
    unit: int
    amount: int
    op: int
    seconds: float | None = None
    """The seconds that it takes in all, whatever the amount, where they are declared."""
    access: Access | None = None
    """None for a sync, and in streams that are only simulated."""


@dataclass(frozen=True)
class Buffer:
    """`size` bytes on the chip, taken from instruction `first` until all of `last` have ended.

    They begin at `address`, None in streams that are only simulated.
    """

    size: int
    first: int
    last: tuple[int, ...]
    address: int | None = None

    @property
    def range(self) -> Range | None:
        """Return where it is."""
        return None if self.address is None else Range(self.address, self.size)


@dataclass(frozen=True)
class Stream:
    """Instructions in the order of their issue, the names of their ops, and their buffers.

    `tensors` are those outside of the chip. `target` is the name of the machine for which they are,
    "" for unknown.
    """

    instructions: tuple[Instruction, ...]
    ops: tuple[str, ...]
    buffers: tuple[Buffer, ...] = ()
    target: str = ""
    tensors: tuple[Tensor, ...] = ()

    @property
    def executes(self) -> bool:
        """Return whether it lists the operands and results of its instructions, and so can be
        run."""
        return all(i.kind is Kind.SYNC or i.access is not None for i in self.instructions)

    def require_target(self, name: str) -> None:
        """Raise BraidError unless the stream is for the target of this name, or says for none."""
        if self.target not in ("", name):
            raise BraidError(
                f"the stream was made for target '{self.target}', not for '{name}'",
                hint=f"simulate it with {option_text('target', self.target)}, or compile the "
                f"model for '{name}'",
            )


_TARGET = re.compile(r"target\s+(?P<name>\S.*)")
_BUFFER = re.compile(
    r"buffer\s+(?P<size>\d{1,20})(@(?P<address>\d{1,20}))?(?P<places>(\s+\d{1,20})+)"
)
_TENSOR = re.compile(r"tensor\s+(?P<size>\d{1,20})\s+(?P<name>\S.*)")
_LINE = re.compile(
    r"(?P<kind>[a-z]+)\s+(?P<unit>\d{1,9})\s+(?P<amount>\d{1,20})"
    r"(?:\s+(?P<seconds>\d{1,20}(?:\.\d{1,20})?(?:e[-+]\d{1,3})?))?"
    r"(?:\s+(?P<access>(?:[^;\s]\S*\s+)*->(?:\s+[^;\s]\S*)*))?\s*(?:;\s*(?P<op>.*\S))?"
)
_KERNEL = re.compile(r"(?P<name>[a-zA-Z_]\w*)(?::(?P<step>[1-9]\d{0,8})/(?P<steps>[1-9]\d{0,8}))?")
_RANGE = re.compile(r"(?P<address>\d{1,20})\+(?P<size>\d{1,20})")
_OUTSIDE = re.compile(r"%(?P<number>\d{1,9})")


def to_text(stream: Stream) -> str:
    """Return the stream as text, one instruction, buffer or tensor a line."""
    lines = (
        f"{i.kind.name.lower()} {i.unit} {i.amount}{_seconds(i)}{_written(i)} ; {stream.ops[i.op]}"
        for i in stream.instructions
    )
    buffers = (
        " ".join(map(str, ("buffer", _placed(buffer), buffer.first, *buffer.last)))
        for buffer in stream.buffers
    )
    tensors = (f"tensor {tensor.size} {tensor.name}" for tensor in stream.tensors)
    target = [f"target {stream.target}"] if stream.target else []
    return "".join(f"{line}\n" for line in (*target, *lines, *buffers, *tensors))


def _seconds(instruction: Instruction) -> str:
    return "" if instruction.seconds is None else f" {instruction.seconds!r}"


def _placed(buffer: Buffer) -> str:
    return f"{buffer.size}" if buffer.address is None else f"{buffer.size}@{buffer.address}"


def _written(instruction: Instruction) -> str:
    access = instruction.access
    if access is None:
        return ""
    step = f":{access.step}/{access.steps}" if access.steps > 1 else ""
    reads, writes = ([f"{r.address}+{r.size}" for r in rs] for rs in (access.reads, access.writes))
    (writes if instruction.kind is Kind.STORE else reads).extend(f"%{n}" for n in access.tensors)
    kernel = [access.kernel + step] if access.kernel else []
    return " " + " ".join([*kernel, *reads, "->", *writes])


def _access(text: str, kind: Kind) -> Access | None:
    """Return the object of a text by `_written`; None for another form."""
    sides = [part.split() for part in text.split("->")]
    if len(sides) != 2:
        return None
    before, after = sides
    kernel = _KERNEL.fullmatch(before[0]) if before else None
    if kernel is not None:
        before = before[1:]
    ranges: list[list[Range]] = []
    tensors: list[int] = []
    for side, words in enumerate((before, after)):
        ranges.append([])
        for word in words:
            if found := _RANGE.fullmatch(word):
                ranges[-1].append(Range(int(found["address"]), int(found["size"])))
            elif (found := _OUTSIDE.fullmatch(word)) and kind is (Kind.LOAD, Kind.STORE)[side]:
                tensors.append(int(found["number"]))
            else:
                return None
    name = kernel["name"] if kernel is not None else ""
    step, steps = (int(kernel[g] or 1) if kernel is not None else 1 for g in ("step", "steps"))
    return Access(tuple(ranges[0]), tuple(ranges[1]), tuple(tensors), name, step, steps)


def from_text(text: str) -> Stream:
    """Return the stream that `text` writes out. Raises BraidError naming the line that is
    malformed.
    """
    ops: dict[str, int] = {}
    instructions: list[Instruction] = []
    buffers: list[Buffer] = []
    tensors: list[Tensor] = []
    target = ""
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line:
            continue
        if number == 1 and (named := _TARGET.fullmatch(line)):
            target = named["name"]
        elif found := _BUFFER.fullmatch(line):
            first, *last = map(int, found["places"].split())
            address = None if found["address"] is None else int(found["address"])
            buffers.append(Buffer(int(found["size"]), first, tuple(last), address))
        elif found := _TENSOR.fullmatch(line):
            tensors.append(Tensor(int(found["size"]), found["name"]))
        else:
            instructions.append(_instruction(line, number, ops))
    return checked(Stream(tuple(instructions), tuple(ops), tuple(buffers), target, tuple(tensors)))


def _instruction(line: str, number: int, ops: dict[str, int]) -> Instruction:
    kinds = {kind.name.lower(): kind for kind in Kind}
    match = _LINE.fullmatch(line)
    access = None
    if match is not None and match["kind"] in kinds and match["access"] is not None:
        access = _access(match["access"], kinds[match["kind"]])
    if match is None or match["kind"] not in kinds or (match["access"] and access is None):
        raise BraidError(
            f"line {number} is '{line}', expected "
            "'kind unit amount [seconds] [kernel reads… -> writes…] ; op'",
            hint=f"kinds are {', '.join(kinds)}",
        )
    op = ops.setdefault(match["op"] or "", len(ops))
    seconds = None if match["seconds"] is None else float(match["seconds"])
    unit, amount = int(match["unit"]), int(match["amount"])
    return Instruction(kinds[match["kind"]], unit, amount, op, seconds, access)


def checked(stream: Stream) -> Stream:
    """Return the stream itself.

    Raises BraidError where a buffer is of no instruction or of a sync, for endless instructions,
    for steps beyond the last one, and for tensors that are not there.
    """
    count = len(stream.instructions)
    for place, each in enumerate(stream.instructions):
        if each.seconds is not None and not 0 <= each.seconds < inf:
            raise BraidError(f"instruction {place} takes {each.seconds} s")
        if each.access is not None:
            _check_access(place, each.access, stream)
    for buffer in stream.buffers:
        for place in (buffer.first, *buffer.last):
            if place >= count or stream.instructions[place].kind is Kind.SYNC:
                what = "a sync" if place < count else f"beyond the {count} instructions"
                raise BraidError(f"a buffer names instruction {place}, which is {what}")
    return stream


def _check_access(place: int, access: Access, stream: Stream) -> None:
    if not 1 <= access.step <= access.steps:
        raise BraidError(f"instruction {place} is step {access.step} of {access.steps}")
    for number in access.tensors:
        if number >= len(stream.tensors):
            raise BraidError(
                f"instruction {place} names tensor {number} of {len(stream.tensors)} outside"
            )


def kernels_of(instructions: Sequence[Instruction]) -> tuple[str, ...]:
    """Return the names of the kernels, each once, in the order of their first instructions."""
    named = (i.access.kernel for i in instructions if i.access is not None and i.access.kernel)
    return tuple(dict.fromkeys(named))
