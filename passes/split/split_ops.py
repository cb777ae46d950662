"""`split-ops`: decides and does, for pipelines in which nothing looks at the decision."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.passes.split.apply_splits import ApplySplitsPass
from braid.passes.split.select_splits import SelectSplitsPass


@dataclass(frozen=True)
class SplitOpsPass(ModulePass):
    """Splits every op that uses more than `memory` bytes: `select-splits`, then `apply-splits`.

    The options are those of `select-splits`; parts that follow readers do so through concats.

    ```mlir
    %y = braid.exp %x : (tensor<8x9xf32>) -> tensor<8x9xf32>
    ```
    """

    name = "split-ops"

    memory: int | str | None = None
    target: str | None = None
    allow_split_reduction: bool = False
    follow_readers: bool = False
    devices: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Runs both passes."""
        SelectSplitsPass(
            self.memory,
            self.target,
            self.allow_split_reduction,
            self.follow_readers,
            self.devices,
            self.dims,
        ).apply(ctx, op)
        ApplySplitsPass(through_concats=self.follow_readers).apply(ctx, op)
