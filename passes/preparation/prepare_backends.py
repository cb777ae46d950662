"""`prepare-backends`: the passes that the backends of a model's devices ask for."""

from dataclasses import dataclass, fields, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.targets.backend import Job
from braid.targets.backends import backend
from braid.targets.machines.resolve import target_of
from braid.targets.machines.target import Target


@dataclass(frozen=True)
class PrepareBackendsPass(ModulePass):
    """Runs what `Backend.prepare` names for the device on which ops of `target` run.

    In: a simplified graph without groups. Out: one in which every op has the form that kernels of
    its backend take; for CPUs, no window has a padding.

    ```mlir
    %y = braid.conv %x, %w {pad_low = array<i64: 1, 1>, …}
    // %p = braid.pad %x {low = array<i64: 0, 0, 1, 1>, …}
    // %y = braid.conv %p, %w {pad_low = array<i64: 0, 0>, …}
    ```
    """

    name = "prepare-backends"

    target: str | None = None

    def passes(self, target: Target) -> tuple[ModulePass, ...]:
        """The passes for `target`, with the option of this one. Raises BraidError as `backend`."""
        job = Job(target, target.default_device)
        preparation = backend(job.device.backend).prepare(job)
        found = parse_pipeline(",".join(preparation.before_fusion))
        return tuple(_for_target(pass_, self.target) for pass_ in found)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run them."""
        for pass_ in self.passes(target_of(op, self.target)):
            pass_.apply(ctx, op)


def _for_target(pass_: ModulePass, target: str | None) -> ModulePass:
    """The pass, asking this target if it asks one."""
    asks = any(field.name == "target" for field in fields(pass_))
    return replace(pass_, target=target) if asks else pass_
