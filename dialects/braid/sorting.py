"""The largest or smallest elements."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, IntegerType, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.dialects.braid.base import (
    AnyTensor,
    TensorOp,
    element_type_of,
    extents_of,
    integer,
    require,
    require_computed,
    require_dim,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.boxes import Box
from braid.dialects.braid.dtypes import i1, i64
from braid.dialects.braid.numpy_functions import wide
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_facts import may_be_at_most
from braid.dialects.braid.tiling import Tile


@irdl_op_definition
class TopKOp(TensorOp):
    """The `k` largest (or smallest) elements along `dim` in order, and their indices.

    Results: values and i64 indices, both with extent `k` at `dim`. Of equal elements, those with
    the lower index come first. A NaN counts as larger than every number. Fails verification for a
    dim that does not exist or fewer than `k` elements.

    ```mlir
    %v, %i = braid.top_k %x {k = 5 : i64, dim = 1 : i64, largest = true}
        : (tensor<1x1000xf32>) -> (tensor<1x5xf32>, tensor<1x5xi64>)
    ```
    """

    name = "braid.top_k"

    input = operand_def(TensorType)
    k = attr_def(IntegerAttr[IntegerType])
    dim = attr_def(IntegerAttr[IntegerType])
    largest = attr_def(BoolAttr)
    values = result_def(TensorType)
    indices = result_def(TensorType)

    @property
    def count(self) -> int:
        """Return how many elements are selected."""
        return self.k.value.data

    @staticmethod
    def get(input: SSAValue | Operation, k: int, dim: int, *, largest: bool = True) -> "TopKOp":
        """Build the selection from plain values."""
        return TopKOp.on(
            input, k=integer(k), dim=integer(dim), largest=IntegerAttr(int(largest), i1)
        )

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the types of the results; raise VerifyException as the class says."""
        shape, k, dim = list(extents_of(self.input)), self.k.value.data, self.dim.value.data
        require_computed(element_type_of(self.input))
        require_dim(dim, len(shape))
        extent = shape[dim]
        require(
            k >= 0 and may_be_at_most(k, extent),
            f"k is {k}, expected 0 to {extent}, the extent of dim {dim}",
        )
        shape[dim] = k
        return [tensor_type(element_type_of(self.input), shape), tensor_type(i64, shape)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the first `k` of a stable sort; the largest come out last and are turned round.

        Narrow floats are widened: where numpy has their types from elsewhere, it sorts no NaN.
        """
        x, dim, k = operands[0], self.dim.value.data, self.k.value.data
        keys = wide(x)
        if self.largest.value.data:
            backward = np.argsort(np.flip(keys, dim), axis=dim, kind="stable")
            order = x.shape[dim] - 1 - np.flip(backward, dim)
        else:
            order = np.argsort(keys, axis=dim, kind="stable")
        indices = np.take(order, range(k), axis=dim).astype(np.int64)
        return np.take_along_axis(x, indices, axis=dim), indices

    def tile(self, box: Box) -> Tile | None:
        """Return the slice of all elements along `dim`.

        The result is None unless the box has all selected elements.
        """
        dim = self.dim.value.data
        if box[dim] != (0, self.k.value.data):
            return None
        return Tile(((*box[:dim], (0, shape_of(self.input)[dim]), *box[dim + 1 :]),))
