"""`expand-transposed-convolutions`: transposed convolutions become convolutions."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.dialects.braid.decomposition import decompose_op
from braid.dialects.braid.transposed_convolution import ConvTransposeOp


@dataclass(frozen=True)
class ExpandTransposedConvolutionsPass(ModulePass):
    """Replaces every `braid.conv_transpose` by its decomposition.

    In: any module. Out: a 1×1 convolution and a rearrangement where windows do not overlap
    (window = stride), else a convolution of the input with zeros in between. Kernels for
    convolution then serve both, and what is done to the weight is done at compile time.

    ```mlir
    %y = braid.conv_transpose %x, %w {strides = array<i64: 2, 2>, …}  // a window of 2 × 2
    // %b = braid.conv %x, %v {strides = array<i64: 1, 1>, …}
    // %y = rearranged %b
    ```
    """

    name = "expand-transposed-convolutions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Expand every transposed convolution in `op`."""
        for candidate in list(op.walk()):
            if isinstance(candidate, ConvTransposeOp):
                decompose_op(candidate)
