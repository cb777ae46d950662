"""Locate the values of a function while its program is emitted."""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import ArrayAttr, IndexType, TensorType, i64
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from braid.analysis.storage.tensor_storage import open_storage_bytes
from braid.analysis.structure.undefined_ops import define
from braid.dialects.braid.attribute_names import BUFFERS
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.buffer import BufferAttr
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.sizes import extents_of_type
from braid.lowering.host.environment import Buffers
from braid.lowering.host.open_sizes import OpenSizes
from braid.lowering.host.pointers import PointerBuilder
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import maximum


class Values:
    """The address of each tensor and the value of each scalar of the source, as emitted so far."""

    def __init__(self, buffers: Buffers, sizes: OpenSizes) -> None:
        self.buffers = buffers
        self.sizes = sizes
        self.tensors: dict[SSAValue, SSAValue] = {}
        self.scalars: dict[SSAValue, SSAValue] = {}

    def bind_results(self, op: Operation) -> None:
        """Note that results are where the plan says."""
        self.bind_buffers(op.results, buffers_of(op, BUFFERS, len(op.results)))

    def bind_buffers(
        self, values: Sequence[SSAValue], buffers: Sequence[BufferAttr | None]
    ) -> None:
        """Note that the tensors among `values` are in `buffers`."""
        for value, buffer in zip(values, buffers, strict=True):
            if buffer is not None:
                self.tensors[value] = self.buffers.address(buffer)

    def bind_scalars(self, sources: Sequence[SSAValue], values: Sequence[SSAValue]) -> None:
        """Note that the scalars among `sources` are `values`."""
        self.scalars.update(zip(scalars(sources), values, strict=True))

    def copy(
        self, value: SSAValue, source: SSAValue, target: SSAValue, builder: PointerBuilder
    ) -> None:
        """Copy the tensor `value` from one address to another, unless they are the same.

        A caller may give one buffer as an input and as the output that has its value.
        """
        if source is not target:
            copy = builder.copy_unless_same if isinstance(value, BlockArgument) else builder.copy
            copy(target, source, self._number(open_storage_bytes(value.type), builder))

    def extract(self, op: tensor.ExtractOp, builder: PointerBuilder) -> None:
        """Emit a read of one element of a row-major tensor, the last one if out of bounds."""
        pointer, type = self.tensors[op.tensor], cast(AnyTensor, op.tensor.type)
        stride: Extent = bytes_of(type.element_type)
        for index, extent in reversed(list(zip(op.indices, extents_of_type(type), strict=True))):
            position = builder.emit(arith.IndexCastOp(self.scalars[index], i64))
            # Indices may be inputs of the model; negative ones are large as unsigned numbers.
            position = builder.emit(
                arith.MinUIOp(position, self._number(maximum(extent, 1) - 1, builder))
            )
            offset = builder.emit(arith.MuliOp(position, self._number(stride, builder)))
            pointer = builder.address_at(pointer, offset)
            stride = extent * stride
        self.scalars[op.result] = _load(pointer, op.result.type, builder)

    def _number(self, extent: Extent, builder: PointerBuilder) -> SSAValue:
        return builder.constant(extent) if isinstance(extent, int) else self.sizes.value(extent)

    def from_elements(self, op: tensor.FromElementsOp, builder: PointerBuilder) -> None:
        """Write the elements of a tensor one by one."""
        self.bind_results(op)
        stride = bytes_of(op.result.type.element_type)
        base = self.tensors[op.result]
        for index, element in enumerate(op.elements):
            builder.store(self.scalars[element], builder.address(base, index * stride))

    def compute(self, op: Operation, builder: PointerBuilder) -> None:
        """Emit an op on scalars, made defined for all operands."""
        clone = builder.insert(op.clone(dict(self.scalars)))
        define(clone)
        self.bind_scalars(op.results, clone.results)


def scalars(values: Sequence[SSAValue]) -> list[SSAValue]:
    """Return those of `values` that are not tensors."""
    return [value for value in values if not isinstance(value.type, TensorType)]


def buffers_of(op: Operation, name: str, count: int) -> list[BufferAttr | None]:
    """Return the `count` buffers in attribute `name` of `op`; None for a value without one."""
    attribute = op.attributes.get(name)
    if not isinstance(attribute, ArrayAttr):
        return [None] * count
    entries = cast(ArrayAttr[Attribute], attribute).data
    return [entry if isinstance(entry, BufferAttr) else None for entry in entries]


def _load(pointer: SSAValue, type: Attribute, builder: PointerBuilder) -> SSAValue:
    if isinstance(type, IndexType):
        return builder.emit(arith.IndexCastOp(builder.load(pointer, i64), type))
    return builder.load(pointer, type)
