"""Memory of a tiled kernel: places in its arguments and its scratch, and copies between them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, MemRefType, i64
from xdsl.ir import SSAValue

from braid.lowering.common.emitted_dialects import memref
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value


@dataclass(frozen=True)
class Place:
    """The byte `offset` of a buffer of bytes."""

    base: SSAValue
    offset: Index

    def view(self, e: Emitter, type: MemRefType[Any]) -> Value:
        """Return the memory from here on as a buffer of this type."""
        return e.insert(memref.ViewOp(self.base, e.index(self.offset), (), type))

    def elements(self, e: Emitter, bytes: int, count: int) -> Buffer:
        """Return the next `count` elements of this many bytes each, whatever they mean."""
        element_type = IntegerType(8 * bytes)
        return Buffer(self.view(e, MemRefType(element_type, [count])), element_type)

    def plus(self, e: Emitter, bytes: Index) -> "Place":
        """Return the place `bytes` further on."""
        return Place(self.base, e.add(self.offset, bytes))


class Notes:
    """Numbers that a kernel keeps in its scratch memory from one tile to the next."""

    def __init__(self, e: Emitter, place: Place, count: int) -> None:
        self._e = e
        self._count = count
        self._cells = place.view(e, MemRefType(i64, [count]))

    def forget(self, first: int = 0) -> None:
        """Make all numbers from `first` on unequal to any other."""
        for number in range(first, self._count):
            self._store(number, self._e.constant(-1, i64))

    def when_new(self, number: int, value: Index, body: Callable[[], None]) -> None:
        """Run `body` unless note `number` is `value`, and note it."""
        e = self._e
        wanted = e.insert(arith.IndexCastOp(e.index(value), i64))
        known = e.insert(memref.LoadOp.get(self._cells, [e.index(number)]))
        changed = e.insert(arith.CmpiOp(known, wanted, "ne"))

        def renew() -> None:
            body()
            self._store(number, wanted)

        e.when(changed, renew)

    def _store(self, number: int, value: Value) -> None:
        e = self._e
        e.effect(memref.StoreOp.get(value, self._cells, [e.index(number)]))
