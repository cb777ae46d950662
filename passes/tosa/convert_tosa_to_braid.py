"""Pass `convert-tosa-to-braid`."""

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.names import union_names
from braid.dialects.tosa import CondIfOp, TosaOp, WhileLoopOp, YieldOp
from braid.passes.tosa.control_flow import convert_control_flow
from braid.passes.tosa.node import TosaNode, converter_of

_SHAPES = ("tosa.const_shape",)


@dataclass(frozen=True)
class ConvertTosaToBraidPass(ModulePass):
    """Rewrites the ops of TOSA 1.0 as braid's, and its control flow as `scf`.

    Channels are the last dim in TOSA and the second one in braid, so convolutions and pools get
    transposes around them, most of which layouts remove. Zero points, shapes, pads and scales
    must be constants. Raises UnsupportedError for an op, or a mode of one, that has no
    counterpart, and BraidError for one that is not valid.

    ```mlir
    %y = tosa.clamp %x {min_val = 0.0 : f32, max_val = 6.0 : f32}
       : (tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %0 = braid.constant {value = dense<0.0> : tensor<1xf32>} : tensor<1xf32>
    %1 = braid.maximum %x, %0 : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
    %2 = braid.constant {value = dense<6.0> : tensor<1xf32>} : tensor<1xf32>
    %y = braid.minimum %1, %2 : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
    ```
    """

    name = "convert-tosa-to-braid"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Converts every op of TOSA in `op`, in place."""
        ops = [inner for inner in op.walk(region_first=True) if isinstance(inner, TosaOp)]
        for inner in ops:
            if isinstance(inner, CondIfOp | WhileLoopOp):
                convert_control_flow(inner)
            elif inner.name not in _SHAPES and not isinstance(inner, YieldOp):
                _convert(inner)
        for inner in ops:
            if inner.name in _SHAPES and not inner.results[0].uses:
                Rewriter.erase_op(inner)


def _convert(op: TosaOp) -> None:
    node = TosaNode(op, Builder(InsertPoint.before(op)))
    convert = converter_of(node.name)
    if convert is None:
        node.unsupported("there is nothing in braid to convert it to")
    if len(op.results) != 1:
        node.fail(f"expected one result, got {len(op.results)}")
    try:
        value = convert(node)
    except VerifyException as error:
        node.fail(str(error))
    if value.type != op.results[0].type:
        node.fail(f"the result has type {op.results[0].type}, expected {value.type}")
    _keep_names(op, value)
    Rewriter.replace_op(op, [], [value])


def _keep_names(op: TosaOp, value: SSAValue) -> None:
    if isinstance(value.owner, Operation) and value not in op.operands:
        union_names(value.owner, op)
