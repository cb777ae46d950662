"""`insert-channels`: how many requests may be between which launches of a stream."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    f64,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.execution.stages import Channel, Place, StageGraph, stage_graph
from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.analysis.structure.functions import functions_beside
from braid.dialects.braid.attribute_names import (
    HOST_STAGE,
    REQUESTS,
    SLOTS,
    STAGE_SECONDS,
)
from braid.dialects.braid.clusters import device_name, replicas_of
from braid.dialects.braid.sizes import is_open
from braid.dialects.braid.variants import public_functions
from braid.passes.partition.host_stages import outline_host_stages
from braid.solvers.partition.channels import Channel as Slots
from braid.solvers.partition.channels import Pipeline, channel_depths
from braid.support.byte_sizes import format_size
from braid.targets.costs.launch_times import LaunchTimes
from braid.targets.machines.resolve import target_of

HOST = "host"
"""The worker of functions that run on the thread that launches them."""
CALLER = 0
"""The first stage of a pipeline: whoever hands requests in, which takes no time."""
DOUBLE = 2
"""Slots that a channel has in any case: one is read while the next is written."""
AT_THE_ENDS = 2
"""Requests beyond those in the pipeline: one waits to enter it, one for whoever takes results."""


@dataclass(frozen=True)
class InsertChannelsPass(ModulePass):
    """Joins the launches of a function by bounded channels, for streams of requests.

    In: `braid.launch` in the top blocks of public functions, as `apply-clusters` leaves them. Out:
    `braid.slots` on each launch, the number of buffers of each of its results, which consecutive
    requests take in turn (0 for a result of the function, which is in the caller's buffer);
    `braid.stage_seconds`, its expected time, also on each function of a device; and
    `braid.requests` on the function, the number of requests in flight. There are as few bytes of
    slots as let results come as fast as the busiest device makes them, at least two slots a
    channel, and `extra` more. Control flow beside launches becomes a function of the host
    (`braid.host_stage`), a stage as well. A function that computes anything else beside its
    launches, such as scalars that control flow hands on, gets no channels: streams run that as a
    whole. So they do a model with open sizes.

    ```mlir
    %y, %t = braid.launch async [] @cluster_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %y, %t = braid.launch async [] @cluster_0(%x)
        {braid.slots = array<i64: 2>, braid.stage_seconds = 1.0e-6 : f64} : …
    ```
    """

    name = "insert-channels"

    target: str | None = None
    extra: int = 0
    time_limit: float = 2.0

    def __post_init__(self) -> None:
        if self.extra < 0:
            raise ValueError(f"extra is {self.extra}, expected slots from 0 on")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Decide function by function."""
        if is_open(op):
            return
        target, own = target_of(op, self.target), [f for f in public_functions(op) if f.body.blocks]
        for function in own:
            outline_host_stages(function, op, target.host)
        functions = functions_beside(op)
        times = LaunchTimes.on(target, functions, ExecutionCounts.of(op))
        for function in functions.values():
            if device_name(function) is not None and HOST_STAGE not in function.attributes:
                function.attributes[STAGE_SECONDS] = FloatAttr(times.of(function), f64)
        for function in own:
            if (graph := stage_graph(function)) is not None:
                callees = [functions[s.callee.string_value()] for s in graph.stages]
                seconds = [times.of(callee) for callee in callees]
                workers = [_workers(callee) for callee in callees]
                self._insert(function, graph, seconds, workers)

    def _insert(
        self,
        function: FuncOp,
        graph: StageGraph,
        seconds: Sequence[float],
        workers: Sequence[Sequence[str]],
    ) -> None:
        """Write the depths, and report them."""
        pipeline = _pipeline(function, graph, seconds, workers)
        found = channel_depths(pipeline, time_limit=self.time_limit)
        least = found.of[: len(graph.channels)]
        slots = [max(depth, DOUBLE) + self.extra for depth in least]
        requests = max(found.of[-1], DOUBLE) + AT_THE_ENDS + self.extra
        for stage, places, time in zip(graph.stages, graph.writes, seconds, strict=True):
            depths = [slots[p.number] if isinstance(p, Channel) else 0 for p in places]
            stage.attributes[SLOTS] = DenseArrayBase.from_list(i64, depths)
            stage.attributes[STAGE_SECONDS] = FloatAttr(time, f64)
        function.attributes[REQUESTS] = IntegerAttr(requests, i64)
        size = sum(
            _bytes([value]) * depth for value, depth in zip(graph.channels, slots, strict=True)
        )
        loads = {name: 0.0 for names in workers for name in names}
        for names, time in zip(workers, seconds, strict=True):
            for name in names:
                loads[name] += time / len(names)
        busiest = max(loads, key=lambda name: loads[name])
        shown = f"{min(slots)} to {max(slots)} slots" if slots else "no slots"
        emit_remark(
            function,
            self.name,
            f"{len(graph.stages)} stages on {', '.join(loads)}: a result each "
            f"{found.interval * 1e-6:.3f} ms, busiest is {busiest} with {loads[busiest] * 1e3:.3f} "
            f"ms; {len(slots)} channels of {shown}, {format_size(size)}; {requests} requests",
            stages=len(graph.stages),
            channels=len(slots),
            bytes=size,
            requests=requests,
            cost=found.interval * 1e-9,
            lower_bound=min(loads[busiest], pipeline.bound * 1e-9),
            is_least=found.is_least,
            slots=",".join(map(str, slots)),
        )


def _pipeline(
    function: FuncOp,
    graph: StageGraph,
    seconds: Sequence[float],
    workers: Sequence[Sequence[str]],
) -> Pipeline:
    """Return the stages after the caller's; the last channel is the caller's, of whole requests.

    A value in a buffer of the caller that other stages read is a channel without bytes.
    """
    every = dict.fromkeys(name for names in workers for name in names)
    numbers = {name: 1 + number for number, name in enumerate(every)}
    channels = [
        Slots(1 + source, _readers(graph, Channel(number)), _bytes([value]))
        for number, (value, source) in enumerate(zip(graph.channels, graph.sources, strict=True))
    ]
    handed_on = [
        Slots(1 + source, readers, 0)
        for source, places in enumerate(graph.writes)
        for place in places
        if not isinstance(place, Channel) and (readers := _readers(graph, place))
    ]
    terminator = function.body.block.last_op
    assert terminator is not None
    ports = _bytes([*function.body.block.args, *terminator.operands])
    stages = tuple(range(1, 1 + len(graph.stages)))
    return Pipeline(
        [CALLER, *(round(1e9 * time) for time in seconds)],
        [CALLER, *(numbers[names[0]] for names in workers)],
        [*channels, *handed_on, Slots(CALLER, stages, ports)],
        {stage: [numbers[n] for n in names[1:]] for stage, names in enumerate(workers, 1)},
    )


def _readers(graph: StageGraph, place: Place) -> tuple[int, ...]:
    return tuple(1 + stage for stage in graph.readers(place))


def _bytes(values: Sequence[SSAValue]) -> int:
    return sum(storage_bytes(value.type) for value in values)


def _workers(function: FuncOp) -> Sequence[str]:
    """Return the workers that run a function in a stream: its device and replicas, or a host
    thread.
    """
    if HOST_STAGE in function.attributes:
        return (HOST,)
    return (device_name(function) or "", *replicas_of(function))
