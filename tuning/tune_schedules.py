"""`tune-schedules`: searches schedules of groups that have no record, and selects all of them."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import emit_remark
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.targets.kernels.kernel_family import LEVELS
from braid.tuning.search import Rule
from braid.tuning.tune_kernels import SELECT_SCHEDULES, Tuning, tune_kernels


@dataclass(frozen=True)
class TuneSchedulesPass(ModulePass):
    """Searches as `braid tune` does, then writes `braid.schedule` as `select-schedules`.

    In: the input of `select-schedules` in the default pipeline. Groups that have a record of a
    search through as many levels keep it. After `time_limit` seconds no further search is begun,
    and the remaining kernels have the default schedule. `jobs` processes compile. Layouts stay as
    they are: `braid tune` chooses them again. Out: `braid.schedule`, and records; one remark with
    their number. `selecting` is the pass that it replaces, if a backend has its own pass that forms
    groups.

    ```mlir
    %y = braid.fused(%x, %w) {braid.schedule = {family = "gemm", schedule = {rows = 4, …}}} : …
    ```
    """

    name = "tune-schedules"

    levels: int = LEVELS
    time_limit: float = 600.0
    jobs: int | None = None
    target: str | None = None
    selecting: str = SELECT_SCHEDULES

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Search, and select."""
        rule = Rule(levels=self.levels)
        tuning = Tuning(rule=rule, seconds=self.time_limit, jobs=self.jobs)
        report = tune_kernels(op, tuning, self.target, selecting=self.selecting)
        emit_remark(op, self.name, str(report), searched=report.searched, left=report.left)
        target = "" if self.target is None else f"{{target={self.target}}}"
        for selecting in parse_pipeline(f"{self.selecting}{target}"):
            selecting.apply(ctx, op)
