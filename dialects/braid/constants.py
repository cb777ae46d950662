"""Values that are known before the model runs."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir.affine import AffineMap
from xdsl.irdl import attr_def, irdl_op_definition, result_def, traits_def
from xdsl.traits import ConstantLike, Pure

from braid.dialects.braid.base import AnyTensor, StructuredOp, TensorOp, require, require_computed
from braid.dialects.braid.dtypes import (
    dense_from_numpy,
    dense_is_splat,
    numpy_from_dense,
    to_numpy,
)
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scalar import Position
from braid.dialects.braid.structure import Stage, Structure, parallel
from braid.support.errors import BraidError


@irdl_op_definition
class ConstantOp(TensorOp):
    """A small tensor written in the IR. Weights are `braid.parameter`.

    Result: the type of `value`; fails verification for another shape or element type.

    ```mlir
    %0 = braid.constant {value = dense<1.0> : tensor<1x1xf32>} : tensor<1x1xf32>
    ```
    """

    name = "braid.constant"

    value = attr_def(DenseIntOrFPElementsAttr)
    output = result_def(TensorType)

    traits = traits_def(ConstantLike(), Pure())
    assembly_format = "attr-dict `:` type($output)"

    @staticmethod
    def of(array: Array | float | int | bool, dtype: Any = None) -> "ConstantOp":
        """Return the constant that holds `array`."""
        return ConstantOp.on(value=dense_from_numpy(np.asarray(array, dtype)))

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the type of the value."""
        return [cast(AnyTensor, self.value.type)]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the value."""
        return (numpy_from_dense(self.value),)


def splat_value(constant: ConstantOp) -> float | int | bool | None:
    """Return the number that all elements of `constant` are, None if they differ."""
    if not dense_is_splat(constant.value):
        return None
    return numpy_from_dense(constant.value).flat[0].item()


@irdl_op_definition
class ParameterOp(TensorOp):
    """A weight, named by `key`. Its bytes are outside the IR, in the module's parameter source.

    Result: any type; a value of another type is an error when the parameter is read.

    ```mlir
    %w = braid.parameter {key = "conv1.weight"} : tensor<64x3x7x7xf32>
    ```
    """

    name = "braid.parameter"

    key = attr_def(StringAttr)
    output = result_def(TensorType)

    assembly_format = "attr-dict `:` type($output)"

    @staticmethod
    def of(key: str, type: AnyTensor) -> "ParameterOp":
        """Return the parameter `key` of this type."""
        return ParameterOp.declared(type, key=StringAttr(key))

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the declared type."""
        return [self.result_type()]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Raise BraidError: only who holds the parameter source knows the value."""
        raise BraidError(
            f"parameter '{self.key.data}' has no value",
            hint="give the file with the parameters (the module's 'braid.parameters')",
        )


@irdl_op_definition
class IotaOp(StructuredOp):
    """Every element is its own index along dim `dim`.

    Result: any shape and element type. Fails verification for a dim that does not exist.

    ```mlir
    %0 = braid.iota {dim = 1 : i64} : tensor<2x3xi64>
    ```
    """

    name = "braid.iota"

    dim = attr_def(IntegerAttr[IntegerType])
    output = result_def(TensorType)

    assembly_format = "attr-dict `:` type($output)"

    @staticmethod
    def of(dim: int, type: AnyTensor) -> "IotaOp":
        """Return the indices along `dim` as a tensor of this type."""
        return IotaOp.declared(type, dim=IntegerAttr(dim, i64))

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the declared type, which must have the dim."""
        rank, dim = self.result_type().get_num_dims(), self.dim.value.data
        require_computed(self.result_type().element_type)
        require(0 <= dim < rank, f"dim is {dim}, expected 0 to {rank - 1}")
        return [self.result_type()]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return numpy's index grid."""
        result = self.result_type()
        indices = np.indices(result.get_shape())[self.dim.value.data]
        return (indices.astype(to_numpy(result.element_type)),)

    def structure(self) -> Structure:
        """Return one stage that reads nothing."""
        result = self.result_type()
        rank, shape, element_type = (
            result.get_num_dims(),
            result.get_shape(),
            result.element_type,
        )
        body = Position(self.dim.value.data, element_type)
        identity = AffineMap.identity(rank)
        stage = Stage(parallel(rank), shape, (), identity, shape, element_type, body)
        return Structure((stage,), (0,))
