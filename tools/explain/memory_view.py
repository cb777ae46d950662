"""Memory: what is in the arena at every step, before and after recomputation."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.dialects.builtin import ModuleOp

from braid.analysis.diagnostics.remarks import Remark
from braid.dialects.braid.variants import device_functions, public_functions
from braid.passes.storage.memory_report import (
    LiveTensor,
    MemoryReport,
    MemoryTimeline,
    memory_report,
    memory_timeline,
)
from braid.support.byte_sizes import format_size
from braid.tools.explain.model_names import joined_label
from braid.tools.explain.views import Block, MemoryPlan, MemoryView, Table

ARENA = "arena"
CALL = "func.call"
"""The label of ops that have no name."""
RETURN, LAST = "func.return", "the end of a run"
RECOMPUTE_PASS = "select-rematerialization"


@dataclass(frozen=True)
class PlannedMemory:
    """The plan of a model's first function, and the remarks about it."""

    label: str
    report: MemoryReport
    timeline: MemoryTimeline
    remarks: tuple[Remark, ...] = ()

    @staticmethod
    def of(module: ModuleOp, label: str, remarks: tuple[Remark, ...] = ()) -> "PlannedMemory":
        """Return the plan that is written in `module`, after `plan-memory`.

        Of a model that launches functions on its devices, that of whichever takes most.
        """
        functions = [*public_functions(module)[:1], *device_functions(module)]
        report, function = max(
            ((memory_report(each), each) for each in functions), key=lambda it: it[0].arena_bytes
        )
        return PlannedMemory(label, report, memory_timeline(function), remarks)

    def recomputed(self) -> dict[str, int]:
        """Return the number of runs of each op that has a name and runs more than once."""
        counts = Counter(self.timeline.steps)
        return {name: n for name, n in counts.items() if n > 1 and name not in ("", CALL)}

    def drawn(self) -> MemoryPlan:
        """Return the arena over time."""
        live = [each for each in self.timeline.tensors if each.tensor.space == ARENA]
        steps = tuple(LAST if step == RETURN else step for step in self.timeline.steps)
        peak = fullest_step([(each.first, each.last, each.tensor.bytes) for each in live])
        blocks = tuple(
            Block(
                each.tensor.name,
                each.first,
                each.last,
                each.tensor.offset,
                each.tensor.bytes,
                each.tensor.type,
                each.readers,
                _why(each, steps, peak),
            )
            for each in live
        )
        return MemoryPlan(self.label, steps, blocks, self.report.arena_bytes)


@dataclass(frozen=True)
class MemoryExplanation:
    """The plan without a budget and, if there is one, the plan that keeps to it."""

    before: PlannedMemory
    after: PlannedMemory | None = None

    @property
    def summary(self) -> str:
        """Describe the use of the arena, and recomputations for it with reasons."""
        lines = [_sentence(plan) for plan in self._plans()]
        if self.after is not None:
            again = self._recomputed()
            names = ", ".join(f"{name} ({count}×)" for name, count in again.items())
            lines += [f"Recomputed: {names}."] if names else []
            lines += [
                f"Why: {remark.message}"
                for remark in self.after.remarks
                if remark.pass_name == RECOMPUTE_PASS
            ]
        return "\n".join(lines)

    def tables(self) -> Iterator[tuple[str, Table]]:
        """Yield, for each plan, the tensors that are live at its peak, the largest first."""
        for plan in self._plans():
            rows = tuple(
                (format_size(t.bytes), f"{t.offset}", t.name, t.type) for t in plan.report.live
            )
            title = f"{plan.label}: live while {plan.report.peak_op or 'it'} runs"
            yield title, Table(("bytes", "offset", "made by", "type"), rows)

    def view(self) -> MemoryView:
        """Return the plans side by side."""
        _, table = list(self.tables())[-1]
        return MemoryView("Memory", self.summary, tuple(p.drawn() for p in self._plans()), table)

    def _plans(self) -> list[PlannedMemory]:
        return [self.before] if self.after is None else [self.before, self.after]

    def _recomputed(self) -> dict[str, int]:
        """Return the runs of each op that runs more often than it did without a budget."""
        assert self.after is not None
        usual = self.before.recomputed()
        return {n: c for n, c in self.after.recomputed().items() if c > usual.get(n, 1)}


def fullest_step(blocks: Sequence[tuple[int, int, int]]) -> int:
    """Return the first step at which most bytes are live, of (first, last, bytes); -1 for none."""
    change = Counter[int]()
    for first, last, size in blocks:
        change[first] += size
        change[last + 1] -= size
    best, most, live = -1, 0, 0
    for step in sorted(change):
        live += change[step]
        if live > most:
            best, most = step, live
    return best


def _why(live: LiveTensor, steps: Sequence[str], peak: int) -> str:
    """Return why a buffer lives from its first step to its last, and the saving by
    recomputation."""
    readers = [step for step in live.readers if live.first <= step <= live.last]
    if not readers:
        return "nothing reads it: it is scratch of its kernel, or what a loop carries"

    def named(step: int) -> str:
        return joined_label(steps[step])

    after = [live.first, *readers]
    wait, waiter = max((b - a, b) for a, b in pairwise(after))
    last = readers[-1]
    if last - live.first <= 1:
        text = f"read at once by {named(last)}"
    else:
        text = f"kept for {last - live.first} steps until {named(last)} (step {last}) reads it"
    if wait > 1 and len(readers) > 1:
        text += f"; for {wait} of them, before {named(waiter)} (step {waiter}), nobody reads it"
    if live.first < peak <= live.last and peak not in readers:
        text += (
            f"; it waits through the peak (step {peak}): computing it again after that would "
            f"free {format_size(live.tensor.bytes)} there, for another run of {named(live.first)}"
        )
    return text


def _sentence(plan: PlannedMemory) -> str:
    report = plan.report
    return (
        f"{plan.label}: arena {format_size(report.arena_bytes)} (no plan for this order is below "
        f"{format_size(report.lower_bound)}), outputs {format_size(report.output_bytes)}."
    )
