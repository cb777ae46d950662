"""Memory as the kernels see it: a flat row of elements for every memref argument."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, MemRefType, UnregisteredOp, i32, i64
from xdsl.dialects.llvm import IntToPtrOp
from xdsl.ir import Attribute

from braid.analysis.storage.strided_storage import span
from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.emitted_dialects import memref, vector
from braid.lowering.emit.emitter import Emitter, Index, Value

LINE_BYTES = 64
"""The bytes of a line of the cache."""

_WHOLE_BYTES = 4
"""Elements of fewer bytes are stored as truncated ones: see `Emitter.unknown_mask`."""


@dataclass(frozen=True)
class Buffer:
    """Elements from the first of a tensor to its last; offsets count elements."""

    ref: Value
    element_type: Attribute

    @staticmethod
    def of(e: Emitter, argument: Value) -> "Buffer":
        """Return the elements of a memref argument of any rank, with those between its own."""
        type = cast(MemRefType[Any], argument.type)
        strides = type.get_strides()
        assert strides is not None and None not in strides
        shape = type.get_shape()
        count = span(shape, cast(Sequence[int], strides)) if math.prod(shape) else 0
        flat = MemRefType(type.element_type, [count])
        cast_op = memref.ReinterpretCastOp.from_dynamic(argument, [0], [count], [1], flat)
        return Buffer(e.insert(cast_op), type.element_type)

    def load(self, e: Emitter, offset: Index, mask: Value | None = None) -> Value:
        """Return a vector from `offset` on; lanes that the mask turns off are 0 and not read."""
        type = e.vector_type(self.element_type)
        if mask is None:
            return e.make(vector.LoadOp, [self.ref, e.index(offset)], type)
        zero = e.constant(0, type)
        return e.insert(vector.MaskedLoadOp(self.ref, [e.index(offset)], mask, zero))

    def prefetch(
        self, e: Emitter, offset: Index, level: int = 1, *, to_write: bool = False
    ) -> None:
        """Prefetch the cache line of the element at `offset`, which may be out of bounds.

        It is wanted in the cache of this `level`, 1 to 3.
        """
        prefetch = UnregisteredOp.with_name("memref.prefetch").create(
            operands=[self.ref, e.index(offset)],
            properties={
                "isWrite": BoolAttr.from_bool(to_write),
                "localityHint": IntegerAttr(4 - level, i32),
                "isDataCache": BoolAttr.from_bool(True),
            },
        )
        e.effect(prefetch)

    def address(self, e: Emitter, offset: Index) -> Index:
        """Return the address of the element at `offset`."""
        base = e.insert(memref.ExtractAlignedPointerAsIndexOp.get(self.ref))
        return e.add(base, e.mul(offset, bytes_of(self.element_type)))

    def pointer(self, e: Emitter, offset: Index) -> Value:
        """Return an LLVM pointer to the element at `offset`."""
        bits = e.insert(arith.IndexCastOp(e.index(self.address(e, offset)), i64))
        return e.insert(IntToPtrOp(bits))

    def stream(self, e: Emitter, value: Value, offset: Index) -> None:
        """Write a vector past the caches, to an address that is a multiple of its size.

        Other threads see it after a fence.
        """
        alignment = e.lanes * bytes_of(self.element_type)
        pointer = self.pointer(e, offset)
        e.effect(llvm.StoreOp(value, pointer, alignment=alignment, nontemporal=True))

    def load_scalar(self, e: Emitter, offset: Index) -> Value:
        """Load one element."""
        type = cast(MemRefType[Any], self.ref.type).element_type
        return e.make(memref.LoadOp, [self.ref, e.index(offset)], type)

    def splat(self, e: Emitter, offset: Index) -> Value:
        """Load one element into every lane."""
        return e.broadcast(self.load_scalar(e, offset))

    def store(self, e: Emitter, value: Value, offset: Index, mask: Value | None = None) -> None:
        """Write a vector from `offset` on, without the lanes that the mask turns off."""
        if mask is None:
            e.effect(vector.StoreOp.create(operands=[value, self.ref, e.index(offset)]))
        else:
            if bytes_of(self.element_type) < _WHOLE_BYTES:
                mask = e.insert(arith.AndIOp(mask, e.unknown_mask()))
            e.effect(vector.MaskedStoreOp(self.ref, [e.index(offset)], mask, value))
