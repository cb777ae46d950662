"""Replace braid's ops in patterns, but never by ops in another cluster."""

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.names import may_stand_for, union_names


def forward(op: Operation, value: SSAValue, rewriter: PatternRewriter) -> None:
    """Replace the result of `op` by `value`, unless that is made in another cluster.

    Whoever put the two apart asked for a copy.
    """
    if may_stand_for([value], op):
        rewriter.replace(op, [], [value])


def merge(op: Operation, inner: Operation, merged: Operation, rewriter: PatternRewriter) -> None:
    """Replace `op` by `merged`, which also does the work of `inner`, unless that runs in another
    cluster.

    It has the names of both where nothing else reads `inner`, so that it goes.
    """
    if not run_together(op, inner):
        merged.erase()
        return
    if sum(1 for result in inner.results for _ in result.uses) == 1:
        union_names(merged, op, inner)
    rewriter.replace(op, merged)
