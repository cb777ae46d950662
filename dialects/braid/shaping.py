"""Ops that give the elements other places: transpose, broadcast, reshape."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerType, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.dialects.braid.base import (
    AnyTensor,
    StructuredOp,
    TensorOp,
    element_type_of,
    integers,
    require,
    set_result_types,
    shape_of,
)
from braid.dialects.braid.boxes import Box, reshaped
from braid.dialects.braid.elementwise import repeated_map
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.moved import moved
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.structure import Structure
from braid.dialects.braid.tiling import Tile


@irdl_op_definition
class TransposeOp(StructuredOp):
    """Permutes dims: dim i of the result is dim `permutation[i]` of the operand.

    Operand: any shape. Result: extents `input[permutation[i]]`, the same element type.
    Fails verification unless `permutation` names every dim once.

    ```mlir
    %y = braid.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    ```
    """

    name = "braid.transpose"

    input = operand_def(TensorType)
    permutation = attr_def(DenseArrayBase[IntegerType])
    output = result_def(TensorType)

    @staticmethod
    def get(input: SSAValue | Operation, permutation: Sequence[int]) -> "TransposeOp":
        """Builds a transpose from plain integers."""
        return TransposeOp.on(input, permutation=integers(permutation))

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """See the class."""
        shape, permutation = shape_of(self.input), self.permutation.get_values()
        require(
            sorted(permutation) == list(range(len(shape))),
            f"permutation is {permutation}, expected each of 0 to {len(shape) - 1} once",
        )
        return [TensorType(element_type_of(self.input), [shape[p] for p in permutation])]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """numpy's transpose."""
        return (operands[0].transpose(self.permutation.get_values()),)

    def structure(self) -> Structure:
        """One stage that reads through the inverse permutation."""
        inverse = np.argsort(self.permutation.get_values())
        dims = tuple(AffineExpr.dimension(int(i)) for i in inverse)
        return moved(self, AffineMap(len(dims), 0, dims))


class DeclaredShapeOp(TensorOp):
    """Base of the ops whose result has the shape that they were built with."""

    input = operand_def(TensorType)
    output = result_def(TensorType)

    @classmethod
    def get(cls, input: SSAValue | Operation, shape: Sequence[int]) -> Self:
        """Builds the op with a result of `shape`."""
        value = SSAValue.get(input)
        op = cls.create(operands=[value])
        set_result_types(op, [TensorType(element_type_of(value), shape)])
        return op


@irdl_op_definition
class BroadcastOp(DeclaredShapeOp, StructuredOp):
    """Repeats dims of size 1 until the result has the declared shape; the rank stays.

    Fails verification where an extent other than 1 differs from that of the result.

    ```mlir
    %y = braid.broadcast %x : (tensor<1x3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "braid.broadcast"

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """The declared shape, which must fit the operand."""
        source, target = shape_of(self.input), self.result_type().get_shape()
        require(
            len(source) == len(target)
            and all(
                s in (1, DYNAMIC, t) or t == DYNAMIC for s, t in zip(source, target, strict=True)
            ),
            f"shape {list(source)} cannot be repeated to {list(target)}",
        )
        return [TensorType(element_type_of(self.input), target)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """numpy's broadcast."""
        extents = zip(operands[0].shape, self.result_type().get_shape(), strict=True)
        shape = [actual if declared == DYNAMIC else declared for actual, declared in extents]
        return (np.broadcast_to(operands[0], shape),)

    def structure(self) -> Structure:
        """One stage; repeated dims are read at 0."""
        return moved(self, repeated_map(shape_of(self.input), self.result_type().get_shape()))


@irdl_op_definition
class ReshapeOp(DeclaredShapeOp):
    """The same elements in row-major order under another shape.

    At most one dim of the result may be open.
    Fails verification where more are, or where the numbers of elements differ.

    ```mlir
    %y = braid.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
    ```
    """

    name = "braid.reshape"

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """The declared shape, which must hold as many elements."""
        source, target = shape_of(self.input), self.result_type().get_shape()
        open_dims = target.count(DYNAMIC)
        require(open_dims <= 1, f"the result has {open_dims} open dims, expected at most one")
        if DYNAMIC not in (*source, *target):
            before, after = int(np.prod(source)), int(np.prod(target))
            require(before == after, f"{before} elements cannot take shape {list(target)}")
        return [TensorType(element_type_of(self.input), target)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """numpy's reshape."""
        shape = self.result_type().get_shape()
        return (operands[0].reshape([-1 if extent == DYNAMIC else extent for extent in shape]),)

    def tile(self, box: Box) -> Tile | None:
        """The same elements; None where these are not a box of the operand."""
        needed = reshaped(box, shape_of(self.output), shape_of(self.input))
        return None if needed is None else Tile((needed,))
