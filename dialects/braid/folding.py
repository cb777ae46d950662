"""Adding up the columns of an image: the transpose of taking windows."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import DenseArrayBase, IntegerType, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.dialects.braid.base import (
    AnyTensor,
    DecomposableOp,
    element_type_of,
    extents_of,
    integers,
    require,
    require_summable,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.boxes import Box
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.movement import BroadcastOp, ReshapeOp, TransposeOp
from braid.dialects.braid.numpy_functions import wide
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scattering import ScatterNdOp
from braid.dialects.braid.size_facts import may_equal
from braid.dialects.braid.size_limits import MOST_ELEMENTS, require_table
from braid.dialects.braid.sized_ops import slice_of
from braid.dialects.braid.tiling import Tile


@dataclass(frozen=True)
class FoldDim:
    """One spatial dim: tap w of block i belongs to the place stride · i + dilation · w - low.

    There are `size` taps, `count` blocks, and `extent` positions from 0 on; elements at other
    positions are ignored.
    """

    size: int
    count: int
    extent: int
    stride: int
    dilation: int
    low: int

    @property
    def padded(self) -> int:
        """Return the positions from the beginning of the first block to the end of the last one."""
        reach = self.stride * (self.count - 1) + self.dilation * (self.size - 1) + 1
        return max(self.low + self.extent, reach if self.count else 0)


@irdl_op_definition
class FoldOp(DecomposableOp):
    """The sums of the elements of blocks that belong to the same place of an image.

    Operand: `[N, C · block…, count…]`, for each channel the elements of a block in row-major order,
    each for `count…` blocks. Result: `[N, C, image…]`, where element w of block i is added to the
    place stride · i + dilation · w - pad_low, if there is one. All lists have one entry per spatial
    dim. Sums of 16-bit floats are computed in f32. Fails verification for lists of other lengths,
    no positive extents, strides or dilations, open spatial dims and channels that are not of whole
    blocks.

    ```mlir
    %y = braid.fold %x {block = array<i64: 2, 2>, image = array<i64: 4, 6>,
        strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>}
        : (tensor<1x12x2x3xf32>) -> tensor<1x3x4x6xf32>
    ```
    """

    name = "braid.fold"

    input = operand_def(TensorType)
    block = attr_def(DenseArrayBase[IntegerType])
    image = attr_def(DenseArrayBase[IntegerType])
    strides = attr_def(DenseArrayBase[IntegerType])
    dilations = attr_def(DenseArrayBase[IntegerType])
    pad_low = attr_def(DenseArrayBase[IntegerType])
    output = result_def(TensorType)

    @staticmethod
    def get(
        input: SSAValue | Operation,
        block: Sequence[int],
        image: Sequence[int],
        *,
        strides: Sequence[int],
        dilations: Sequence[int],
        pad_low: Sequence[int],
    ) -> "FoldOp":
        """Build the op from plain integers."""
        return FoldOp.on(
            input,
            block=integers(block),
            image=integers(image),
            strides=integers(strides),
            dilations=integers(dilations),
            pad_low=integers(pad_low),
        )

    @property
    def dims(self) -> tuple[FoldDim, ...]:
        """Return the spatial dims."""
        lists = (self.image, self.strides, self.dilations, self.pad_low)
        numbers = (each.get_values() for each in lists)
        counts = shape_of(self.input)[2:]
        return tuple(map(FoldDim, self.block.get_values(), counts, *numbers))

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the type of the result; raise VerifyException as the class says."""
        shape, type = extents_of(self.input), element_type_of(self.input)
        require_summable(type)
        rank = len(shape) - 2
        require(rank >= 1, f"the operand has rank {len(shape)}, expected at least 3")
        for name in ("block", "image", "strides", "dilations", "pad_low"):
            values: tuple[int, ...] = getattr(self, name).get_values()
            least = 0 if name == "pad_low" else 1
            require(len(values) == rank, f"{name} has {len(values)} entries, expected {rank}")
            require(
                all(least <= value <= MOST_ELEMENTS for value in values),
                f"{name} is {list(values)}, expected at least {least}, at most {MOST_ELEMENTS}",
            )
        is_known = all(isinstance(extent, int) and extent >= 0 for extent in shape[2:])
        require(is_known, f"the operand has shape {list(shape)}, with open spatial dims")
        require_table(math.prod(dim.padded for dim in self.dims), "places that blocks reach")
        elements = math.prod(self.block.get_values())
        require_table(elements * math.prod(shape_of(self.input)[2:]) * rank, "places of the blocks")
        channels = shape[1] // elements
        require(
            may_equal(channels * elements, shape[1]),
            f"there are {shape[1]} channels, expected a multiple of {elements}",
        )
        return [tensor_type(type, [shape[0], channels, *self.image.get_values()])]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Add one element of each block, block after block."""
        (x,), dims = operands, self.dims
        columns = self._columns(wide(x))
        sums = np.zeros((*columns.shape[:2], *(dim.padded for dim in dims)), columns.dtype)
        for taps in np.ndindex(*(dim.size for dim in dims)):
            places = tuple(
                slice(d.dilation * tap, d.dilation * tap + d.stride * d.count, d.stride)
                for d, tap in zip(dims, taps, strict=True)
            )
            sums[(..., *places)] += columns[(slice(None), slice(None), *taps)]
        inner = tuple(slice(dim.low, dim.low + dim.extent) for dim in dims)
        return (sums[(..., *inner)].astype(x.dtype),)

    def _columns(self, x: Array) -> Array:
        """View the operand as `[N, C, block…, count…]`."""
        block = self.block.get_values()
        channels = x.shape[1] // math.prod(block)
        return x.reshape(x.shape[0], channels, *block, *x.shape[2:])

    def decompose(self, builder: Builder) -> Sequence[SSAValue]:
        """Scatter all elements to their places."""
        shape, dims, type = extents_of(self.input), self.dims, element_type_of(self.input)
        rank, elements = len(dims), math.prod(self.block.get_values())
        batch, channels = shape[0], shape[1] // elements
        indices = np.stack(list(self._places()), -1)

        def inserted(op: Operation) -> SSAValue:
            return builder.insert(op).results[0]

        flat = [elements, math.prod(shape_of(self.input)[2:])]
        columns = inserted(ReshapeOp.get(self.input, [batch, channels, *flat]))
        updates = inserted(TransposeOp.get(columns, [2, 3, 0, 1]))
        zero = inserted(ConstantOp.of(np.zeros([1] * (rank + 2), to_numpy(type))))
        padded = [dim.padded for dim in dims]
        empty = inserted(BroadcastOp.get(zero, [*padded, batch, channels]))
        places = inserted(ConstantOp.of(indices.reshape(*flat, rank)))
        total = inserted(ScatterNdOp.get(empty, places, updates, "add"))
        offsets = [*(dim.low for dim in dims), 0, 0]
        sizes = [*(dim.extent for dim in dims), batch, channels]
        inner = inserted(slice_of(total, offsets, sizes))
        return [inserted(TransposeOp.get(inner, [rank, rank + 1, *range(rank)]))]

    def _places(self) -> Iterator[Array]:
        """Yield for each dim the padded places of all elements, `[block…, count…]`."""
        dims = self.dims
        shape = [*(dim.size for dim in dims), *(dim.count for dim in dims)]
        grid = np.indices(shape, sparse=True)
        for number, dim in enumerate(dims):
            places = grid[number] * dim.dilation + grid[len(dims) + number] * dim.stride
            yield np.broadcast_to(places, shape)

    def tile(self, box: Box) -> Tile | None:
        """Return the slice of whole images, None if the box cuts one."""
        if tuple(box[2:]) != tuple((0, extent) for extent in self.image.get_values()):
            return None
        elements = math.prod(self.block.get_values())
        begin, size = box[1]
        counts = [(0, extent) for extent in shape_of(self.input)[2:]]
        return Tile(((box[0], (begin * elements, size * elements), *counts),))
