"""Ops that move elements without computing: transpose, broadcast, reshape, slice, pad, concat."""

from collections.abc import Callable, Mapping, Sequence
from typing import Self

import numpy as np
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import (
    attr_def,
    irdl_op_definition,
    operand_def,
    result_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.base import (
    AnyTensor,
    StructuredOp,
    TensorOp,
    element_type_of,
    extents_of,
    fits,
    integers,
    require,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.boxes import Box, Range, reshaped, sizes
from braid.dialects.braid.dtypes import number_attribute
from braid.dialects.braid.elementwise import repeated_map
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scalar import Argument
from braid.dialects.braid.size_facts import may_equal, total
from braid.dialects.braid.slicing import padded_extents, require_padding_value, require_sliced
from braid.dialects.braid.structure import (
    Access,
    OperandSource,
    Padding,
    Stage,
    Structure,
    parallel,
)
from braid.dialects.braid.tiling import Reads, Tile
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of


def moved(op: TensorOp, map: AffineMap, padding: Padding | None = None) -> Structure:
    """Return the structure of an op whose result at i is its operand at `map`(i)."""
    result = op.result_type()
    rank, shape = result.get_num_dims(), result.get_shape()
    read = Access(OperandSource(0), map, padding)
    stage = Stage(
        parallel(rank),
        shape,
        (read,),
        AffineMap.identity(rank),
        shape,
        result.element_type,
        Argument(0),
    )
    return Structure((stage,), (0,))


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
        """Build a transpose from plain integers."""
        return TransposeOp.on(input, permutation=integers(permutation))

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the type of the result; raise VerifyException as the class says."""
        shape, permutation = extents_of(self.input), self.permutation.get_values()
        require(
            sorted(permutation) == list(range(len(shape))),
            f"permutation is {permutation}, expected each of 0 to {len(shape) - 1} once",
        )
        return [tensor_type(element_type_of(self.input), [shape[p] for p in permutation])]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the result of numpy's transpose."""
        return (operands[0].transpose(self.permutation.get_values()),)

    def structure(self) -> Structure:
        """Return one stage that reads through the inverse permutation."""
        inverse = np.argsort(self.permutation.get_values())
        dims = tuple(AffineExpr.dimension(int(i)) for i in inverse)
        return moved(self, AffineMap(len(dims), 0, dims))


class DeclaredShapeOp(TensorOp):
    """Base of the ops whose result has the shape that they were built with."""

    input = operand_def(TensorType)
    output = result_def(TensorType)

    @classmethod
    def get(cls, input: SSAValue | Operation, shape: Sequence[Extent]) -> Self:
        """Build the op with a result of `shape`."""
        value = SSAValue.get(input)
        return cls.declared(tensor_type(element_type_of(value), shape), value)


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
        """Return the declared shape, which must fit the operand."""
        source, target = extents_of(self.input), extents_of(self.output)
        require(
            len(source) == len(target)
            and all(s == 1 or may_equal(s, t) for s, t in zip(source, target, strict=True)),
            f"shape {list(source)} cannot be repeated to {list(target)}",
        )
        return [tensor_type(element_type_of(self.input), target)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the result of numpy's broadcast."""
        extents = zip(operands[0].shape, self.result_type().get_shape(), strict=True)
        shape = [actual if declared == DYNAMIC else declared for actual, declared in extents]
        return (np.broadcast_to(operands[0], shape),)

    def structure(self) -> Structure:
        """Return one stage; repeated dims are read at 0."""
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
        """Return the declared shape, which must hold as many elements."""
        source, target = extents_of(self.input), extents_of(self.output)
        open_dims = target.count(DYNAMIC)  # those whose size is not known
        require(open_dims <= 1, f"the result has {open_dims} open dims, expected at most one")
        if DYNAMIC not in (*source, *target):
            before, after = product_of(source), product_of(target)
            require(may_equal(before, after), f"{before} elements cannot take shape {list(target)}")
        return [tensor_type(element_type_of(self.input), target)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the result of numpy's reshape."""
        shape = self.result_type().get_shape()
        return (operands[0].reshape([-1 if extent == DYNAMIC else extent for extent in shape]),)

    def tile(self, box: Box) -> Tile | None:
        """Return the slice with the same elements; None where they are not a box of the operand."""
        needed = reshaped(box, shape_of(self.output), shape_of(self.input))
        return None if needed is None else Tile((needed,))


def reshape_dim_by_dim(
    value: SSAValue, shape: Sequence[Extent], emit: Callable[[ReshapeOp], SSAValue]
) -> SSAValue:
    """Return `value` with the extents of `shape`; each run checks that they equal its own.

    `emit` inserts each reshape. One dim is reshaped at a time, since a run counts elements. Raises
    VerifyException if an extent cannot equal another one.
    """
    for dim, wanted in enumerate(shape):
        own = list(extents_of(value))
        if own[dim] != wanted:
            own[dim] = wanted
            value = emit(ReshapeOp.get(value, own))
    return value


@irdl_op_definition
class SliceOp(StructuredOp):
    """Elements `offsets + i · strides` for i below `sizes`, per dim; strides may be negative.

    Operand: any shape; the lists have one entry per dim. Result: extents `sizes`.
    Fails verification for lists of the wrong length or elements outside of the operand.

    ```mlir
    %y = braid.slice %x {offsets = array<i64: 0, 1>, sizes = array<i64: 2, 2>,
        strides = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
    ```
    """

    name = "braid.slice"

    input = operand_def(TensorType)
    offsets = attr_def(DenseArrayBase[IntegerType])
    sizes = attr_def(DenseArrayBase[IntegerType])
    strides = attr_def(DenseArrayBase[IntegerType])
    output = result_def(TensorType)

    @staticmethod
    def get(
        input: SSAValue | Operation,
        offsets: Sequence[int],
        sizes: Sequence[int],
        strides: Sequence[int] | None = None,
    ) -> "SliceOp":
        """Build a slice from plain integers."""
        strides = strides if strides is not None else [1] * len(offsets)
        return SliceOp.on(
            input, offsets=integers(offsets), sizes=integers(sizes), strides=integers(strides)
        )

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the declared sizes; every element must exist in the operand."""
        sizes = self.sizes.get_values()
        require_sliced(
            extents_of(self.input), self.offsets.get_values(), sizes, self.strides.get_values()
        )
        return [tensor_type(element_type_of(self.input), sizes)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Index arrays, so that negative strides need no special case."""
        ranges = [
            low + step * np.arange(size)
            for low, size, step in zip(
                self.offsets.get_values(),
                self.sizes.get_values(),
                self.strides.get_values(),
                strict=True,
            )
        ]
        return (operands[0][np.ix_(*ranges)] if ranges else operands[0],)

    def structure(self) -> Structure:
        """Return one stage that reads at offset + i · stride."""
        dims = tuple(
            AffineExpr.dimension(i) * step + low
            for i, (low, step) in enumerate(
                zip(self.offsets.get_values(), self.strides.get_values(), strict=True)
            )
        )
        return moved(self, AffineMap(len(dims), 0, dims))

    def tile(self, box: Box) -> Tile:
        """Return the slice from the first to the last element that is read.

        The op then begins at one end of it.
        """
        needed: list[Range] = []
        offsets: list[int] = []
        lows, steps = self.offsets.get_values(), self.strides.get_values()
        for (start, size), low, step in zip(box, lows, steps, strict=True):
            first, last = low + start * step, low + (start + size - 1) * step
            begin = min(first, last)
            needed.append((begin, max(first, last) - begin + 1))
            offsets.append(first - begin)
        attributes = {"offsets": integers(offsets), "sizes": integers(sizes(box))}
        return Tile((tuple(needed),), attributes)


@irdl_op_definition
class PadOp(StructuredOp):
    """Adds `low` and `high` elements equal to `value` around every dim.

    Operand: any shape; the lists have one entry per dim. Result: extents `low + input + high`.
    Fails verification for lists of the wrong length, negative entries, or a value of another
    type than the elements.

    ```mlir
    %y = braid.pad %x {low = array<i64: 0, 1>, high = array<i64: 0, 1>, value = 0.0 : f32}
        : (tensor<2x3xf32>) -> tensor<2x5xf32>
    ```
    """

    name = "braid.pad"

    input = operand_def(TensorType)
    low = attr_def(DenseArrayBase[IntegerType])
    high = attr_def(DenseArrayBase[IntegerType])
    value = attr_def(FloatAttr[AnyFloat] | IntegerAttr[IntegerType])
    output = result_def(TensorType)

    @staticmethod
    def get(
        input: SSAValue | Operation, low: Sequence[int], high: Sequence[int], value: float
    ) -> "PadOp":
        """Build a padding from plain numbers."""
        element_type = element_type_of(SSAValue.get(input))
        number = number_attribute(value, element_type)
        return PadOp.on(input, low=integers(low), high=integers(high), value=number)

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the type of the result; raise VerifyException as the class says."""
        low, high = self.low.get_values(), self.high.get_values()
        extents = padded_extents(extents_of(self.input), low, high)
        require_padding_value(self.value, self.input)
        return [tensor_type(element_type_of(self.input), extents)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the result of numpy's pad."""
        widths = list(zip(self.low.get_values(), self.high.get_values(), strict=True))
        return (np.pad(operands[0], widths, constant_values=self.value.value.data),)

    def structure(self) -> Structure:
        """Return one stage that reads the padded operand."""
        padding = Padding(self.low.get_values(), self.high.get_values(), self.value.value.data)
        return moved(self, AffineMap.identity(self.result_type().get_num_dims()), padding)

    def tile_attributes(self, box: Box, reads: Reads) -> Mapping[str, Attribute]:
        """Return the padding that is left."""
        pads = reads.pads[0]
        return {"low": integers([a for a, _ in pads]), "high": integers([b for _, b in pads])}


@irdl_op_definition
class ConcatOp(TensorOp):
    """Joins tensors along dim `dim`; all other extents are equal.

    Operands: one or more, of one rank and element type. Result: the sum of the extents at `dim`.
    Fails verification for no operands, a dim that does not exist, or other ranks or extents.

    ```mlir
    %y = braid.concat %a, %b {dim = 0 : i64} : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<3x3xf32>
    ```
    """

    name = "braid.concat"

    inputs = var_operand_def(TensorType)
    dim = attr_def(IntegerAttr[IntegerType])
    output = result_def(TensorType)

    @staticmethod
    def get(inputs: Sequence[SSAValue | Operation], dim: int) -> "ConcatOp":
        """Build a concatenation."""
        return ConcatOp.on(*inputs, dim=IntegerAttr(dim, i64))

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the type of the result; raise VerifyException as the class says."""
        shapes, dim = [list(extents_of(value)) for value in self.inputs], self.dim.value.data
        require(bool(shapes), "expected at least one operand")
        require(0 <= dim < len(shapes[0]), f"dim is {dim}, expected 0 to {len(shapes[0]) - 1}")
        ranks = {len(shape) for shape in shapes}
        require(len(ranks) == 1, f"operands have ranks {sorted(ranks)}; reshape them")
        types = {element_type_of(value) for value in self.inputs}
        if len(types) != 1:
            raise VerifyException(f"operands have element types {sorted(map(str, types))}")
        extents = [shape[dim] for shape in shapes]
        first = shapes[0]
        for shape in shapes:
            shape[dim] = first[dim]
            require(fits(shape, first), f"shapes {shape} and {first} differ outside dim {dim}")
        first[dim] = total(extents)
        return [tensor_type(types.pop(), first)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the result of numpy's concatenate."""
        return (np.concatenate(operands, axis=self.dim.value.data),)

    def tile(self, box: Box) -> Tile:
        """Return of every operand the slice that is in the box."""
        dim, begin = self.dim.value.data, 0
        start, size = box[dim]
        needed: list[Box | None] = []
        for operand in self.inputs:
            end = begin + shape_of(operand)[dim]
            first, last = max(begin, start), min(end, start + size)
            part = (first - begin, last - first)
            needed.append((*box[:dim], part, *box[dim + 1 :]) if first < last else None)
            begin = end
        return Tile(tuple(needed))
