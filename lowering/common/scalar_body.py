"""The scalar body of a stage as operations in the body of a `linalg.generic`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IndexType, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.scalar import (
    Apply,
    Argument,
    Literal,
    Load,
    Position,
    Scalar,
    SizeNumber,
)
from braid.lowering.common.element_types import compute_type, constant, convert, reinterpret, widen
from braid.lowering.common.scalar_ops import emit_operation
from braid.lowering.common.tensor_loops import index_constant
from braid.support.errors import UnsupportedError
from braid.support.sizes.expression import Extent


@dataclass(frozen=True)
class BodyEmitter:
    """Emits bodies of one op.

    `arguments` are the values read, in the types upstream computes in, and `argument_types`
    their element types in braid; `operands` are the op's operands as upstream's tensors, and
    `operand_types` their types in braid; `extents` are those of the dims of the iteration space.
    """

    builder: Builder
    arguments: Sequence[SSAValue]
    argument_types: Sequence[Attribute]
    operands: Sequence[SSAValue]
    operand_types: Sequence[AnyTensor]
    extents: Sequence[int]

    def emit(self, body: Scalar) -> tuple[SSAValue, Attribute]:
        """Return the value of `body` and its element type in braid."""
        match body:
            case Argument(index):
                return self.arguments[index], self.argument_types[index]
            case Literal(value, element_type):
                return constant(self.builder, value, compute_type(element_type)), element_type
            case SizeNumber(size, element_type):
                number = self.builder.insert(arith.IndexCastOp(self.size(size), i64)).result
                return convert(self.builder, number, i64, element_type), element_type
            case Position(dim, element_type):
                number = self.builder.insert(arith.IndexCastOp(self.index_of(dim), i64)).result
                return convert(self.builder, number, i64, element_type), element_type
            case Load(operand, indices, element_type):
                return self.load(operand, indices), element_type
            case Apply(operation, arguments, element_type):
                return self._apply(operation, arguments, element_type), element_type

    def _apply(
        self, operation: str, arguments: Sequence[Scalar], element_type: Attribute
    ) -> SSAValue:
        values = [self.emit(argument) for argument in arguments]
        last = values[-1]
        if operation == "cast":
            return convert(self.builder, *last, element_type)
        if operation == "bitcast":
            return reinterpret(self.builder, *last, element_type)
        return emit_operation(self.builder, operation, [v for v, _ in values], last[1])

    def size(self, size: Extent) -> SSAValue:
        """Return the value of a size, as an index."""
        if isinstance(size, int):
            return index_constant(self.builder, size)
        raise UnsupportedError(f"size '{size}' has no value here", hint="give the shape")

    def index_of(self, dim: int) -> SSAValue:
        """Return where the iteration is along a dim."""
        return self.builder.insert(linalg.IndexOp(dim)).result

    def load(self, operand: int, indices: Sequence[Scalar]) -> SSAValue:
        """Return the element of an operand, in the type upstream computes in."""
        shape = self.operand_types[operand].get_shape()
        positions = [self._position(i, extent) for i, extent in zip(indices, shape, strict=True)]
        element_type = cast(AnyTensor, self.operands[operand].type).element_type
        load = tensor.ExtractOp(self.operands[operand], positions, element_type)
        return widen(self.builder, self.builder.insert(load).result)

    def _position(self, index: Scalar, extent: int) -> SSAValue:
        """Return the index into a dim of `extent` elements; a dim of the iteration space may be
        one.
        """
        if isinstance(index, Position) and DYNAMIC < self.extents[index.dim] <= extent:
            return self.index_of(index.dim)
        return counted_position(self.builder, *self.emit(index), extent)


def counted_position(
    builder: Builder, index: SSAValue, element_type: Attribute, extent: int
) -> SSAValue:
    """Return `index`, from the end if it is negative, brought inside a dim of `extent` elements."""
    insert = builder.insert
    wide = convert(builder, index, element_type, i64)
    zero, length = constant(builder, 0, i64), constant(builder, extent, i64)
    is_negative = insert(arith.CmpiOp(wide, zero, "slt")).result
    from_end = insert(arith.AddiOp(wide, length)).result
    counted = insert(arith.SelectOp(is_negative, from_end, wide)).result
    last = constant(builder, extent - 1, i64)
    # In this order LLVM branches less: the maximum with zero is a mask of the sign.
    inside = insert(arith.MinSIOp(insert(arith.MaxSIOp(counted, zero)).result, last)).result
    return insert(arith.IndexCastOp(inside, IndexType())).result
