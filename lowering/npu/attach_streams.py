"""`attach-streams`: the instruction streams of what a chip runs of each function."""

from collections.abc import Collection, Iterator, Sequence
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
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.diagnostics.warnings import emit_warning
from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.structure.clusters import (
    complete_clusters,
    has_clusters,
    order_of_units,
    units_of,
)
from braid.analysis.structure.nesting import blocks_outside_groups
from braid.dialects.braid.attribute_names import STREAM, STREAMS
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.clusters import Placement, placement_of
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.regions import GroupOp
from braid.dialects.braid.variants import public_functions
from braid.lowering.npu.build_stream import BuiltStream, SubgraphOptions, build_stream
from braid.lowering.npu.stream_program import StreamProgram
from braid.lowering.npu.streamed_group import StreamedGroup, group_members
from braid.passes.order.block_graph import LEAVES
from braid.support.object_cache import default_cache
from braid.targets.costs.backend_support import is_supported
from braid.targets.machines.resolve import device_of, runs_on, target_of
from braid.targets.machines.target import BackendDescription, Target
from braid.targets.simulator.instructions import Stream, to_text
from braid.targets.simulator.simulate import simulate


@dataclass(frozen=True)
class AttachStreamsPass(ModulePass):
    """Compiles what the device of each function runs to instruction streams, as an attribute.

    In: ops that fit the device, and none that are grouped. Out: `braid.streams` on
    the function: the text of each stream, how often it is expected to run, and the simulated time
    of one run. Ops that stand together are one stream; control flow, and ops that the device does
    not run, are the host's. Of a function without these there is one stream, of ops
    with clusters one for each `cluster` of a chip; with `devices` only those of these chips. The
    order of each subgraph is searched for `search_seconds` at most, by `jobs` processes.

    For a device that executes streams, the ops of a cluster become one group with `braid.stream`:
    the stream, and its kernels. Where a stream has no addresses, the ops stay, the host's kernels
    will compute them, and a warning says so. So do those of a stream without instructions: views.

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
            complete_clusters(op)  # What splits have inserted is of the clusters that read it.
        counts = ExecutionCounts.of(op)
        options = SubgraphOptions(search_seconds=self.search_seconds)
        for function in public_functions(op):
            built: list[BuiltStream] = []
            entries = _known(function, self.devices)
            grouped: list[tuple[_Part, StreamProgram, Stream, float, float]] = []
            total = 0.0
            for part in _parts_of(function, target, self.devices):
                chip = target.backend_of(target.device(part.device))
                stream = build_stream(part.alone, chip, default_cache(), options, jobs=self.jobs)
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
            + (f"; {homeless} buffers have no room in one piece" if homeless else ""),
            streams=len(built),
            instructions=instructions,
            seconds=seconds,
        )


@dataclass(frozen=True)
class _Part:
    """What a chip runs at once: `alone` in a block, of what stands in `block`."""

    block: Block
    alone: Block
    device: str
    cluster: int | None = None
    members: tuple[Operation, ...] = ()


def _known(function: func.FuncOp, devices: Collection[str]) -> list[DictionaryAttr]:
    """The streams that it has already, of other devices or of clusters that are groups."""
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


def _entry(text: str, seconds: float, executions: float, part: _Part) -> DictionaryAttr:
    entry: dict[str, Attribute] = {
        "text": StringAttr(text),
        "seconds": FloatAttr(seconds, f64),
        "executions": FloatAttr(executions, f64),
        "device": StringAttr(part.device),
    }
    if part.cluster is not None:
        entry["cluster"] = IntegerAttr(part.cluster, i64)
    return DictionaryAttr(entry)


def _parts_of(function: func.FuncOp, target: Target, devices: Collection[str]) -> Iterator[_Part]:
    """What chips run of the function; where ops have clusters, each of a chip's clusters."""
    clusters: dict[Placement, list[Operation]] = {}
    for block in blocks_outside_groups(function):
        for op in block.ops:
            if STREAM not in op.attributes and (placement := placement_of(op)) is not None:
                clusters.setdefault(placement, []).append(op)
    if not clusters and runs_on(function, devices, target):
        device = device_of(function, target)
        for block, alone in _parts(function.body.block, target.backend_of(device)):
            yield _Part(block, alone, device.name)
    for placement, ops in clusters.items():
        chip = target.backend_of(target.device(placement.device))
        block = ops[0].parent
        if devices and placement.device not in devices:
            continue
        if chip.issue is not None and block is not None and all(_runs_on(op, chip) for op in ops):
            for _, alone in _alone(block, ops):
                yield _Part(block, alone, placement.device, placement.cluster, (*ops,))


def _parts(block: Block, chip: BackendDescription) -> Iterator[tuple[Block, Block]]:
    """What `chip` runs of `block` and the blocks in it: where it stands, and alone in a block."""
    run: list[Operation] = []
    whole = True
    parts: list[tuple[Block, Block]] = []
    for op in [*block.ops]:
        if op.has_trait(IsTerminator):
            continue
        if isinstance(op, LEAVES) or _runs_on(op, chip):
            run.append(op)
            continue
        whole = False
        parts += _alone(block, run)
        run = []
        for region in op.regions if not isinstance(op, GroupOp) else ():
            for inner in region.blocks:
                parts += _parts(inner, chip)
    is_function = isinstance(block.parent_op(), func.FuncOp)
    yield from [(block, block)] if whole and is_function else [*parts, *_alone(block, run)]


def _runs_on(op: Operation, chip: BackendDescription) -> bool:
    return isinstance(op, TensorOp | GroupOp | OpaqueOp) and is_supported(op, chip)


def _alone(block: Block, run: Sequence[Operation]) -> Iterator[tuple[Block, Block]]:
    """Ops that stand together as a block that takes what they read and returns what others read."""
    if all(isinstance(op, LEAVES) for op in run):
        return
    inside = set(run)
    results = [result for op in run for result in op.results]
    handed = [r for r in results if any(not _is_in(use.operation, inside) for use in r.uses)]
    inputs = _inputs(run)
    alone = Block(arg_types=[value.type for value in inputs])
    values: dict[SSAValue, SSAValue] = dict(zip(inputs, alone.args, strict=True))
    for op in run:
        alone.add_op(op.clone(values))
    alone.add_op(func.ReturnOp(*(values[value] for value in handed)))
    types = [value.type for value in handed]
    func.FuncOp("part", (alone.arg_types, types), Region(alone))
    yield block, alone


def _inputs(run: Sequence[Operation]) -> list[SSAValue]:
    """What the ops read of others, each once."""
    inside = set(run)
    return list(dict.fromkeys(v for op in run for v in _read_by(op) if v.owner not in inside))


def _group(
    part: _Part, program: StreamProgram, stream: Stream, seconds: float, executions: float
) -> None:
    """Makes one group of a part that its stream can compute; else says what will."""
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
    group_members(_gathered(members), part.alone, _inputs(members), about)


def _gathered(members: Sequence[Operation]) -> Sequence[Operation]:
    """The ops of a cluster, which stand together then: their block is put into another order."""
    block = members[0].parent
    assert block is not None
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
    return members


def _read_by(op: Operation) -> Iterator[SSAValue]:
    """What the op reads, in its regions too, of values from outside of it."""
    for inner in op.walk():
        for operand in inner.operands:
            owner = operand.owner
            around = owner if isinstance(owner, Operation) else owner.parent_op()
            if not _is_in(around, {op}):
                yield operand


def _is_in(op: Operation | None, ops: set[Operation]) -> bool:
    while op is not None:
        if op in ops:
            return True
        op = op.parent_op()
    return False
