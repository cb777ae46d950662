"""Copies of an operand's tiles to shared memory, by `cp.async` where elements lie well.

Elements beyond the K of the operand are filled with zeros. Rows and columns out of bounds
repeat the last ones instead: their results are not stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import MemRefType, i32, i64
from xdsl.ir import Attribute

from braid.lowering.gpu.contraction.code import Code, Value
from braid.lowering.gpu.contraction.problem import Operand
from braid.lowering.gpu.contraction.tiles import CHUNK, Place

_FAR = 2**31
"""Bytes: half of what 32 bits count to, as K runs a stage beyond their end."""
_GATHERED = 8
"""Elements that a thread gathers for a row: the position of each takes a register."""


@dataclass
class TileCopy:
    """Copies tiles of `depth` elements along K and `lines` of the operand's own dims.

    A line in shared memory is `along_depth`, or else along the operand's own dims. A thread copies
    unit `unit` of line `first` and of lines that are `step` apart. The start of a row is held as a
    `distance` in 32 bits if that suffices: a thread holds many of them. Tiles that are `whole` have
    no K beyond the end.
    """

    operand: Operand
    place: Place
    along_depth: bool
    lines: int
    depth: int
    threads: int
    width: int = 0
    apart: int = 0
    distance: Attribute = i32
    whole: bool = False
    fixed: list[Value] = field(default_factory=list[Value])

    def __post_init__(self) -> None:
        """Find how wide copies are: 0 for elements that are too narrow or too scattered to copy."""
        self.width = self.operand.chunk(self.along_depth)
        self.distance = i32 if self.operand.reach < _FAR else i64
        per = self.width or min(CHUNK, _GATHERED * self.operand.bytes)
        # A line must not be shared by more threads than there are.
        while self.place.line_bytes // per > self.threads:
            per *= 2
        self.units = self.place.line_bytes // per
        self.per_unit = per // self.operand.bytes
        self.step = self.threads // self.units
        self.count = -(-self.place.lines // self.step)

    @property
    def extent(self) -> int:
        """The extent of the operand's own dims."""
        return prod(extent for extent, _ in self.operand.lines)

    @property
    def depths(self) -> int:
        """The extent of K."""
        return prod(extent for extent, _ in self.operand.depths)

    def prepare(self, code: Code, thread: Value, start: Value, batch: Value) -> None:
        """Emit what all stages share; `start` is the first row or column of the block's tile."""
        self.unit = code.rem(thread, self.units)
        self.first = code.div(thread, self.units)
        pointer = code.pointer(self.operand.value)
        outer = code.offset(batch, self.operand.batch, self.operand.bytes)
        self.begin = code.at(pointer, outer)
        if not self.along_depth and self.width == 0:
            self.origin = code.add(start, code.mul(self.unit, self.per_unit))
        elif not self.along_depth:
            own = code.add(start, code.mul(self.unit, self.per_unit))
            last = max(self.extent - self.per_unit, 0)
            self.fixed = [self._line(code, code.least(own, last))]
        else:
            first = code.add(start, self.first)
            whole = self.extent % self.lines == 0
            if whole and len(self.operand.lines) == 1:
                base = self._line(code, first)
                self.fixed = [base] * self.count
                self.apart = self.step * self.operand.lines[0][1] * self.operand.bytes
            else:
                self.fixed = [
                    self._line(code, code.least(code.add(first, n * self.step), self.extent - 1))
                    for n in range(self.count)
                ]
        chunk, self.within = self._chunk(code)
        self.targets: list[Value] = []
        for n in range(self.count):
            if n > 0 and self.step % self.place.period == 0:
                self.targets.append(code.add(self.targets[0], n * self.step * self.place.pitch))
                continue
            line = code.add(self.first, n * self.step)
            target = self.place.address(code, line, chunk)
            self.targets.append(target if self.within is None else code.add(target, self.within))

    def issue(self, code: Code, shared: Value, depth: Value, numbers: Sequence[int]) -> None:
        """Issue the thread's copies with these numbers, for the tile that begins at `depth` along
        K.
        """
        for n in numbers:
            target = code.at(shared, self.targets[n])
            if self.place.lines % self.step == 0:
                self._copy(code, target, depth, n)
            else:
                line = code.add(self.first, n * self.step)
                code.choose(
                    code.below(line, self.place.lines),
                    lambda inside, t=target, n=n: self._copy(inside, t, depth, n),
                )

    def _copy(self, code: Code, target: Value, depth: Value, n: int) -> None:
        if self.width == 0:
            self._gather(code, target, depth, n)
            return
        terms = self.operand.depths
        if self.along_depth:
            first, source, apart = code.mul(self.unit, self.per_unit), self.fixed[n], self.apart
            begin = own = code.add(depth, first)
        else:
            begin = code.add(depth, self.first)
            own, source, apart = code.add(begin, n * self.step), self.fixed[0], 0
            if len(terms) == 1:
                apart = self.step * terms[0][1] * self.operand.bytes
            else:
                begin = own
        inside = None if self.whole else code.below(own, self.depths)
        # The distance from copy to copy comes last: it is a part of the instruction.
        source = code.at(self._source(code, source, begin), n * apart)
        cache = "cg" if self.width == CHUNK else "ca"
        name = f"llvm.nvvm.cp.async.{cache}.shared.global"
        pieces = self.per_unit * self.operand.bytes // self.width
        for piece in range(pieces):
            to = code.at(target, piece * self.width)
            at = code.at(source, piece * self.width)
            if inside is None:
                code.intrinsic(f"{name}.{self.width}", [to, at], [])
            else:
                taken = code.select(inside, code.number(self.width), code.number(0))
                code.intrinsic(f"{name}.{self.width}.s", [to, at, taken], [])

    def _gather(self, code: Code, target: Value, depth: Value, n: int) -> None:
        """Copy elements from anywhere, which are available at once."""
        type = cast(MemRefType[Any], self.operand.value.type).element_type
        zero = code.number(0, type)
        values: list[Value] = []
        for place in range(self.per_unit):
            if self.along_depth:
                own = code.add(code.add(depth, code.mul(self.unit, self.per_unit)), place)
                line, apart = self.fixed[n], n * self.apart
            else:
                own = code.add(code.add(depth, self.first), n * self.step)
                bound = code.least(code.add(self.origin, place), self.extent - 1)
                line, apart = self._line(code, bound), 0
            bounded = code.least(own, self.depths - 1)
            source = code.at(self._source(code, line, bounded), apart)
            value = code.load(source, type, self.operand.bytes)
            values.append(code.select(code.below(own, self.depths), value, zero))
        code.store(code.vector(values), target, self.per_unit * self.operand.bytes)

    def _line(self, code: Code, line: Value) -> Value:
        """Return the bytes to the beginning of a line."""
        return code.offset(line, self.operand.lines, self.operand.bytes, self.distance)

    def _source(self, code: Code, line: Value, depth: Value) -> Value:
        """Return the element at a position along K of the row that begins there."""
        own = code.offset(depth, self.operand.depths, self.operand.bytes, self.distance)
        whole = code.add(line, own)
        return code.at(self.begin, code.wide(whole) if self.distance == i32 else whole)

    def _chunk(self, code: Code) -> tuple[Value, Value | None]:
        """Return the chunk of a line that the thread's unit is in, and where in it."""
        bytes_ = self.per_unit * self.operand.bytes
        if bytes_ >= CHUNK:
            return code.mul(self.unit, bytes_ // CHUNK), None
        per = CHUNK // bytes_
        return code.div(self.unit, per), code.mul(code.rem(self.unit, per), bytes_)
