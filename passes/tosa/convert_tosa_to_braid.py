"""Pass `convert-tosa-to-braid`."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from braid.dialects.braid.profile_keys import write_profile_keys
from braid.dialects.braid.sizes import has_open_dims
from braid.dialects.tosa import TosaOp
from braid.passes.sizes.infer_sizes import infer_sizes
from braid.passes.tosa.node import CONVERTERS, is_const_shape


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
    %1 = braid.constant {value = dense<6.0> : tensor<1xf32>} : tensor<1xf32>
    %2 = braid.maximum %x, %0 : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
    %y = braid.minimum %2, %1 : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
    ```
    """

    name = "convert-tosa-to-braid"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Convert every op of TOSA in `op`, in place."""
        ops = [inner for inner in op.walk() if isinstance(inner, TosaOp)]
        CONVERTERS.convert([inner for inner in ops if not is_const_shape(inner)])
        for inner in filter(is_const_shape, ops):
            if not inner.results[0].uses:
                Rewriter.erase_op(inner)
        if has_open_dims(op):
            infer_sizes(op)
        write_profile_keys(op)
