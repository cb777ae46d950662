"""Writing at positions that other tensors give: scatter_elements, scatter_nd."""

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, IntegerType, StringAttr, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.dialects.braid.base import (
    AnyTensor,
    TensorOp,
    element_type_of,
    extents_of,
    fits,
    integer,
    require,
    require_computed,
    require_dim,
    require_one_of,
    require_summable,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.boxes import Box, whole
from braid.dialects.braid.indexing import (
    element_index,
    require_addressed,
    require_elements_fit,
    require_index_type,
    tuple_index,
)
from braid.dialects.braid.numpy_functions import by_order, from_order
from braid.dialects.braid.reduction import UFUNCS
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.tiling import Tile
from braid.support.sizes.expression import Extent

REDUCTIONS = ("none", "add", "mul", "maximum", "minimum")
"""The ways to combine an update with the present element: `none` replaces it."""


class ScatterOp(TensorOp):
    """Base of the ops whose result is `data` with `updates` combined in at `indices`.

    If several updates address one element and `reduction` is `none`, it is undefined which one is
    kept.
    """

    data = operand_def(TensorType)
    indices = operand_def(TensorType)
    updates = operand_def(TensorType)
    reduction = attr_def(StringAttr)
    output = result_def(TensorType)

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the type of the data."""
        require_one_of("reduction", self.reduction.data, REDUCTIONS)
        require_index_type(self.indices)
        if self.reduction.data != "none":
            require_computed(element_type_of(self.data))
        if self.reduction.data == "add":
            require_summable(element_type_of(self.data))
        element_type, other = element_type_of(self.data), element_type_of(self.updates)
        message = "the updates have element type {}, expected {}"
        require(other == element_type, message, other, element_type)
        return [tensor_type(element_type, extents_of(self.data))]

    def require_updates(self, expected: Sequence[Extent]) -> None:
        """Raise VerifyException unless the updates have this shape."""
        actual = extents_of(self.updates)
        require(
            fits(actual, expected),
            f"the updates have shape {list(actual)}, expected {list(expected)}",
        )

    def combined(self, data: Array, index: tuple[Array, ...], updates: Array) -> Array:
        """Return a copy of `data` with the updates at `index`."""
        result = data.copy()
        if self.reduction.data == "none":
            result[index] = updates
        else:
            kind = self.reduction.data
            keys = by_order(kind, result)
            UFUNCS[kind].at(keys, index, by_order(kind, updates))
            result = from_order(keys, result.dtype)
        return result


@irdl_op_definition
class ScatterElementsOp(ScatterOp):
    """`data` with `updates[i]` at index `indices[i]` along `dim`, with the other coordinates of i.

    Operands: data, indices (integers in [-D, D), negative ones count from the end) and updates,
    all of one rank; indices and updates have one shape, no larger than data outside `dim`.
    `reduction` is `none`, `add`, `mul`, `maximum` or `minimum`. Result: the type of the data.
    Fails verification for other shapes or element types, or another `reduction`.

    ```mlir
    %y = braid.scatter_elements %x, %i, %u {dim = 1 : i64, reduction = "add"}
        : (tensor<3x4xf32>, tensor<3x2xi64>, tensor<3x2xf32>) -> tensor<3x4xf32>
    ```
    """

    name = "braid.scatter_elements"

    dim = attr_def(IntegerAttr[IntegerType])

    @staticmethod
    def get(
        data: SSAValue | Operation,
        indices: SSAValue | Operation,
        updates: SSAValue | Operation,
        dim: int,
        reduction: str = "none",
    ) -> "ScatterElementsOp":
        """Build a scatter of elements along `dim`."""
        return ScatterElementsOp.on(
            data, indices, updates, dim=integer(dim), reduction=StringAttr(reduction)
        )

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """See the class."""
        data, indices, dim = extents_of(self.data), extents_of(self.indices), self.dim.value.data
        require_dim(dim, len(data))
        require_elements_fit(data, indices, dim)
        require_addressed(data[dim : dim + 1], indices)
        self.require_updates(indices)
        return super().infer_result_types()

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Index arrays of all dims."""
        data, indices, updates = operands
        return (self.combined(data, element_index(data, indices, self.dim.value.data), updates),)

    def tile(self, box: Box) -> Tile | None:
        """Return the same slice of all operands, None where elements move along a dim that is cut.

        All elements must be written along such a dim.
        """
        shape, indices = shape_of(self.data), shape_of(self.indices)
        cut = [dim for dim, part in enumerate(box) if part != (0, shape[dim])]
        if any(dim == self.dim.value.data or indices[dim] != shape[dim] for dim in cut):
            return None
        part = tuple(box[dim] if dim in cut else (0, n) for dim, n in enumerate(indices))
        return Tile((box, part, part))


@irdl_op_definition
class ScatterNdOp(ScatterOp):
    """`data` with slices of `updates` at the index tuples in the last dim of `indices`.

    Operands: data `[D…, after…]`, indices `[at…, r]` with r = number of D… (integers, negative
    ones count from the end), updates `[at…, after…]`.
    `reduction` is `none`, `add`, `mul`, `maximum` or `minimum`. Result: the type of the data.
    Fails verification for other shapes or element types, or another `reduction`.

    ```mlir
    %y = braid.scatter_nd %x, %i, %u {reduction = "none"}
        : (tensor<3x4xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<3x4xf32>
    ```
    """

    name = "braid.scatter_nd"

    @staticmethod
    def get(
        data: SSAValue | Operation,
        indices: SSAValue | Operation,
        updates: SSAValue | Operation,
        reduction: str = "none",
    ) -> "ScatterNdOp":
        """Build a scatter at index tuples."""
        return ScatterNdOp.on(data, indices, updates, reduction=StringAttr(reduction))

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """See the class."""
        data, indices = extents_of(self.data), extents_of(self.indices)
        require(len(indices) >= 1, "the indices have rank 0, expected at least 1")
        length, most = shape_of(self.indices)[-1], len(data)
        require(1 <= length <= most, f"index tuples have {length} entries, expected 1 to {most}")
        updates = (*indices[:-1], *data[length:])
        require_addressed(data[:length], updates)
        self.require_updates(updates)
        return super().infer_result_types()

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Index arrays of the tuples."""
        data, indices, updates = operands
        return (self.combined(data, tuple_index(data, indices, 0), updates),)

    def tile(self, box: Box) -> Tile | None:
        """Return the slices, None where the box cuts a dim that tuples address.

        Data and updates are cut within the slices that are written.
        """
        indices = whole(shape_of(self.indices))
        addressed = indices[-1][1]
        if box[:addressed] != whole(shape_of(self.data))[:addressed]:
            return None
        return Tile((box, indices, (*indices[:-1], *box[addressed:])))
