"""`canonicalize`: fold, apply every op's canonicalization patterns, drop dead ops."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriterListener,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.attribute_names import BRANCH_SIZE_CHECKS
from braid.dialects.braid.names import inherit_names
from braid.passes.canonicalize.dead_ops import erase_dead_ops
from braid.passes.canonicalize.tensor_patterns import TensorPatterns
from braid.support.errors import BraidError

_REWRITES_PER_OP = 100
"""The most rewrites, on the average over the ops; with more, patterns undo each other's work."""


@dataclass
class _Bounded(RewritePattern):
    """`inner`, stopped when its rewrites lead nowhere."""

    inner: RewritePattern
    budget: int

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        location = None if self.budget else source_location(op)
        self.inner.match_and_rewrite(op, rewriter)
        if not rewriter.has_done_action:
            return
        self.budget -= 1
        if self.budget < 0:
            raise BraidError(
                f"canonicalization does not end: patterns keep rewriting '{op.name}'",
                location=location,
                hint="a constant op that has a folder needs the ConstantLike trait",
            )


class _OpPatterns(CanonicalizationRewritePattern):
    """Apply the patterns of ops themselves, but not those that would drop the checks of branches.

    The op that holds them would be replaced by the branch that a known condition takes.
    """

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if BRANCH_SIZE_CHECKS not in op.attributes:
            super().match_and_rewrite(op, rewriter)


@dataclass(frozen=True)
class CanonicalizePass(ModulePass):
    """Folds ops, applies their canonicalization patterns and removes dead ops, to a fixpoint.

    Unlike xDSL's pass of this name, it keeps the stable names (`braid.name`) and locations of the
    ops that it replaces, never merges ops of two clusters, and stops with an error if patterns undo
    each other's work.

    ```mlir
    %0 = arith.constant 0 : i32
    %1 = arith.addi %x, %0 : i32          // uses of %1 become uses of %x
    ```
    """

    name = "canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Canonicalize everything in `op`. Raises `BraidError` where that does not end."""
        count = sum(1 for _ in op.walk())
        patterns = GreedyRewritePatternApplier(
            [_OpPatterns(), TensorPatterns()], ctx=ctx, folding_enabled=True
        )
        PatternRewriteWalker(
            _Bounded(patterns, budget=_REWRITES_PER_OP * max(count, 100)),
            post_walk_func=erase_dead_ops,
            listener=PatternRewriterListener(operation_replacement_handler=[inherit_names]),
        ).rewrite_module(op)
