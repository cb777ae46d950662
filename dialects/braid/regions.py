"""Ops with a region: one kernel (`fused`), and its terminator."""

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """Ends the region of `braid.fused`; its operands become the results."""

    name = "braid.yield"

    traits = traits_def(IsTerminator(), Pure())


class GroupOp(IRDLOperation):
    """Ops that were put together; isolated, so that the body can be moved as it is.

    Block argument i is operand i, result i is operand i of the `braid.yield`.
    Fails verification where types inside and outside differ.
    """

    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), RecursiveMemoryEffect())
    assembly_format = "`(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs) $body"

    def __init__(
        self,
        inputs: Sequence[SSAValue | Operation],
        output_types: Sequence[Attribute],
        body: Block,
        attributes: dict[str, Attribute] | None = None,
    ) -> None:
        super().__init__(
            operands=[inputs],
            result_types=[output_types],
            regions=[Region(body)],
            attributes=attributes or {},
        )

    @property
    def terminator(self) -> YieldOp:
        """The `braid.yield` of the body."""
        last = self.body.block.last_op
        assert isinstance(last, YieldOp)
        return last

    def verify_(self) -> None:
        """Check that the types inside are the types outside."""
        last = self.body.block.last_op
        if not isinstance(last, YieldOp):
            raise VerifyException(f"the body of {self.name} must end in braid.yield")
        _verify_same("block argument", self.body.block.arg_types, self.inputs.types)
        _verify_same("yielded value", last.arguments.types, self.outputs.types)


def _verify_same(what: str, inside: Sequence[Attribute], outside: Sequence[Attribute]) -> None:
    if len(inside) != len(outside):
        raise VerifyException(f"expected {len(outside)} {what}s, got {len(inside)}")
    for index, (actual, expected) in enumerate(zip(inside, outside, strict=True)):
        if actual != expected:
            raise VerifyException(f"{what} {index} has type {actual}, expected {expected}")


@irdl_op_definition
class FusedOp(GroupOp):
    """A group of ops that becomes one kernel: intermediate values have no buffer.

    ```mlir
    %y = braid.fused(%x) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      %b = braid.exp %a : (tensor<4xf32>) -> tensor<4xf32>
      %c = braid.neg %b : (tensor<4xf32>) -> tensor<4xf32>
      braid.yield %c : tensor<4xf32>
    }
    ```
    """

    name = "braid.fused"
