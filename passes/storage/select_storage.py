"""`select-storage`: tensors that lie inside the memory of others instead of being copied."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.execution.compute_ops import is_compute, runtime_functions
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.analysis.structure.nesting import blocks_outside_groups
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.sizes import is_open
from braid.passes.outlining.outline_kernels import in_group_of_its_own
from braid.passes.storage.box_candidates import Candidate, candidate_of
from braid.passes.storage.memory_spaces import MemorySpaces
from braid.passes.storage.overlap_decisions import select_overlaps
from braid.passes.storage.peak_check import PeakCheck, planned_peak
from braid.passes.storage.storage_placement import (
    StoragePlacement,
    clear_decision,
    seconds_as_stored,
)
from braid.support.byte_sizes import format_size
from braid.targets.costs.cost import tally
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.device_costs import DeviceCosts
from braid.targets.kernels.equal_groups import EqualGroups
from braid.targets.machines.resolve import target_of
from braid.targets.machines.target import Target

_MOST_TRIALS = 400
"""Candidates that are tried one by one where all together need more memory than none."""


def candidates_in(function: FuncOp) -> list[Candidate]:
    """Return the copies that could be saved; wholes come before the boxes in them, so that strides
    are known.
    """
    found: list[Candidate] = []
    for block in blocks_outside_groups(function):
        for op in list(block.ops):
            alone = is_compute(op) and not isinstance(op, FusedOp)
            group = in_group_of_its_own(op) if alone else op
            candidate = candidate_of(group) if isinstance(group, FusedOp) else None
            found += [candidate] if candidate is not None else []
    return found[::-1]


@dataclass(frozen=True)
class SelectStoragePass(ModulePass):
    """Lets operands of concatenations and paddings be computed where the result has them.

    A group that only joins its operands needs no kernel if they all lie inside its result; one that
    pads only writes the border; a slice is a view. A tensor is placed inside another one if the
    kernels of all adjacent groups can address it, if their estimates predict a gain, and if the
    peak of memory does not grow. Boxes nest. Run it when orders and layouts are decided.

    A kernel that can write its result over an operand that is smaller than it does so where the
    arena is smaller for it.

    In: groups (`braid.fused`); ops outside of groups count as groups of one op. Out:
    `braid.strides`, `braid.boxes`, `braid.view_offset` and `braid.overlap` on groups, see
    `analysis/storage/strided_storage.py`.

    ```mlir
    %a = braid.fused(%x) … {braid.strides = [unit, array<i64: 32, 32, 1, 32>]}
    %c = braid.fused(%a, %b) … {braid.boxes = [array<i64: 0, 0>, array<i64: 1, 64>]}
    ```
    """

    name = "select-storage"

    target: str | None = None
    backend: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Decide for every function that runs with the model."""
        target = target_of(op, self.target)
        device = target.device_for(self.backend)
        costs = CostSource(target).on(device)
        # Strides and places in other tensors are numbers of bytes, which open sizes do not have.
        for function in (each for each in runtime_functions(op) if not is_open(each)):
            self._decide(function, costs, target)

    def _decide(self, function: FuncOp, costs: DeviceCosts, target: Target) -> None:
        candidates, memories = candidates_in(function), MemorySpaces(target)
        before = planned_peak(function, memories)
        seconds = seconds_as_stored(costs)
        saved = _place(candidates, seconds, lambda candidate: True)
        if saved and planned_peak(function, memories) > before:
            for op in function.walk():
                if isinstance(op, FusedOp):
                    clear_decision(op)
            check = PeakCheck(function, memories, before)
            saved = _place(candidates[:_MOST_TRIALS], seconds, check.accept)
        smaller = select_overlaps(function, costs, memories)
        after = planned_peak(function, memories)
        copied = sum(storage_bytes(c.whole.type) for c in candidates if c.group in saved)
        emit_remark(
            function,
            self.name,
            f"{len(saved)} of {len(candidates)} copies spared, {format_size(copied)} and about "
            f"{sum(saved.values()):.3g} s; peak {format_size(after)} instead of "
            f"{format_size(before)}; operands written over: arena smaller by "
            f"{format_size(smaller)}; costs: {tally(costs.asked)}",
            spared=len(saved),
            copies=len(candidates),
            bytes=copied,
            seconds=sum(saved.values()),
            peak_bytes=after,
            natural_peak_bytes=before,
            overlapped_bytes=smaller,
            sources=tally(costs.asked),
        )


def _place(
    candidates: Sequence[Candidate],
    seconds: EqualGroups[float | None],
    accept: Callable[[Candidate], bool],
) -> dict[FusedOp, float]:
    """Return the candidates that are spared, and how many seconds each saves."""
    placement = StoragePlacement(seconds)
    saved = ((c.group, placement.place(c, accept)) for c in candidates)
    return {group: spared for group, spared in saved if spared is not None}
