"""`convert-qdq-to-integers`: floating-point ops of quantized models are computed in integers."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriterListener,
    PatternRewriteWalker,
    RewritePattern,
)

from braid.analysis.interpreter.parameter_values import parameter_values
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.names import inherit_names
from braid.passes.canonicalize.dead_ops import erase_dead_ops
from braid.passes.quantization.known_numbers import KnownNumbers
from braid.passes.quantization.movement import rewrite_movement
from braid.passes.quantization.products import rewrite_product
from braid.passes.quantization.requantization import rewrite_quantization
from braid.passes.quantization.sums import rewrite_sum


@dataclass
class _ToIntegers(RewritePattern):
    """The rewrites of this folder, the first that applies."""

    known: KnownNumbers

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        """Rewrite `op`, if it reads dequantized values."""
        if not isinstance(op, TensorOp):
            return
        for rewrite in (rewrite_product, rewrite_movement, rewrite_sum, rewrite_quantization):
            if (result := rewrite(op, rewriter, self.known)) is not None:
                rewriter.replace(op, [], [result])
                return


@dataclass(frozen=True)
class ConvertQdqToIntegersPass(ModulePass):
    """Computes directly with quantized numbers where their real values are only moved or combined.

    In: any module; `braid.quantize` and `braid.dequantize` convert between quantized and real
    numbers, and importers turn integer operators into products of centered i32 operands. Out:
    products of 8-bit operands are in i32, with zero points and biases in terms of their own:
    constants, or zero points times the sums of what they multiply. Matmuls of two activations keep
    their types; matmuls with weights, and convolutions, multiply unsigned by signed numbers. A
    dequantize followed by a quantize is a `braid.requantize`; additions, multiplications, maxima,
    averages, concatenations and movements in between are on integers too. Every result differs by
    at most one step of its type from the former one: it is the exact result, rounded once (sums of
    two scales: to 2^-20 of the larger). Negative scales, 16-bit numbers and convolutions by
    activations stay as they are.

    ```mlir
    %x = braid.dequantize %q, %sx, %zx
    %w = braid.dequantize %p, %sw, %zw
    %y = braid.conv %x, %w …               // %y = braid.conv %q, %p {accumulator = i32, …}
    %r = braid.quantize %y, %sy, %zy       // %r = braid.requantize (%y - %zx · sums of %p), …
    ```
    """

    name = "convert-qdq-to-integers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite all functions of `op`."""
        PatternRewriteWalker(
            _ToIntegers(KnownNumbers(parameter_values(ctx, op))),
            post_walk_func=erase_dead_ops,
            listener=PatternRewriterListener(operation_replacement_handler=[inherit_names]),
        ).rewrite_module(op)
