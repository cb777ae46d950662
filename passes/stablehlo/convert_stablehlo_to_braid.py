"""Pass `convert-stablehlo-to-braid`."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from braid.dialects.braid.profile_keys import write_profile_keys
from braid.dialects.braid.sizes import has_open_dims
from braid.dialects.stablehlo import StablehloOp
from braid.passes.sizes.infer_sizes import infer_sizes
from braid.passes.stablehlo.narrow_operands import widen_narrow_numbers
from braid.passes.stablehlo.node import CONVERTERS


@dataclass(frozen=True)
class ConvertStablehloToBraidPass(ModulePass):
    """Rewrites the ops of StableHLO as braid's, and its control flow as `scf`.

    Shapes are known, except for sizes of inputs (`name-open-dims`) and expressions of these.
    Regions of reductions, sorts and scatters are applied to whole tensors. Products and
    convolutions, which name their dims, get transposes around them, most of which layouts remove;
    complex numbers are split before (`split-complex-numbers`). Raises UnsupportedError for an op,
    or a form of one, that has no counterpart, and BraidError for an invalid one.

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
        """Convert every op of StableHLO in `op`, in place."""
        _drop_tuples(op)
        widen_narrow_numbers([inner for inner in op.walk() if isinstance(inner, StablehloOp)])
        CONVERTERS.convert([inner for inner in op.walk() if isinstance(inner, StablehloOp)])
        if has_open_dims(op):
            infer_sizes(op)
        write_profile_keys(op)


def _drop_tuples(module: ModuleOp) -> None:
    """Take values from before they are put into tuples, if the tuples have no other use."""
    for op in [op for op in module.walk() if op.name == "stablehlo.get_tuple_element"]:
        owner = op.operands[0].owner
        index = op.properties.get("index", op.attributes.get("index"))
        if isinstance(owner, StablehloOp) and owner.name == "stablehlo.tuple":
            place = index.value.data if isinstance(index, IntegerAttr) else -1
            if 0 <= place < len(owner.operands):
                Rewriter.replace_op(op, [], [owner.operands[place]])
    for op in reversed([op for op in module.walk() if op.name == "stablehlo.tuple"]):
        if not any(result.uses for result in op.results):
            Rewriter.erase_op(op)
