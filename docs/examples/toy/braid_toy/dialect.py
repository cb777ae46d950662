"""The dialect `toy` with its op `toy.rms_norm`."""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import Float64Type, FloatAttr, TensorType, f64
from xdsl.ir import Dialect, Operation, SSAValue
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.extend import (
    DYNAMIC,
    AnyTensor,
    Apply,
    Argument,
    Array,
    Literal,
    OperandSource,
    StageSource,
    Structure,
    StructuredOp,
    element_type_of,
    is_float,
    pointwise_stage,
    reduce_stage,
    require,
    shape_of,
)


@irdl_op_definition
class RmsNormOp(StructuredOp):
    """x / sqrt(mean(x²) + epsilon), the mean being that of the last dim.

    Operand and result have the same type, of floats; the last dim is not open.
    Fails verification for other types and for an epsilon below 0.
    Source: B. Zhang, R. Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019.

    ```mlir
    %y = toy.rms_norm %x {epsilon = 1.0e-5 : f64} : (tensor<2x8x40xf32>) -> tensor<2x8x40xf32>
    ```
    """

    name = "toy.rms_norm"

    input = operand_def(TensorType)
    epsilon = attr_def(FloatAttr[Float64Type])
    output = result_def(TensorType)

    @staticmethod
    def get(input: SSAValue | Operation, epsilon: float) -> "RmsNormOp":
        """Build the op from plain values."""
        return RmsNormOp.on(input, epsilon=FloatAttr(epsilon, f64))

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the operand's type."""
        shape, element_type = shape_of(self.input), element_type_of(self.input)
        require(is_float(element_type), f"element type is {element_type}, expected a float type")
        require(len(shape) > 0, "the operand has rank 0, expected at least 1")
        require(shape[-1] != DYNAMIC, "the last dim is open, expected a known extent")
        require(shape[-1] > 0, "the last dim is empty, expected at least one element")
        epsilon = self.epsilon.value.data
        require(epsilon >= 0, f"epsilon is {epsilon}, expected no negative number")
        return [TensorType(element_type, shape)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the result of the formula, computed in f64."""
        x = operands[0].astype(np.float64)
        mean = np.mean(x * x, axis=-1, keepdims=True)
        return ((x / np.sqrt(mean + self.epsilon.value.data)).astype(operands[0].dtype),)

    def structure(self) -> Structure:
        """Return two stages: sums of squares of rows, then x · rsqrt(sum / length + epsilon)."""
        shape, t = shape_of(self.input), element_type_of(self.input)
        x, sum = Argument(0), Argument(1)
        squares = reduce_stage(
            "add", OperandSource(0), shape, [len(shape) - 1], t, Apply("mul", (x, x), t)
        )
        mean = Apply("mul", (sum, Literal(1 / shape[-1], t)), t)
        shifted = Apply("add", (mean, Literal(self.epsilon.value.data, t)), t)
        scaled = pointwise_stage(
            shape,
            [(OperandSource(0), shape), (StageSource(0), squares.result_shape)],
            Apply("mul", (x, Apply("rsqrt", (shifted,), t)), t),
            t,
        )
        return Structure((squares, scaled), (1,))

    @property
    def rows(self) -> int:
        """The number of rows that are normalized."""
        return math.prod(shape_of(self.input)[:-1])


Toy = Dialect("toy", [RmsNormOp], [])
"""The dialect that the universe registers."""
