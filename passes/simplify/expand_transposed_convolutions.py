"""`expand-transposed-convolutions`: transposed convolutions become convolutions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from braid.dialects.braid.decomposition import decompose_op
from braid.dialects.braid.names import names_of, set_names
from braid.dialects.braid.transposed_convolution import ConvTransposeOp


@dataclass(frozen=True)
class ExpandTransposedConvolutionsPass(ModulePass):
    """Replaces every `braid.conv_transpose` by its decomposition.

    In: any module. Out: convolutions whose channels are the elements that lie between two of the
    input, and a rearrangement of these; nothing is multiplied by zeros, and nothing added up in
    memory. Kernels for convolution then serve both, and the weight is transformed at compile time.
    A transposed convolution with dilated windows becomes a convolution of the input with zeros in
    between.

    ```mlir
    %y = braid.conv_transpose %x, %w {strides = array<i64: 2>, …}  // a window of 4, 8 channels
    // %b = braid.conv %x, %v {strides = array<i64: 1>, …}  // a window of 2, 16 channels
    // %y = rearranged %b
    ```
    """

    name = "expand-transposed-convolutions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Expand every transposed convolution in `op`."""
        for candidate in list(op.walk()):
            if isinstance(candidate, ConvTransposeOp):
                names = names_of(candidate)
                _name_parts(names, decompose_op(candidate))


def _name_parts(names: Sequence[str], parts: Sequence[Operation]) -> None:
    """Name the parts of the op of these names that have no name yet after it and their kinds."""
    counts = Counter[str]()
    for part in parts:
        if not part.operands or names_of(part):
            continue
        kind = part.name.removeprefix("braid.")
        counts[kind] += 1
        suffix = kind if counts[kind] == 1 else f"{kind}_{counts[kind]}"
        set_names(part, [f"{name}/{suffix}" for name in names])
