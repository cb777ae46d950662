"""All that is known of the decisions about one model, as the data of a page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from braid.analysis.profile.profile_file import Span, own_record
from braid.dialects.braid.names import names_of
from braid.passes.partition.assign_devices import Strategy
from braid.tools.explain.document import Decided, linked_graph, page_data
from braid.tools.explain.history import History
from braid.tools.explain.kernel_rows import KernelRow
from braid.tools.explain.memory_view import MemoryExplanation
from braid.tools.explain.quantities import format_seconds
from braid.tools.explain.summary import BETWEEN, times_of
from braid.tools.explain.views import Bar, SizesView, TimelineView
from braid.tools.explain.walk import WITHOUT_BUDGET, Walk, Whole, plan_memory, walk_through

MOST_OPS = 500
"""The most ops of a model whose texts after each pass are kept for a page."""
_MICROSECONDS = 1e6


@dataclass(frozen=True)
class ModelPage:
    """The document of a page, and the documents of its parts."""

    data: Mapping[str, Any]
    walk: Walk
    memory: MemoryExplanation
    kernels: Sequence[KernelRow]

    def with_sizes(self, sizes: SizesView | None) -> "ModelPage":
        """Return the page with what the model takes at other sizes."""
        return replace(self, data={**self.data, "sizes": None if sizes is None else asdict(sizes)})


@dataclass(frozen=True)
class Questions:
    """The options that a model to be explained is compiled with, as those of `compile`."""

    profile: Path | None = None
    partition: Strategy | None = None
    pin: Sequence[str] = ()
    budget: str | None = None
    sizes: Mapping[str, int] | None = None
    assembly: bool = False


def explain_model(
    context: Context,
    read: Callable[[], ModuleOp],
    name: str,
    asked: Questions,
    circuits: Callable[[Walk], Sequence[TimelineView]] = lambda _: (),
    history: History | None = None,
) -> ModelPage:
    """Explain the module that `read` gives each time, which has no open dims.

    `name` is what the model is called, `circuits` gives the timelines of circuits. If `history` is
    given, it decides alone for which ops texts are kept.

    Raises:
        BraidError: as `walk_through` and `plan_memory`.

    """
    module = read()
    is_small = sum(1 for _ in module.walk()) <= MOST_OPS
    keeps = history if history is not None else History() if is_small else None
    walk = walk_through(
        context,
        module,
        profile=asked.profile,
        partition=asked.partition,
        pin=asked.pin,
        whole=True,
        history=keeps,
        assembly=asked.assembly,
    )
    assert walk.whole is not None
    memory = _memory(context, read, walk.whole, asked)
    decided = _decided(name, walk, walk.whole, asked, keeps)
    devices = () if walk.devices is None else (walk.devices.timeline(),)
    record = None if asked.profile is None else own_record(asked.profile)
    whole = (
        measured_timeline(record.timeline, walk.whole.kernels)
        if record is not None and record.timeline
        else kernel_timeline(walk.whole.kernels)
    )
    timelines = (*devices, *circuits(walk), whole)
    data = page_data(f"braid explain {name}", decided, memory.view(), timelines)
    return ModelPage(data, walk, memory, walk.whole.kernels)


def _memory(
    context: Context, read: Callable[[], ModuleOp], whole: Whole, asked: Questions
) -> MemoryExplanation:
    """Return the plan that was made, next to the one that keeps to a budget."""
    if asked.budget is None:
        return MemoryExplanation(whole.plan)
    found = plan_memory(context, read, profile=asked.profile, budget=asked.budget)
    return replace(found, before=replace(whole.plan, label=WITHOUT_BUDGET))


def _decided(
    name: str, walk: Walk, whole: Whole, asked: Questions, history: History | None
) -> Decided:
    record = None if asked.profile is None else own_record(asked.profile)
    runs = None if record is None else record.runs
    wall = None if runs is None or runs.seconds is None else runs.seconds / runs.count
    why = {each: reason for names, reason in whole.free for each in names}
    if walk.devices is not None and walk.devices.host is not None:
        host = walk.devices.host
        why |= {each: host.why for op in host.ops for each in names_of(op) or [op.name]}
    moved = 0.0 if walk.devices is None else sum(each.moved for each in walk.devices.stages)
    return Decided(
        name,
        walk.target.name,
        asked.sizes or {},
        times_of(whole.kernels, wall, None if runs is None else runs.quartiles, moved),
        whole.seconds,
        walk.layouts.summary,
        whole.kernels,
        whole.free,
        linked_graph(whole.nodes, whole.edges, whole.kernels, why),
        whole.plan.report,
        walk.remarks,
        {} if history is None else {row.id: history.of(row.ops) for row in whole.kernels},
        f"the model has more than {MOST_OPS} ops: braid explain --why NAME shows one"
        if history is None
        else "",
        {} if record is None else record.counted.missing,
        whole.code,
    )


def _colours(rows: Sequence[KernelRow]) -> dict[str, int]:
    """Return the number of each kind's colour, which is that in the bar of the first screen."""
    kinds = (kind.kind for kind in times_of(rows).kinds if kind.kind != BETWEEN)
    return {kind: number for number, kind in enumerate(kinds)}


def measured_timeline(spans: Sequence[Span], rows: Sequence[KernelRow]) -> TimelineView:
    """Return one run of the model as it was traced, a lane for each thread and device."""
    lanes = tuple(dict.fromkeys(span.place for span in spans))
    by_name = {"+".join(row.ops): row for row in rows}
    kinds = _colours(rows)
    bars = list[Bar]()
    for span in spans:
        row = by_name.get(span.name)
        label = span.name if row is None else f"{row.name} ({row.kind})"
        colour = len(kinds) if row is None else kinds[row.kind]
        begin, end = span.begin * _MICROSECONDS, span.end * _MICROSECONDS
        bars.append(Bar(lanes.index(span.place), begin, end, label, colour))
    busy = sum(span.end - span.begin for span in spans if span.place == spans[0].place)
    summary = (
        f"One run as it was traced, the fastest of several: kernels take {format_seconds(busy)} of "
        f"{format_seconds(max(span.end for span in spans))} on {spans[0].place}. Gaps are what is "
        "between kernels."
    )
    return TimelineView("Kernels", summary, lanes, tuple(bars), "µs", None, (*kinds, "other"))


def kernel_timeline(rows: Sequence[KernelRow]) -> TimelineView:
    """Return one run of the model, kernel after kernel, a lane for each device."""
    lanes = tuple(dict.fromkeys(row.device for row in rows))
    kinds = _colours(rows)
    bars, end = list[Bar](), 0.0
    for row in rows:
        begin, end = end, end + row.time * _MICROSECONDS
        bars.append(
            Bar(lanes.index(row.device), begin, end, f"{row.name} ({row.kind})", kinds[row.kind])
        )
    known = sum(row.measured is not None for row in rows)
    what = f"{known} measured" if known else "all predicted"
    what += ", the others predicted" if 0 < known < len(rows) else ""
    summary = f"{len(rows)} kernels, one after the other, {what}."
    return TimelineView("Kernels", summary, lanes, tuple(bars), "µs", None, tuple(kinds))
