"""Devices: the device of each cluster, the time of each, and the busiest device."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp

from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.structure.clusters import clusters_in_order
from braid.dialects.braid.clusters import placement_of
from braid.dialects.braid.names import names_of
from braid.passes.partition.apply_clusters import CLUSTER_PREFIX
from braid.passes.partition.host_ops import HostOps
from braid.passes.partition.partition_graph import PartitionGraph
from braid.support.byte_sizes import format_size
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.launch_times import link_seconds
from braid.targets.machines.target import Target
from braid.tools.explain.quantities import format_seconds
from braid.tools.explain.views import Bar, Table, TimelineView

_MICROSECONDS = 1e6
_HOST = -1


@dataclass
class ClusterView:
    """A cluster, or with number -1 the host between them: predicted, in one run of the model.

    `seconds` is the time of its ops, `moved` the time of its transfers, and `begin` its earliest
    begin if a device runs one cluster at a time; `received` and `sent` are bytes. In a stream,
    `replicas` take turns with `device`; a single call runs on `device`. `function` is the function
    of the cluster, `measured` the seconds of one run, None for unknown.
    """

    number: int
    device: str
    ops: list[str] = field(default_factory=list[str])
    runs: float = 1.0
    seconds: float = 0.0
    moved: float = 0.0
    received: float = 0.0
    sent: float = 0.0
    held: float = 0.0
    begin: float = 0.0
    replicas: tuple[str, ...] = ()
    function: str = ""
    measured: float | None = None

    @property
    def devices(self) -> tuple[str, ...]:
        """All devices that run it."""
        return (self.device, *self.replicas)

    @property
    def takes(self) -> float:
        """Seconds of all of it."""
        return self.seconds + self.moved


@dataclass(frozen=True)
class DeviceExplanation:
    """The clusters of a function, before they become functions of their own."""

    function: FuncOp
    stages: Sequence[ClusterView]
    clusters: str
    """A sentence on clusters and devices."""
    host: HostOps | None = None
    """The ops that run on the host because no other device supports them, None without any."""

    @staticmethod
    def of(function: FuncOp, target: Target, counts: ExecutionCounts) -> "DeviceExplanation":
        """Explain the clusters of `function` by the costs in the layouts that were chosen."""
        graph = PartitionGraph.of(function, target, counts)
        stages = _stages(graph, target)
        order = clusters_in_order(function)
        for stage in stages:
            stage.function = f"{CLUSTER_PREFIX}{order.index(stage.number)}"
        loads = _loads(stages)
        busiest = max(loads, key=lambda name: loads[name], default="")
        summary = f"{_counted(len(stages), 'cluster')} on {_counted(len(loads), 'device')}"
        summary += f"; {busiest} is the busiest." if stages else "."
        found = HostOps.of(function, target)
        host = found if found.are_beside(target) else None
        if host is not None:
            summary += f" {len(host.ops)} ops run on the host, since {host.why}."
        return DeviceExplanation(function, stages, summary, host)

    @property
    def summary(self) -> str:
        """The busiest device, and how often a stream would have a result for it."""
        if not self.stages:
            return self.clusters
        taken = max(_loads(self.stages).values())
        rate = f"{1 / taken:.4g} results/s" if taken else "no limit"
        took = format_seconds(taken)
        return f"{self.clusters} Predicted: {took} of each request, {rate} in a stream."

    def measure(self, seconds: Mapping[str, float]) -> None:
        """Record the time of one run of each function."""
        for stage in self.stages:
            stage.measured = seconds.get(stage.function)

    def table(self) -> Table:
        """Return a row for each cluster, with the bottleneck marked and measured times if any.

        Ops that only the host can run have a last row, with the reason.
        """
        knows = any(stage.measured is not None for stage in self.stages)
        loads = _loads(self.stages)
        most = max(loads.values(), default=0.0)
        rows = tuple(
            (
                f"{stage.number}",
                ", ".join(name + " *" * (loads[name] == most) for name in stage.devices),
                f"{len(stage.ops)}",
                stage.ops[0],
                _us(stage.seconds),
                *(["-" if stage.measured is None else _us(stage.measured)] if knows else []),
                _us(stage.moved),
                format_size(int(stage.received)),
                format_size(int(stage.sent)),
                format_size(int(stage.held)),
            )
            for stage in self.stages
        )
        columns = ("cluster", "device", "ops", "first", "computes", *["measured"] * knows)
        columns = (*columns, "moves", "gets", "sends", "holds")
        if self.host is not None:
            unknown = ("-",) * (len(columns) - 4)
            rows += (("host", self.host.device, f"{len(self.host.ops)}", self.host.why, *unknown),)
        return Table(columns, rows)

    def devices(self) -> Table:
        """Return a row for each device, the busiest one marked."""
        loads = _loads(self.stages)
        most = max(loads.values(), default=0.0)
        rows: list[tuple[str, ...]] = []
        for name, load in loads.items():
            own = [stage for stage in self.stages if name in stage.devices]
            held = format_size(int(sum(stage.held for stage in own)))
            mark = " * bottleneck" if load == most else ""
            rows.append((name + mark, f"{len(own)}", _us(load), held))
        return Table(("device", "clusters", "takes", "holds"), tuple(rows))

    def timeline(self) -> TimelineView:
        """Return the times at which the clusters of one request run."""
        lanes = tuple(_loads(self.stages))
        bars = tuple(
            Bar(
                lanes.index(stage.device),
                stage.begin * _MICROSECONDS,
                (stage.begin + stage.takes) * _MICROSECONDS,
                f"cluster {stage.number}: {', '.join(stage.ops)}",
                stage.number,
            )
            for stage in self.stages
        )
        return TimelineView("Clusters", self.summary, lanes, bars, "µs", self.table())

    def trace(self) -> str:
        """Return one predicted request in the trace event format that Perfetto and Chrome read."""
        lanes = list(_loads(self.stages))
        events: list[dict[str, object]] = [
            {"ph": "M", "pid": 0, "tid": lane, "name": "thread_name", "args": {"name": name}}
            for lane, name in enumerate(lanes)
        ]
        for stage in self.stages:
            events.append(
                {
                    "ph": "X",
                    "pid": 0,
                    "tid": lanes.index(stage.device),
                    "name": f"cluster {stage.number}",
                    "ts": stage.begin * _MICROSECONDS,
                    "dur": stage.takes * _MICROSECONDS,
                    "args": {"ops": stage.ops, "received": stage.received, "sent": stage.sent},
                }
            )
        return json.dumps({"displayTimeUnit": "ms", "traceEvents": events})


def _stages(graph: PartitionGraph, target: Target) -> list[ClusterView]:
    """Return the clusters in an order in which they run; a value goes through the host."""
    costs = CostSource(target)
    found: dict[int, ClusterView] = {}
    of: list[int] = []
    for node, op in enumerate(graph.ops):
        placement = None if op is None else placement_of(op)
        number = _HOST if placement is None else placement.cluster
        of.append(number)
        if op is None or placement is None:
            continue
        new = ClusterView(
            number, placement.device, runs=graph.runs[node], replicas=placement.replicas
        )
        stage = found.setdefault(number, new)
        on = costs.of(op)
        cost = on.cost(op)
        stage.seconds += graph.runs[node] * (cost.seconds + on.start_of(cost))
        stage.ops.append(next(iter(names_of(op)), op.name))
        stage.held += graph.weights[node] + graph.sizes[node]
    sent, received = set[int](), set[tuple[int, int]]()
    for node, operands in enumerate(graph.operands):
        for read in operands:
            if of[read] != of[node]:
                sent.add(read)
                received.add((read, of[node]))
    for node in sent:
        _count(found.get(of[node]), graph, node, target, away=True)
    for node, number in received:
        _count(found.get(number), graph, node, target, away=False)
    for stage in found.values():
        start = target.device(stage.device).start_seconds
        stage.moved += stage.runs * start
    _schedule(found, of, graph)
    return sorted(found.values(), key=lambda stage: (stage.begin, stage.number))


def _count(
    stage: ClusterView | None, graph: PartitionGraph, node: int, target: Target, *, away: bool
) -> None:
    """Add a transfer of the value of `node` to a stage, unless it is the host's."""
    size = graph.sizes[node]
    if stage is None or not size:
        return
    ends = [(name, target.host) if away else (target.host, name) for name in stage.devices]
    stage.moved += graph.runs[node] * max(link_seconds(target, *each, size) for each in ends)
    stage.sent += size if away else 0.0
    stage.received += 0.0 if away else size


def _schedule(found: dict[int, ClusterView], of: Sequence[int], graph: PartitionGraph) -> None:
    """Begin each cluster when what it reads is there and its device is free."""
    waits: dict[int, set[int]] = {number: set() for number in found}
    reach: list[set[int]] = []
    for node, operands in enumerate(graph.operands):
        before = {each for read in operands for each in reach[read]} - {of[node]}
        if of[node] != _HOST:
            waits[of[node]] |= before
        reach.append({of[node]} if of[node] != _HOST else before)
    free, end = defaultdict[str, float](float), dict[int, float]()
    left = dict.fromkeys(dict.fromkeys(number for number in of if number != _HOST))
    while left:
        number = next((n for n in left if not waits[n] & left.keys() - {n}), next(iter(left)))
        stage = found[number]
        after = max((end.get(other, 0.0) for other in waits[number]), default=0.0)
        stage.begin = max(after, free[stage.device])
        end[number] = free[stage.device] = stage.begin + stage.takes
        del left[number]


def _loads(stages: Sequence[ClusterView]) -> dict[str, float]:
    """Return the seconds of a request by device; those that take turns each have their part."""
    loads: dict[str, float] = {}
    for stage in stages:
        for name in stage.devices:
            loads[name] = loads.get(name, 0.0) + stage.takes / len(stage.devices)
    return loads


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _us(seconds: float) -> str:
    return f"{seconds * _MICROSECONDS:.1f} µs"
