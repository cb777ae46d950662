"""`prepare-backends`: the passes that the backends of a model's devices ask for."""

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.targets.backend import Job, Preparation
from braid.targets.backends import backend_of
from braid.targets.machines.resolve import target_of
from braid.targets.machines.target import Target


@dataclass(frozen=True)
class PrepareBackendsPass(ModulePass):
    """Runs what `Backend.prepare` names for each device of `target`, on what runs there.

    In: with `before=folding` a graph whose devices are assigned, with `before=fusion` a simplified
    one without groups, with `before=kernels` one whose groups, layouts, order and storage are
    decided. Out: one in which every op has the form that kernels of its backend take; for CPUs, no
    window has a padding.

    ```mlir
    %y = braid.conv %x, %w {pad_low = array<i64: 1, 1>, …}
    // %p = braid.pad %x {low = array<i64: 0, 0, 1, 1>, …}
    // %y = braid.conv %p, %w {pad_low = array<i64: 0, 0>, …}
    ```
    """

    name = "prepare-backends"

    target: str | None = None
    before: Literal["folding", "fusion", "kernels"] = "fusion"

    def passes(self, target: Target) -> tuple[ModulePass, ...]:
        """Return the passes for `target`, with the option of this one. Raises BraidError as
        `backend`.
        """
        found: list[ModulePass] = []
        for preparation, devices in _preparations(target).items():
            names = {
                "folding": preparation.before_folding,
                "fusion": preparation.before_fusion,
                "kernels": preparation.before_kernels,
            }[self.before]
            # On one device there is nothing to distinguish.
            restricted = devices if len(target.devices) > 1 else ()
            for pass_ in parse_pipeline(",".join(names)):
                found.append(_for(pass_, self.target, restricted))
        return tuple(found)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run them."""
        for pass_ in self.passes(target_of(op, self.target)):
            pass_.apply(ctx, op)


def _preparations(target: Target) -> dict[Preparation, list[str]]:
    """Return the passes of backends and their devices; that of ops without one comes first."""
    default = target.default_device
    found: dict[Preparation, list[str]] = {}
    for device in (default, *(other for other in target.devices if other.name != default.name)):
        preparation = backend_of(device).prepare(Job(target, device))
        found.setdefault(preparation, []).append(device.name)
    return found


def _for(pass_: ModulePass, target: str | None, devices: Collection[str]) -> ModulePass:
    """Return the pass for this target and these devices, as far as it asks for them."""
    options = {"target": target, "devices": tuple(devices)}
    asked = {field.name for field in fields(pass_)}
    return replace(pass_, **{name: value for name, value in options.items() if name in asked})
