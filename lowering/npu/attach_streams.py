"""`attach-streams`: the instruction streams of what a chip runs of each function."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import cast

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.diagnostics.warnings import emit_warning
from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.structure.clusters import (
    complete_clusters,
    has_clusters,
    order_of_units,
    units_of,
)
from braid.dialects.braid.attribute_names import SCHEDULE, STREAM, STREAMS
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.clusters import placement_of
from braid.dialects.braid.variants import public_functions
from braid.lowering.npu.build_stream import BuiltStream, build_stream
from braid.lowering.npu.select_stream_splits import schedule_of_part
from braid.lowering.npu.stream_parts import StreamPart, stream_parts
from braid.lowering.npu.stream_program import StreamProgram
from braid.lowering.npu.streamed_group import StreamedGroup, group_members
from braid.support.object_cache import default_cache
from braid.targets.machines.resolve import target_of
from braid.targets.simulator.instructions import Stream, to_text
from braid.targets.simulator.simulate import simulate


@dataclass(frozen=True)
class AttachStreamsPass(ModulePass):
    """Compiles what the device of each function runs to instruction streams, as an attribute.

    In: ops that fit the device, and none that are grouped; `braid.schedule` on the ops of a stream
    decides its order, and is removed. Out: `braid.streams` on the function: the text of each
    stream, how often it is expected to run, and the simulated time of one run. Adjacent ops form
    one stream; control flow, and ops that the device does not support, run on the host. A function
    without clusters becomes one stream; with clusters there is one stream for each `cluster` on a
    chip. With `devices`, only these chips get streams. The order of each subgraph is searched for
    `search_seconds` at most, by `jobs` processes.

    If a device executes streams, the ops of a cluster become one group with `braid.stream`: the
    stream and its kernels. If a stream has no addresses, its ops stay, and a warning says that the
    host's kernels will compute them. The same holds for ops whose stream has no instructions:
    views.

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32>
    // … attributes {braid.streams = [{text = "load 0 16 …", executions = 1.0 : f64, …}]}
    ```
    """

    name = "attach-streams"

    target: str | None = None
    search_seconds: float = 1.0
    jobs: int = 1
    devices: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Attach them; raises BraidError as `build_stream`."""
        target = target_of(op, self.target)
        if has_clusters(op):
            complete_clusters(op)  # splits inserted ops, which join the clusters of their readers
        counts = ExecutionCounts.of(op)
        for function in public_functions(op):
            built: list[BuiltStream] = []
            entries = _known(function, self.devices)
            grouped: list[tuple[StreamPart, StreamProgram, Stream, float, float]] = []
            total = 0.0
            for part in stream_parts(function, target, self.devices):
                chip = target.backend_of(target.device(part.device))
                order = schedule_of_part(part).order(self.search_seconds)
                for member in part.members:
                    member.attributes.pop(SCHEDULE, None)
                stream = build_stream(part.alone, chip, default_cache(), order, jobs=self.jobs)
                seconds = simulate(stream.stream, chip).seconds
                executions = counts.of_block(part.block)
                text = replace(stream.stream, target=target.name)
                built.append(stream)
                entries.append(_entry(to_text(text), seconds, executions, part))
                if part.cluster is not None and target.device(part.device).executes_streams:
                    grouped.append((part, stream.program, text, seconds, executions))
                total += seconds * executions
            function.attributes[STREAMS] = ArrayAttr(entries)
            for part, program, text, seconds, executions in grouped:
                _group(part, program, text, seconds, executions)
            self._report(op, built, total)

    def _report(self, module: ModuleOp, built: Sequence[BuiltStream], seconds: float) -> None:
        subgraphs = sum(one.subgraphs for one in built)
        compiled = sum(one.compiled for one in built)
        instructions = sum(len(one.stream.instructions) for one in built)
        homeless = sum(one.homeless for one in built)
        emit_remark(
            module,
            self.name,
            f"{subgraphs} subgraphs: {compiled} compiled, {subgraphs - compiled} reused; "
            f"{instructions} instructions, {1e6 * seconds:.3f} us"
            + (f"; {homeless} buffers do not fit in one piece" if homeless else ""),
            streams=len(built),
            instructions=instructions,
            seconds=seconds,
        )


def _known(function: func.FuncOp, devices: Collection[str]) -> list[DictionaryAttr]:
    """Return the streams that it has already, of other devices or of clusters that are groups."""
    known = function.attributes.get(STREAMS)
    if known is None:
        return []
    groups = [placement_of(op) for op in function.walk() if STREAM in op.attributes]
    grouped = {(each.device, each.cluster) for each in groups if each is not None}

    def stays(entry: DictionaryAttr) -> bool:
        device, cluster = cast(StringAttr, entry.data["device"]).data, entry.data.get("cluster")
        if isinstance(cluster, IntegerAttr) and (device, cluster.value.data) in grouped:
            return True
        return bool(devices) and device not in devices

    return [entry for entry in cast(ArrayAttr[DictionaryAttr], known) if stays(entry)]


def _entry(text: str, seconds: float, executions: float, part: StreamPart) -> DictionaryAttr:
    entry: dict[str, Attribute] = {
        "text": StringAttr(text),
        "seconds": FloatAttr(seconds, f64),
        "executions": FloatAttr(executions, f64),
        "device": StringAttr(part.device),
    }
    if part.cluster is not None:
        entry["cluster"] = IntegerAttr(part.cluster, i64)
    return DictionaryAttr(entry)


def _group(
    part: StreamPart, program: StreamProgram, stream: Stream, seconds: float, executions: float
) -> None:
    """Make one group of a part that its stream can compute; else report what will compute it."""
    members = part.members
    if not stream.executes or not all(isinstance(op, TensorOp) for op in members):
        if program.homeless:
            emit_warning(
                members[0],
                f"the stream of cluster {part.cluster} on '{part.device}' has no addresses for "
                f"{program.homeless} buffers: kernels of the host compute its ops instead",
                hint="split ops into smaller parts, or give the chip more memory",
            )
        return
    if not stream.instructions:
        return
    about = StreamedGroup.from_program(program, stream, part.alone, seconds, executions)
    _gather(part)
    group_members(part, about)


def _gather(part: StreamPart) -> None:
    """Reorder the block so that members are contiguous."""
    block = part.block
    last = block.last_op
    assert last is not None
    units = units_of(block)
    order = order_of_units(block, units)
    assert order is not None, "verified clusters can be ordered"
    by_unit: dict[int, list[Operation]] = {}
    for op, unit in units.items():
        by_unit.setdefault(unit, []).append(op)
    for unit in order:
        for op in by_unit[unit]:
            if op is not last:
                op.detach()
                block.insert_op_before(op, last)
