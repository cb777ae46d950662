"""Where the tensors of a group lie in memory: buffers, in the layouts of their types."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Attribute, Block, BlockArgument, SSAValue
from xdsl.ir.affine import AffineMap

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.bufferized_group import buffer_type
from braid.lowering.common.element_types import signless_tensor, tensor_type_of


@dataclass(frozen=True)
class Access:
    """Elements of a buffer: `map` gives the index into it, of the dims of a nest."""

    buffer: SSAValue
    map: AffineMap

    @property
    def strides(self) -> list[int]:
        """Elements between neighbours along each dim of the buffer."""
        return strides_in(self.buffer)

    @property
    def element_type(self) -> Attribute:
        """The type of the buffer's elements."""
        return cast(MemRefType[Any], self.buffer.type).element_type

    @property
    def stored(self) -> tuple[int, Attribute]:
        """Bytes of an element, and how the buffer lies in memory."""
        type = cast(MemRefType[Any], self.buffer.type)
        return bytes_of(type.element_type), type.layout


@dataclass(frozen=True)
class Placed:
    """A tensor whose elements are in `buffer`, in an order of its dims."""

    buffer: SSAValue
    layout: Layout

    def access(self, map: AffineMap) -> Access:
        """Return the access to the elements whose index in the tensor `map` gives."""
        storage = self.layout.storage_index(map.results)
        return Access(self.buffer, AffineMap(map.num_dims, 0, storage))


@dataclass(frozen=True)
class Placement:
    """Where operands and results of a group lie; the buffers are those of its kernel, in order."""

    buffers: Sequence[BlockArgument]
    operands: Mapping[SSAValue, Placed]
    results: tuple[Placed, ...]

    @staticmethod
    def of(group: FusedOp) -> "Placement":
        """Return the placement in the layouts of types, in larger tensors where that is decided."""
        return Placement.at(group, stored_choice(group))

    @staticmethod
    def at(group: FusedOp, choice: LayoutChoice) -> "Placement":
        """Return the placement in these layouts, which are permutations of dims."""
        values = (*group.inputs, *group.outputs)
        layouts = (*choice.operands, *choice.results)
        buffers = Block(arg_types=map(stored_type, values, layouts)).args
        placed = [Placed(*own) for own in zip(buffers, layouts, strict=True)]
        count = len(group.inputs)
        operands: dict[SSAValue, Placed] = dict(
            zip(group.body.block.args, placed[:count], strict=True)
        )
        return Placement(buffers, operands, tuple(placed[count:]))


def stored_type(value: SSAValue, layout: Layout) -> MemRefType[Attribute]:
    """Return the buffer of a tensor in a layout, which is a permutation of its dims."""
    tensor = signless_tensor(tensor_type_of(value))
    shape = layout.storage_shape(tensor.get_shape())
    return buffer_type(TensorType(tensor.element_type, shape), layout.strides)


def strides_in(buffer: SSAValue) -> list[int]:
    """Return the elements between neighbours along each dim of a buffer."""
    strides = cast(MemRefType[Any], buffer.type).get_strides()
    return [] if strides is None else [int(stride or 0) for stride in strides]
