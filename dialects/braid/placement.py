"""Ops that change where or how a tensor is stored, not its value."""

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import attr_def, irdl_op_definition, operand_def, result_def

from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.base import AnyTensor, TensorOp, extents_of, tensor_type
from braid.dialects.braid.base import element_type_of as element_type
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.relayout import Array


class CopyingOp(TensorOp):
    """Base of the ops whose result is their operand."""

    input = operand_def(TensorType)
    output = result_def(TensorType)

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the operand's logical type."""
        return [tensor_type(element_type(self.input), extents_of(self.input))]

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the operand."""
        return operands


@irdl_op_definition
class ReorderOp(CopyingOp):
    """The same tensor stored in the layout of the result's type.

    Fails verification where the types differ in more than the layout.

    ```mlir
    %y = braid.reorder %x : (tensor<1x64x8x8xf32>) -> tensor<1x64x8x8xf32, #braid.layout<"acdb">>
    ```
    """

    name = "braid.reorder"

    @staticmethod
    def to(input: SSAValue | Operation, layout: Layout) -> "ReorderOp":
        """Build the reorder to `layout`."""
        value = SSAValue.get(input)
        return ReorderOp.declared(with_layout(value.type, layout), value)


@irdl_op_definition
class CopyOp(CopyingOp):
    """The same tensor in memory space `memory` of the target.

    Fails verification where the types differ in more than the layout.

    ```mlir
    %y = braid.copy %x {memory = "gpu.global"} : (tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "braid.copy"

    memory = attr_def(StringAttr)
