"""`split-concats`: compute on the parts of concatenations where that lowers the peak of memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.execution.compute_ops import runtime_functions
from braid.dialects.braid.movement import ConcatOp
from braid.dialects.braid.regions import FusedOp
from braid.passes.order.concat_rewrites import ConcatSplitting
from braid.passes.order.trial_order import take_body, trial_order
from braid.support.byte_sizes import format_size


def split_all(function: func.FuncOp) -> int:
    """Split every concatenation that need not exist, and return how many there were."""
    splitting = ConcatSplitting()
    count = 0
    # Splitting one concatenation may move another one after its readers, and that one can then be
    # split as well.
    while (concat := next(_splittable(function, splitting), None)) is not None:
        splitting.split(concat)
        count += 1
    return count


def _splittable(function: func.FuncOp, splitting: ConcatSplitting) -> Iterator[ConcatOp]:
    """Return the concatenations of the function's own block, since nested blocks have peaks of
    their own.
    """
    for op in function.body.block.ops:
        if isinstance(op, ConcatOp) and splitting.can_split(op):
            yield op


@dataclass(frozen=True)
class SplitConcatsPass(ModulePass):
    """Lets convolutions and other ops read the parts of a concatenation, which then goes away.

    A convolution on concatenated channels becomes a sum of convolutions, each on one part with its
    slice of the weights; depthwise convolutions, poolings, paddings and elementwise ops are applied
    to each part. That is done where all readers of a concatenation can, and for a function only if
    the best order found within `time_limit` seconds, before and after, needs less memory then. It
    costs time for the partial sums, so it is in no default pipeline. Run it after scales are folded
    and before `hoist-parameter-expressions`, which cuts the weights at compile time.

    In: functions without groups and layouts. Out: the same functions; sums are rounded in
    another order.

    ```mlir
    %c = braid.concat %a, %b {dim = 1 : i64}    // gone
    %y = braid.conv %c, %w …                    // conv(%a, slice %w) + conv(%b, slice %w)
    ```
    """

    name = "split-concats"

    time_limit: float = 5.0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite each function that runs with the model, or leave it unchanged."""
        deadline = monotonic() + self.time_limit
        functions = [f for f in runtime_functions(op) if not _has_groups(f)]
        for left, function in zip(range(len(functions), 0, -1), functions, strict=True):
            self._try(function, max(deadline - monotonic(), 0.0) / (2 * left))

    def _try(self, function: func.FuncOp, time_limit: float) -> None:
        changed = function.clone()
        count = split_all(changed)
        if not count:
            return
        before, after = (trial_order(f, time_limit).peak for f in (function, changed))
        taken = count if after < before else 0
        if taken:
            take_body(function, changed)
        emit_remark(
            function,
            self.name,
            f"{taken} of {count} concatenations split; least peak {format_size(after)} with all of "
            f"them split, {format_size(before)} with none",
            split=taken,
            splittable=count,
            peak_bytes=after,
            natural_peak_bytes=before,
        )


def _has_groups(function: Operation) -> bool:
    return any(isinstance(op, FusedOp) for op in function.walk())
