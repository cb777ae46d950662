"""Reading at positions that other tensors give: gather, gather_elements, gather_nd."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, IntegerType, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.dialects.braid.base import (
    AnyTensor,
    IndirectOp,
    element_type_of,
    extents_of,
    fits,
    integer,
    require,
    require_dim,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.boxes import Box, whole
from braid.dialects.braid.dtypes import i1, i64
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scalar import Argument, Load, Position, Scalar
from braid.dialects.braid.size_facts import may_be_at_most
from braid.dialects.braid.structure import Access, OperandSource, Stage, Structure, parallel
from braid.dialects.braid.tiling import Tile
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import minimum, product_of


def require_index_type(indices: SSAValue) -> None:
    """Raise VerifyException unless the tensor's elements are integers."""
    element_type = element_type_of(indices)
    require(
        isinstance(element_type, IntegerType) and element_type != i1,
        "the indices have element type {}, expected an integer type",
        element_type_of(indices),
    )


def loading_stage(
    result: AnyTensor, reads: Sequence[Sequence[AffineExpr]], indices: Sequence[Scalar]
) -> Structure:
    """Return one stage over the result's dims that loads from operand 0 at `indices`.

    `reads` are the indices into operand 1 at which the arguments of the body are read.
    """
    shape, rank, element_type = result.get_shape(), result.get_num_dims(), result.element_type
    accesses = tuple(Access(OperandSource(1), AffineMap(rank, 0, tuple(index))) for index in reads)
    body = Load(0, tuple(indices), element_type)
    identity = AffineMap.identity(rank)
    stage = Stage(parallel(rank), shape, accesses, identity, shape, element_type, body)
    return Structure((stage,), (0,))


class GatherBase(IndirectOp):
    """Base of the ops that read `data` at `indices`."""

    data = operand_def(TensorType)
    indices = operand_def(TensorType)
    output = result_def(TensorType)


@irdl_op_definition
class GatherOp(GatherBase):
    """Slices of `data` along `dim`, one for every element of `indices`.

    Operands: data `[before…, D, after…]`, indices of any shape, integers in [-D, D); negative
    ones count from the end. Result: `[before…, indices' dims…, after…]`.
    Fails verification for a dim that does not exist or indices that are not integers.

    ```mlir
    %y = braid.gather %table, %ids {dim = 0 : i64}
        : (tensor<30522x768xf32>, tensor<1x128xi64>) -> tensor<1x128x768xf32>
    ```
    """

    name = "braid.gather"

    dim = attr_def(IntegerAttr[IntegerType])

    @staticmethod
    def get(data: SSAValue | Operation, indices: SSAValue | Operation, dim: int) -> "GatherOp":
        """Build a gather along `dim`."""
        return GatherOp.on(data, indices, dim=integer(dim))

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the type of the result; raise VerifyException as the class says."""
        data, dim = extents_of(self.data), self.dim.value.data
        require_index_type(self.indices)
        require_dim(dim, len(data))
        shape = (*data[:dim], *extents_of(self.indices), *data[dim + 1 :])
        require_addressed(data[dim : dim + 1], shape)
        return [tensor_type(element_type_of(self.data), shape)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the result of numpy's take."""
        (data, indices), dim = operands, self.dim.value.data
        return (np.take(data, nearest_index(indices, data.shape[dim]), axis=dim),)

    def structure(self) -> Structure:
        """Return one stage over the result's dims."""
        dim, count = self.dim.value.data, len(shape_of(self.indices))
        rank = self.result_type().get_num_dims()
        d = [AffineExpr.dimension(i) for i in range(rank)]
        positions: list[Scalar] = [Position(i, i64) for i in range(rank)]
        index = [*positions[:dim], Argument(0), *positions[dim + count :]]
        return loading_stage(self.result_type(), [d[dim : dim + count]], index)

    def tile(self, box: Box) -> Tile:
        """Return the slices that are read; the dim that is gathered along is read whole."""
        dim, rank = self.dim.value.data, len(shape_of(self.indices))
        data = (*box[:dim], (0, shape_of(self.data)[dim]), *box[dim + rank :])
        return Tile((data, box[dim : dim + rank]))


@irdl_op_definition
class GatherElementsOp(GatherBase):
    """Element `indices[i]` along `dim` of `data`, with the other coordinates of i.

    Operands: data, and indices of the same rank whose other extents are no larger; integers in
    [-D, D), negative ones count from the end. Result: the indices' shape.
    Fails verification for other ranks or extents, or indices that are not integers.

    ```mlir
    %y = braid.gather_elements %x, %i {dim = 1 : i64}
        : (tensor<3x4xf32>, tensor<3x2xi64>) -> tensor<3x2xf32>
    ```
    """

    name = "braid.gather_elements"

    dim = attr_def(IntegerAttr[IntegerType])

    @staticmethod
    def get(
        data: SSAValue | Operation, indices: SSAValue | Operation, dim: int
    ) -> "GatherElementsOp":
        """Build a gather of elements along `dim`."""
        return GatherElementsOp.on(data, indices, dim=integer(dim))

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the type of the result; raise VerifyException as the class says."""
        data, indices, dim = extents_of(self.data), extents_of(self.indices), self.dim.value.data
        require_index_type(self.indices)
        require_dim(dim, len(data))
        require_elements_fit(data, indices, dim)
        require_addressed(data[dim : dim + 1], indices)
        return [tensor_type(element_type_of(self.data), indices)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Index arrays of all dims."""
        data, indices = operands
        return (data[element_index(data, indices, self.dim.value.data)],)

    def structure(self) -> Structure:
        """Return one stage over the result's dims."""
        rank, dim = self.result_type().get_num_dims(), self.dim.value.data
        index: list[Scalar] = [Position(i, i64) for i in range(rank)]
        index[dim] = Argument(0)
        d = [AffineExpr.dimension(i) for i in range(rank)]
        return loading_stage(self.result_type(), [d], index)

    def tile(self, box: Box) -> Tile:
        """Return the boxes that are read: the whole gathered dim of the data, the indices' box."""
        shape, dim = shape_of(self.data), self.dim.value.data
        extents = zip(box, shape_of(self.output), shape, strict=True)
        data = [(0, most) if part == (0, extent) else part for part, extent, most in extents]
        data[dim] = (0, shape[dim])
        return Tile((tuple(data), box))


@irdl_op_definition
class GatherNdOp(GatherBase):
    """Slices of `data` at the index tuples in the last dim of `indices`.

    Operands: data `[batch…, D…, after…]`, indices `[batch…, at…, r]` with `batch_dims` batch
    dims and r = number of D…; negative indices count from the end.
    Result: `[batch…, at…, after…]`.
    Fails verification for tuples longer than data has dims, batch dims that differ, an open r,
    or indices that are not integers.

    ```mlir
    %y = braid.gather_nd %x, %i {batch_dims = 0 : i64}
        : (tensor<3x4x5xf32>, tensor<7x2xi64>) -> tensor<7x5xf32>
    ```
    """

    name = "braid.gather_nd"

    batch_dims = attr_def(IntegerAttr[IntegerType])

    @staticmethod
    def get(
        data: SSAValue | Operation, indices: SSAValue | Operation, batch_dims: int = 0
    ) -> "GatherNdOp":
        """Build a gather at index tuples."""
        return GatherNdOp.on(data, indices, batch_dims=integer(batch_dims))

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the type of the result; raise VerifyException as the class says."""
        data, indices = extents_of(self.data), extents_of(self.indices)
        batch = self.batch_dims.value.data
        require_index_type(self.indices)
        require(len(indices) >= 1, "the indices have rank 0, expected at least 1")
        require(
            0 <= batch < len(indices) and fits(data[:batch], indices[:batch]),
            f"{batch} batch dims of shapes {list(data)} and {list(indices)} do not agree",
        )
        length, most = shape_of(self.indices)[-1], len(data) - batch
        require(1 <= length <= most, f"index tuples have {length} entries, expected 1 to {most}")
        shape = (*indices[:-1], *data[batch + length :])
        require_addressed(data[batch : batch + length], shape)
        return [tensor_type(element_type_of(self.data), shape)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Index arrays of the batch dims and of the tuples."""
        data, indices = operands
        return (data[tuple_index(data, indices, self.batch_dims.value.data)],)

    def structure(self) -> Structure:
        """Return one stage over the result's dims."""
        indices, batch = shape_of(self.indices), self.batch_dims.value.data
        outer, rank = len(indices) - 1, self.result_type().get_num_dims()
        d = [AffineExpr.dimension(i) for i in range(outer)]
        reads = [[*d, AffineExpr.constant(entry)] for entry in range(indices[-1])]
        index: list[Scalar] = [Position(i, i64) for i in range(batch)]
        index += [Argument(entry) for entry in range(indices[-1])]
        index += [Position(i, i64) for i in range(outer, rank)]
        return loading_stage(self.result_type(), reads, index)

    def tile(self, box: Box) -> Tile:
        """Return the slices that are read.

        A tile has whole tuples of indices, and all of the dims that they address.
        """
        batch, shape = self.batch_dims.value.data, shape_of(self.indices)
        outer, length = len(shape) - 1, shape[-1]
        addressed = whole(shape_of(self.data))[batch : batch + length]
        return Tile(((*box[:batch], *addressed, *box[outer:]), (*box[:outer], (0, length))))


def require_elements_fit(data: Sequence[Extent], indices: Sequence[Extent], dim: int) -> None:
    """Raise VerifyException unless indices of this shape can address `data` along `dim`."""
    inside = len(data) == len(indices) and all(
        other == dim or may_be_at_most(extent, most)
        for other, (extent, most) in enumerate(zip(indices, data, strict=True))
    )
    require(
        inside,
        f"the indices have shape {list(indices)}, expected at most {list(data)} outside dim {dim}",
    )


def require_addressed(extents: Sequence[Extent], shape: Sequence[Extent]) -> None:
    """Raise VerifyException if a result of `shape` has elements but a dim in `extents` has none.

    Open dims are assumed to have elements: no index is in bounds of an empty dim.
    """
    if 0 in shape:
        return
    least = 1 if DYNAMIC in shape else minimum(1, product_of(shape))
    require(
        all(may_be_at_most(least, extent) for extent in extents),
        f"the indices are along extents {list(extents)}, expected at least one element",
    )


def nearest_index(indices: Array, extent: int) -> Array:
    """Return the indices, clamped to the dim.

    Indices below 0 count from the end of the dim, and stay below 0.
    """
    return np.clip(indices.astype(np.int64), -extent, extent - 1)


def element_index(data: Array, indices: Array, dim: int) -> tuple[Array, ...]:
    """Return numpy's index of the elements of `data` that `indices` addresses along `dim`."""
    grid: list[Array] = list(np.indices(indices.shape, sparse=True))
    grid[dim] = nearest_index(indices, data.shape[dim])
    return tuple(grid)


def tuple_index(data: Array, indices: Array, batch_dims: int) -> tuple[Array, ...]:
    """Return numpy's index of the slices of `data` that the tuples in `indices` address.

    A tuple is a row along the last dim of `indices`.
    """
    outer = indices.shape[:-1]
    grid = cast(Sequence[Array], np.indices(outer, sparse=True))[:batch_dims]
    batches = tuple(np.broadcast_to(g, outer) for g in grid)
    tuples = zip(np.moveaxis(indices, -1, 0), data.shape[batch_dims:], strict=False)
    return (*batches, *(nearest_index(entry, extent) for entry, extent in tuples))


def slab_rank(value: SSAValue) -> int | None:
    """Return the rank of the slabs as which `value` is gathered, None where it is not.

    The table must be indexed along all dims before those of a slab.
    """
    match value.owner:
        case GatherOp() as gather if gather.dim.value.data == 0:
            return len(shape_of(gather.data)) - 1
        case GatherNdOp() as gather if gather.batch_dims.value.data == 0:
            return len(shape_of(gather.data)) - shape_of(gather.indices)[-1]
        case _:
            return None
