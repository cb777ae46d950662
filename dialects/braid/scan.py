"""Cumulative reductions."""

from collections.abc import Sequence

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, IntegerType, StringAttr, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.dialects.braid.base import (
    AnyTensor,
    DecomposableOp,
    element_type_of,
    extents_of,
    integer,
    require_dim,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.boxes import Box
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import i1, to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.movement import PadOp, SliceOp
from braid.dialects.braid.numpy_functions import by_order, from_order, wide
from braid.dialects.braid.reduction import UFUNCS, neutral_of, require_reducible
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.tiling import Tile
from braid.support.errors import UnsupportedError


@irdl_op_definition
class ScanOp(DecomposableOp):
    """Cumulative reduction along `dim`: element i combines elements 0 to i.

    `kind` is a kind of `braid.reduce`. `exclusive` leaves element i itself out (so the
    first is the neutral element); `reverse` counts from the end.
    Fails verification for another `kind` or a dim that does not exist.

    ```mlir
    %y = braid.scan %x {kind = "add", dim = 0 : i64, exclusive = false, reverse = false}
        : (tensor<5xf32>) -> tensor<5xf32>
    ```
    """

    name = "braid.scan"

    input = operand_def(TensorType)
    kind = attr_def(StringAttr)
    dim = attr_def(IntegerAttr[IntegerType])
    exclusive = attr_def(BoolAttr)
    reverse = attr_def(BoolAttr)
    output = result_def(TensorType)

    @staticmethod
    def get(
        input: SSAValue | Operation,
        kind: str,
        dim: int,
        *,
        exclusive: bool = False,
        reverse: bool = False,
    ) -> "ScanOp":
        """Build a cumulative reduction from plain values."""
        return ScanOp.on(
            input,
            kind=StringAttr(kind),
            dim=integer(dim),
            exclusive=IntegerAttr(int(exclusive), i1),
            reverse=IntegerAttr(int(reverse), i1),
        )

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the operand's type."""
        shape, element_type = extents_of(self.input), element_type_of(self.input)
        require_reducible(self.kind.data, element_type)
        require_dim(self.dim.value.data, len(shape))
        return [tensor_type(element_type, shape)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the result of numpy's accumulate; 16-bit floats are summed in 32 bits."""
        x, dim = operands[0], self.dim.value.data
        source = np.flip(wide(x), dim) if self.reverse.value.data else wide(x)
        keys = by_order(self.kind.data, source)
        result = UFUNCS[self.kind.data].accumulate(keys, axis=dim, dtype=keys.dtype)
        result = from_order(result, source.dtype)
        if self.exclusive.value.data and x.shape[dim]:
            first = np.full_like(
                result.take([0], dim), neutral_of(self.kind.data, element_type_of(self.input))
            )
            kept = result.take(range(x.shape[dim] - 1), dim)
            result = np.concatenate([first, kept], axis=dim)
        return ((np.flip(result, dim) if self.reverse.value.data else result).astype(x.dtype),)

    def decompose(self, builder: Builder) -> Sequence[SSAValue]:
        """Insert shifts by 1, 2, 4, … (Hillis and Steele, "Data parallel algorithms", 1986).

        Raises UnsupportedError if the extent of `dim` is open.
        """
        extent = shape_of(self.input)[self.dim.value.data]
        if extent == DYNAMIC:
            raise UnsupportedError(f"{self.name} along dim {self.dim.value.data}, which is open")
        value: SSAValue = self.input
        if self.exclusive.value.data and extent:
            value = self._shifted(builder, value, 1)
        step = 1
        while step < extent:
            shifted = self._shifted(builder, value, step)
            value = builder.insert(elementwise(self.kind.data, shifted, value)).results[0]
            step *= 2
        return [value]

    def tile(self, box: Box) -> Tile | None:
        """Return the slice of all elements along `dim`, None where the box cuts it."""
        dim = self.dim.value.data
        return Tile((box,)) if box[dim] == (0, shape_of(self.input)[dim]) else None

    def _shifted(self, builder: Builder, value: SSAValue, step: int) -> SSAValue:
        """Return `value` moved by `step`, with neutral elements where it has moved away."""
        shape, dim, zeros = shape_of(value), self.dim.value.data, [0] * len(shape_of(value))
        neutral = neutral_of(self.kind.data, element_type_of(self.input))
        if shape[dim] <= step:
            dtype = to_numpy(element_type_of(self.input))
            return builder.insert(ConstantOp.of(np.full(shape, neutral, dtype))).output
        moved, edge, sizes = list(zeros), list(zeros), list(shape)
        edge[dim], sizes[dim] = step, shape[dim] - step
        reverse = bool(self.reverse.value.data)
        moved[dim] = step if reverse else 0
        kept = builder.insert(SliceOp.get(value, moved, sizes))
        low, high = (zeros, edge) if reverse else (edge, zeros)
        return builder.insert(PadOp.get(kept, low, high, neutral)).output
