"""Softmax and layer normalization."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import (
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
    f64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.dialects.braid.base import (
    AnyTensor,
    StructuredOp,
    element_type_of,
    extents_of,
    fits,
    integer,
    require,
    require_computed,
    require_dim,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.dtypes import is_float
from braid.dialects.braid.elementwise import repeated_map
from braid.dialects.braid.numpy_functions import wide
from braid.dialects.braid.reduction import reduce_stage
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scalar import Apply, Argument, Literal, Scalar, SizeNumber
from braid.dialects.braid.structure import (
    Access,
    OperandSource,
    Source,
    Stage,
    StageSource,
    Structure,
    parallel,
)
from braid.support.sizes.expression import Size
from braid.support.sizes.operators import product_of


def pointwise_stage(
    shape: Sequence[int],
    reads: Sequence[tuple[Source, Sequence[int]]],
    body: Scalar,
    element_type: Attribute,
) -> Stage:
    """Return a stage over `shape` without reduction.

    Reads are pairs of a source and its shape, whose dims of extent 1 are broadcast.
    """
    accesses = tuple(Access(source, repeated_map(extents, shape)) for source, extents in reads)
    extents, identity = tuple(shape), AffineMap.identity(len(shape))
    return Stage(parallel(len(extents)), extents, accesses, identity, extents, element_type, body)


def require_float(element_type: Attribute) -> None:
    """Raise VerifyException unless this is a floating-point type."""
    require_computed(element_type)
    require(is_float(element_type), "element type is {}, expected a float type", element_type)


@irdl_op_definition
class SoftmaxOp(StructuredOp):
    """exp(x) / sum of exp(x) along `dim`; the maximum is subtracted first.

    Operand and result have the same type, of floats.
    Fails verification for a dim that does not exist, or another element type.

    ```mlir
    %y = braid.softmax %x {dim = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
    """

    name = "braid.softmax"

    input = operand_def(TensorType)
    dim = attr_def(IntegerAttr[IntegerType])
    output = result_def(TensorType)

    @staticmethod
    def get(input: SSAValue | Operation, dim: int) -> "SoftmaxOp":
        """Build a softmax along `dim`."""
        return SoftmaxOp.on(input, dim=integer(dim))

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the operand's type."""
        shape, element_type = extents_of(self.input), element_type_of(self.input)
        require_float(element_type)
        require_dim(self.dim.value.data, len(shape))
        return [tensor_type(element_type, shape)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the softmax by its formula; 16-bit floats are computed in 32 bits."""
        x, dim = wide(operands[0]), self.dim.value.data
        if x.size == 0:
            return (operands[0],)
        powers = np.exp(x - x.max(axis=dim, keepdims=True))
        return ((powers / powers.sum(axis=dim, keepdims=True)).astype(operands[0].dtype),)

    def structure(self) -> Structure:
        """Return stages for the maximum, exp(x - maximum), their sum, and the quotient."""
        shape, t, dims = shape_of(self.input), element_type_of(self.input), [self.dim.value.data]
        maximum = reduce_stage("maximum", OperandSource(0), shape, dims, t)
        row = maximum.result_shape
        difference = Apply("sub", (Argument(0), Argument(1)), t)
        powers = pointwise_stage(
            shape,
            [(OperandSource(0), shape), (StageSource(0), row)],
            Apply("exp", (difference,), t),
            t,
        )
        total = reduce_stage("add", StageSource(1), shape, dims, t)
        quotient = pointwise_stage(
            shape,
            [(StageSource(1), shape), (StageSource(2), row)],
            Apply("div", (Argument(0), Argument(1)), t),
            t,
        )
        return Structure((maximum, powers, total, quotient), (3,))


@irdl_op_definition
class LayerNormOp(StructuredOp):
    """(x - mean) / sqrt(variance + epsilon) · scale + bias, over dims `first_dim` to the last.

    Operands: input of any rank, scale and bias of the same rank, whose dims are those of the
    input or 1. Result: the input's type, of floats. The variance is that of the population.
    Fails verification for a dim that does not exist, open normalized dims, a scale or bias that
    cannot be repeated to the input's shape, or other element types.

    ```mlir
    %y = braid.layer_norm %x, %scale, %bias {first_dim = 1 : i64, epsilon = 1.0e-5 : f64}
        : (tensor<128x768xf32>, tensor<1x768xf32>, tensor<1x768xf32>) -> tensor<128x768xf32>
    ```
    """

    name = "braid.layer_norm"

    input = operand_def(TensorType)
    scale = operand_def(TensorType)
    bias = operand_def(TensorType)
    first_dim = attr_def(IntegerAttr[IntegerType])
    epsilon = attr_def(FloatAttr[Float64Type])
    output = result_def(TensorType)

    @staticmethod
    def get(
        input: SSAValue | Operation,
        scale: SSAValue | Operation,
        bias: SSAValue | Operation,
        *,
        first_dim: int,
        epsilon: float,
    ) -> "LayerNormOp":
        """Build a layer normalization from plain numbers."""
        return LayerNormOp.on(
            input, scale, bias, first_dim=integer(first_dim), epsilon=FloatAttr(epsilon, f64)
        )

    @property
    def dims(self) -> tuple[int, ...]:
        """The normalized dims."""
        return tuple(range(self.first_dim.value.data, len(shape_of(self.input))))

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """See the class."""
        shape, element_type = extents_of(self.input), element_type_of(self.input)
        require_float(element_type)
        require_dim(self.first_dim.value.data, len(shape))
        require(
            all(isinstance(e, Size) or e > 0 for e in (shape[dim] for dim in self.dims)),
            f"the normalized dims have extents {[shape[dim] for dim in self.dims]}, expected "
            "known positive ones",
        )
        for what, value in (("scale", self.scale), ("bias", self.bias)):
            extents = extents_of(value)
            repeated = [1 if e == 1 else s for e, s in zip(extents, shape, strict=False)]
            require(
                fits(extents, repeated) and len(extents) == len(shape),
                f"the {what} has shape {list(extents)}, expected that of the input, "
                f"{list(shape)}, or 1s",
            )
            other = element_type_of(value)
            message = "the {} has element type {}, expected {}"
            require(other == element_type, message, what, other, element_type)
        return [tensor_type(element_type, shape)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the normalized input by the formula; 16-bit floats are computed in 32 bits."""
        x, scale, bias = map(wide, operands)
        centered = x - x.mean(axis=self.dims, keepdims=True)
        variance = np.square(centered).mean(axis=self.dims, keepdims=True)
        deviation = np.sqrt(variance + self.epsilon.value.data)
        return ((centered / deviation * scale + bias).astype(operands[0].dtype),)

    def _share(self, type: Attribute) -> Scalar:
        """Return the weight of one element in a mean."""
        count = product_of(extents_of(self.input)[dim] for dim in self.dims)
        if isinstance(count, int):
            return Literal(1 / count, type)
        return Apply("reciprocal", (SizeNumber(count, type),), type)

    def structure(self) -> Structure:
        """Return stages for the sum, x - mean, the sum of squares, and the scaled result."""
        shape, t = shape_of(self.input), element_type_of(self.input)
        share = self._share(t)
        total = reduce_stage("add", OperandSource(0), shape, self.dims, t)
        mean = Apply("mul", (Argument(1), share), t)
        centered = pointwise_stage(
            shape,
            [(OperandSource(0), shape), (StageSource(0), total.result_shape)],
            Apply("sub", (Argument(0), mean), t),
            t,
        )
        square = Apply("mul", (Argument(0), Argument(0)), t)
        squares = reduce_stage("add", StageSource(1), shape, self.dims, t, square)
        variance = Apply("mul", (Argument(1), share), t)
        epsilon = Literal(self.epsilon.value.data, t)
        factor = Apply("rsqrt", (Apply("add", (variance, epsilon), t),), t)
        scaled = Apply("mul", (Apply("mul", (Argument(0), factor), t), Argument(2)), t)
        normalized = pointwise_stage(
            shape,
            [
                (StageSource(1), shape),
                (StageSource(2), total.result_shape),
                (OperandSource(1), shape_of(self.scale)),
                (OperandSource(2), shape_of(self.bias)),
            ],
            Apply("add", (scaled, Argument(3)), t),
            t,
        )
        return Structure((total, centered, squares, normalized), (3,))
