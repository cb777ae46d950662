"""The data of a page, which is also what `braid explain --json` prints: see page.schema.json.

A change that readers of version 1 would misunderstand makes version 2; fields may be added.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from braid.analysis.diagnostics.remarks import Remark
from braid.support.memory_report import MemoryReport
from braid.tools.explain.assembly import KernelCode
from braid.tools.explain.history import Change
from braid.tools.explain.kernel_rows import KernelRow
from braid.tools.explain.model_graph import GraphNode, ModelGraph, model_graph
from braid.tools.explain.model_names import nearest
from braid.tools.explain.summary import Times
from braid.tools.explain.views import MemoryView, TimelineView

VERSION = 1


@dataclass(frozen=True)
class Decided:
    """A model whose decisions are explained, with the facts about it.

    `free` are ops without a kernel, with the reason; `history` has texts of kernels by number,
    `no_history` the reason why there are none.
    """

    model: str
    target: str
    sizes: Mapping[str, int]
    times: Times
    seconds: float
    proof: str
    kernels: Sequence[KernelRow]
    free: Sequence[tuple[tuple[str, ...], str]]
    graph: ModelGraph
    memory: MemoryReport | None
    remarks: Sequence[Remark] = ()
    history: Mapping[int, Sequence[Change]] = field(default_factory=dict[int, Sequence[Change]])
    no_history: str = ""
    missing_counters: Mapping[str, str] = field(default_factory=dict[str, str])
    """The hardware counters that a profile lacks, with the reason."""
    code: KernelCode = field(default_factory=KernelCode)


def page_data(
    title: str,
    decided: Decided | None = None,
    memory: MemoryView | None = None,
    timelines: Sequence[TimelineView] = (),
) -> dict[str, Any]:
    """Return the document: views that there is nothing for are null or empty."""
    return {
        "version": VERSION,
        "title": title,
        "summary": None if decided is None else _summary(decided),
        "kernels": [] if decided is None else _kernels(decided),
        "free": [] if decided is None else [{"ops": o, "why": why} for o, why in decided.free],
        "graph": None if decided is None else asdict(decided.graph),
        "memory": None if memory is None else asdict(memory),
        "timelines": [asdict(view) for view in timelines],
        "decisions": [] if decided is None else [each.to_json() for each in decided.remarks],
        "sizes": None,
        "difference": None,
        "code": {} if decided is None else dict(decided.code.texts),
    }


def _summary(decided: Decided) -> dict[str, Any]:
    memory = decided.memory
    return {
        "model": decided.model,
        "target": decided.target,
        "sizes": dict(decided.sizes),
        **asdict(decided.times),
        "proof": decided.proof,
        "deciding_seconds": decided.seconds,
        "no_history": decided.no_history,
        "missing_counters": dict(decided.missing_counters),
        "memory": None
        if memory is None
        else {
            "arena_bytes": memory.arena_bytes,
            "lower_bound": memory.lower_bound,
            "output_bytes": memory.output_bytes,
            "weights_bytes": memory.weights_bytes,
            "peak_op": memory.peak_op,
        },
    }


def _kernels(decided: Decided) -> list[dict[str, Any]]:
    return [
        kernel_data(row, decided.times.seconds)
        | {
            "history": [asdict(change) for change in decided.history.get(row.id, ())],
            "code": decided.code.symbols.get(row.ops, ""),
        }
        for row in decided.kernels
    ]


def kernel_data(row: KernelRow, seconds: float) -> dict[str, Any]:
    """Return a row with derived values; shares are relative to `seconds`."""
    best = row.next_best
    return {
        **asdict(row),
        "name": row.name,
        "time": row.time,
        "share": row.time / seconds if seconds > 0 else 0.0,
        "roofline_share": row.roofline_share,
        "wasted": row.wasted,
        "next_best": None if best is None else asdict(best),
    }


def linked_graph(
    nodes: Sequence[GraphNode],
    edges: Sequence[tuple[int, int]],
    kernels: Sequence[KernelRow],
    why: Mapping[str, str],
) -> ModelGraph:
    """Return the graph of a model, whose ops know their kernels; `why` is by name or kind."""
    known = {node.name for node in nodes}
    by_name: dict[str, dict[int, None]] = {}
    for row in kernels:
        for name in row.ops:
            by_name.setdefault(nearest(name, known), {})[row.id] = None
    linked = [
        replace(
            node,
            kernels=tuple(by_name.get(node.name, ())),
            why=why.get(node.name) or why.get(node.kind, ""),
        )
        for node in nodes
    ]
    return model_graph(linked, edges)
