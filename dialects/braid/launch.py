"""Running a function on another device: launches, their tokens, and waits."""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    FunctionType,
    IntegerType,
    SymbolRefAttr,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    attr_def,
    irdl_attr_definition,
    irdl_op_definition,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import SymbolTable, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.attribute_names import DEVICE, SLOTS


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """That a launch has ended, as `!gpu.async.token` in MLIR.

    ```mlir
    !braid.token
    ```
    """

    name = "braid.token"


class _CalleeHasADevice(SymbolUserOpInterface):
    """A launch names a function of the module that is for a device."""

    def verify(self, op: Operation) -> None:
        """Raise VerifyException for a function that cannot be launched.

        It is unknown, is for no device, or has other types than the op.
        """
        assert isinstance(op, LaunchOp)
        callee = SymbolTable.lookup_symbol(op, op.callee)
        if not isinstance(callee, FuncOp):
            raise VerifyException(f"there is no function '{op.callee.string_value()}' to launch")
        if DEVICE not in callee.attributes:
            raise VerifyException(f"'@{callee.sym_name.data}' has no {DEVICE} to be launched on")
        expected = FunctionType.from_lists(list(op.inputs.types), list(op.outputs.types))
        if callee.function_type != expected:
            raise VerifyException(
                f"'@{callee.sym_name.data}' is {callee.function_type}, launched as {expected}"
            )


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Starts a function on the device that it is for, once its dependencies have ended.

    It does not wait: `outputs` are there when `token` has ended. Other launches that depend on the
    token may read them; all other ops read the results of a `braid.await` of the token. Fails
    verification where the module has no such function, or one of other types or for no device, and
    where `braid.slots` are not as many as the results, or negative.

    ```mlir
    %y, %t = braid.launch async [%s] @cluster_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "braid.launch"

    callee = attr_def(SymbolRefAttr)
    dependencies = var_operand_def(TokenType)
    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    token = result_def(TokenType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(_CalleeHasADevice())
    assembly_format = (
        "`async` ` ` `[` $dependencies `]` ` ` $callee `(` $inputs `)` attr-dict "
        "`:` functional-type($inputs, $outputs)"
    )

    def __init__(
        self,
        callee: str,
        inputs: Sequence[SSAValue],
        output_types: Sequence[Attribute],
        dependencies: Sequence[SSAValue] = (),
    ) -> None:
        super().__init__(
            operands=[dependencies, inputs],
            result_types=[output_types, TokenType()],
            attributes={"callee": SymbolRefAttr(callee)},
        )

    def verify_(self) -> None:
        """Check that each result has its number of slots, where there are any."""
        slots = self.attributes.get(SLOTS)
        if slots is None:
            return
        numbers = cast(DenseArrayBase[IntegerType], slots)
        if not isinstance(slots, DenseArrayBase) or numbers.elt_type != i64:
            raise VerifyException(f"{SLOTS} is {slots}, expected array<i64: …>")
        depths = numbers.get_values()
        if len(depths) != len(self.outputs) or any(depth < 0 for depth in depths):
            raise VerifyException(
                f"{SLOTS} is {list(depths)}, expected {len(self.outputs)} numbers from 0 on"
            )


@irdl_op_definition
class AwaitOp(IRDLOperation):
    """Waits until all tokens have ended; the results are the operands, which are there then.

    That they are results keeps whatever reads them behind the wait, however ops are ordered.

    ```mlir
    %v = braid.await [%t] %y : (tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "braid.await"

    tokens = var_operand_def(TokenType)
    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "` ` `[` $tokens `]` ` ` $inputs attr-dict `:` functional-type($inputs, $outputs)"
    )

    def __init__(self, tokens: Sequence[SSAValue], inputs: Sequence[SSAValue]) -> None:
        super().__init__(operands=[tokens, inputs], result_types=[[value.type for value in inputs]])

    def verify_(self) -> None:
        """Check that each result has the type of its operand."""
        if tuple(self.outputs.types) != tuple(self.inputs.types):
            raise VerifyException("the results differ in type from the operands")
