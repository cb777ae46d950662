"""Pass `convert-stablehlo-to-braid`."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.names import union_names
from braid.dialects.stablehlo import ReturnOp, StablehloOp
from braid.passes.stablehlo.control_flow import CONTROL_FLOW, convert_control_flow
from braid.passes.stablehlo.node import StablehloNode, converter_of


@dataclass(frozen=True)
class ConvertStablehloToBraidPass(ModulePass):
    """Rewrites the ops of StableHLO as braid's, and its control flow as `scf`.

    Shapes are static, and reductions have regions of one op. Products and convolutions, which
    name their dims, get transposes around them, most of which layouts remove. Raises
    UnsupportedError for an op, or a form of one, that has no counterpart, and BraidError for one
    that is not valid.

    ```mlir
    %y = "stablehlo.reduce"(%x, %zero) <{dimensions = array<i64: 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%c) : (tensor<f32>) -> ()
    }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    // becomes
    %0 = braid.reduce %x {kind = "add", dims = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %y = braid.reshape %0 : (tensor<4x1xf32>) -> tensor<4xf32>
    ```
    """

    name = "convert-stablehlo-to-braid"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Converts every op of StableHLO in `op`, in place."""
        # Ops before their regions, which those of reductions need as they are.
        for inner in [inner for inner in op.walk() if isinstance(inner, StablehloOp)]:
            if inner.parent is not None and not _is_later(inner) and not _is_gone(inner, op):
                _convert(inner)
        ops = op.walk(region_first=True)
        for inner in [i for i in ops if isinstance(i, StablehloOp) and i.name in CONTROL_FLOW]:
            try:
                convert_control_flow(inner)
            except (IndexError, ValueError) as error:
                node = StablehloNode(inner, Builder(InsertPoint.before(inner)))
                node.fail(f"its regions and types do not fit together: {error}")


def _is_later(op: StablehloOp) -> bool:
    return op.name in CONTROL_FLOW or isinstance(op, ReturnOp)


def _is_gone(op: Operation, module: ModuleOp) -> bool:
    """Whether `op` was in a region of an op that has been replaced."""
    outermost = op
    while (parent := outermost.parent_op()) is not None:
        outermost = parent
    return outermost is not module


def _convert(op: StablehloOp) -> None:
    node = StablehloNode(op, Builder(InsertPoint.before(op)))
    convert = converter_of(op.SHORT)
    if convert is None:
        node.unsupported("there is nothing in braid to convert it to")
    try:
        converted = convert(node)
    except VerifyException as error:
        node.fail(str(error))
    except (IndexError, ValueError) as error:
        # Lists of other lengths than the shapes, dims that there are not, regions without blocks.
        node.fail(f"its fields, regions and types do not fit together: {error}")
    values = [converted] if isinstance(converted, SSAValue) else list(converted)
    _verify(node, values)
    if len(values) == 1:
        _keep_names(op, values[0])
    Rewriter.replace_op(op, [], values)


def _verify(node: StablehloNode, values: Sequence[SSAValue]) -> None:
    if len(node.op.results) != len(values):
        node.fail(f"expected {len(values)} results, got {len(node.op.results)}")
    for result, value in zip(node.op.results, values, strict=True):
        if value.type != result.type:
            node.fail(f"a result has type {result.type}, expected {value.type}")


def _keep_names(op: StablehloOp, value: SSAValue) -> None:
    if isinstance(value.owner, Operation) and value not in op.operands:
        union_names(value.owner, op)
