"""`select-clusters`: which ops of a device run as one, so that devices start rarely."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.structure.clusters import clustered_blocks, has_clusters, is_placed
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.clusters import (
    Placement,
    device_name,
    placement_of,
    replicas_of,
    set_placement,
)
from braid.dialects.braid.movement import PadOp
from braid.passes.partition.min_gain import Gains
from braid.passes.partition.partition_graph import value_size
from braid.passes.partition.replicas import check_replicas
from braid.passes.sizes.likely_decisions import DecisionPass
from braid.solvers.partition.clusters import ALONE, ColoredGraph, cluster
from braid.support.byte_sizes import format_size
from braid.targets.backends import is_launched
from braid.targets.machines.resolve import target_of
from braid.targets.machines.target import Target

_Node = Operation | SSAValue
Devices: TypeAlias = tuple[str, ...]
"""The device of an op, and the devices that take turns with it."""


@dataclass(frozen=True)
class SelectClustersPass(DecisionPass):
    """Puts neighbours on one device into one cluster, never across an op of another device.

    Devices that take turns (`braid.replicas`), named in any order, count as one further device
    here; the first op of a cluster decides on which of them calls run.

    Neighbours are ops of a block that exchange a value or read the same one. Clusters never wait
    for each other in a cycle; control flow separates the ops before it from those after it. There
    are as few clusters as possible, and between so few as little is transferred as possible, both
    with a bound: a value goes once to each cluster that reads it, but its own, and to the host.

    In: `braid.device` on ops; those without one run on the target's default device. Out:
    `braid.cluster` and `braid.device` on every op that is computed at run time, for
    `apply-clusters`. Decides nothing where all ops run on that device, in the host's memory, or
    where ops have ids already. A cluster without which a request would take less than `min_gain`
    seconds longer is dissolved: its ops run on a device beside it, or the host. Each cluster has
    separate paddings, which some devices support in windows only. `time_limit` is in seconds, for
    each block.

    ```mlir
    %0 = braid.conv %x, %w … {braid.device = "npu:0"}
    %1 = braid.exp %0 … {braid.device = "cpu:0"}
    // becomes
    %0 = braid.conv %x, %w … {braid.cluster = 0 : i64, braid.device = "npu:0"}
    %1 = braid.exp %0 … {braid.cluster = 1 : i64, braid.device = "cpu:0"}
    ```
    """

    name = "select-clusters"

    target: str | None = None
    min_gain: float = 0.0
    time_limit: float = 10.0

    def __post_init__(self) -> None:
        if self.min_gain < 0:
            raise ValueError(f"min-gain is {self.min_gain:g}, expected seconds from 0 on")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Decide block by block; ids are unique in the module."""
        target = target_of(op, self.target)
        default = target.default_device.name
        blocks = list(clustered_blocks(op))
        placed = [inner for block in blocks for inner in block.ops if is_placed(inner)]
        if has_clusters(op):
            return
        check_replicas(placed, target)
        named = [device_name(o) or default for o in placed]
        if is_launched(target, named) or any(map(replicas_of, placed)):
            self._decide(ctx, op, blocks, target)

    def _decide(
        self, ctx: Context, module: ModuleOp, blocks: Sequence[Block], target: Target
    ) -> None:
        known = _known_ops(blocks)
        default = target.default_device.name
        devices = {
            o: (device_name(o) or default, *replicas_of(o))
            for block in blocks
            for o in block.ops
            if is_placed(o) and o not in known
        }
        before = Counter(map(_shown, devices.values()))
        found = [_clusters(block, devices, known, self.time_limit) for block in blocks]
        dissolved = self._dissolve(ctx, module, blocks, known, devices, target, found)
        first, starts = 0, Counter[str]()
        for clusters in found:
            for number, ops in enumerate(clusters.members, first):
                for each in ops:
                    device, *replicas = devices[ops[0]]
                    set_placement(each, Placement(number, device, tuple(replicas)))
            first += len(clusters.members)
            starts.update(_shown(devices[ops[0]]) for ops in clusters.members)
        for block in blocks:
            _copy_paddings(block)
        self._say(module, before, starts, found, dissolved)

    def _dissolve(
        self,
        ctx: Context,
        module: ModuleOp,
        blocks: Sequence[Block],
        known: set[Operation],
        devices: dict[Operation, Devices],
        target: Target,
        found: list["_BlockClusters"],
    ) -> int:
        """Move clusters that save less than `min_gain`, one by one, and return how many
        there were.
        """
        if not self.min_gain:
            return 0
        count = 0
        for function in dict.fromkeys(map(_function_of, blocks)):
            own = [place for place, block in enumerate(blocks) if _function_of(block) is function]
            gains = Gains(ctx, module, function, target, self.target)
            # Otherwise ops could move to and fro between clusters that cannot be merged.
            for _ in range(sum(len(found[place].members) for place in own)):
                members = [ops for place in own for ops in found[place].members]
                moved = gains.dissolved(devices, members, self.min_gain)
                if moved is None:
                    break
                ops, to = moved
                devices.update(dict.fromkeys(ops, (to,)))
                count += 1
                for place in own:
                    found[place] = _clusters(blocks[place], devices, known, self.time_limit)
        return count

    def _say(
        self,
        module: ModuleOp,
        before: Counter[str],
        starts: Counter[str],
        found: Sequence["_BlockClusters"],
        moved: int,
    ) -> None:
        total, bound = sum(starts.values()), sum(own.lower_bound for own in found)
        moves, least = sum(own.transfer for own in found), sum(own.transfer_bound for own in found)
        names = sorted(before | starts)
        each = ", ".join(f"{name}: {before[name]} → {starts[name]}" for name in names)
        few = f"; {moved} dissolved, which saved less than {self.min_gain:g} s" if moved else ""
        emit_remark(
            module,
            self.name,
            f"starts: {sum(before.values())} → {total} (at least {bound}): {each}{few}; "
            f"{format_size(moves)} to transfer (at least {format_size(least)})",
            ops=sum(before.values()),
            cost=total,
            lower_bound=bound,
            gap=(total - bound) / total if total else 0.0,
            transfer=moves,
            transfer_bound=least,
            **starts,
        )


@dataclass(frozen=True)
class _BlockClusters:
    """The ops of each cluster of a block; there are no fewer than `lower_bound`.

    This many bytes go from cluster to cluster in a run of the block.
    """

    members: list[list[Operation]]
    lower_bound: int
    transfer: int
    transfer_bound: int


def _copy_paddings(block: Block) -> None:
    """Replace paddings that other clusters read: these read the unpadded value instead."""
    for op in [op for op in block.ops if isinstance(op, PadOp)]:
        own, copies = placement_of(op), dict[Placement, SSAValue]()
        for use in list(op.results[0].uses):
            place = placement_of(use.operation)
            if own is None or place is None or place == own:
                continue
            if place not in copies:
                copy = op.clone()
                set_placement(copy, place)
                block.insert_op_after(copy, op)
                copies[place] = copy.results[0]
            use.operation.operands[use.index] = copies[place]
        if copies and not op.results[0].uses:
            block.erase_op(op)


def _clusters(
    block: Block, devices: dict[Operation, Devices], known: set[Operation], time_limit: float
) -> _BlockClusters:
    ops = [op for op in block.ops if op in devices]
    own = {op: devices[op] for op in ops}
    found = cluster(_graph_of(block, own, known), time_limit=time_limit)
    members: dict[int, list[Operation]] = {}
    numbers = (number for number in found.of if number != ALONE)
    for op, number in zip(ops, numbers, strict=True):
        members.setdefault(number, []).append(op)
    ordered = [members[number] for number in sorted(members)]
    return _BlockClusters(ordered, found.lower_bound, found.transfer, found.transfer_bound)


def _shown(devices: Devices) -> str:
    return " and ".join(sorted(devices))


def _known_ops(blocks: Sequence[Block]) -> set[Operation]:
    """Return the ops whose results are known before the model runs."""
    expressions = ParameterExpressions()
    every = (op for block in blocks for op in block.ops if op.results)
    return {op for op in every if expressions.all_known(op.results)}


def _function_of(block: Block) -> FuncOp:
    op = block.parent_op()
    while not isinstance(op, FuncOp):
        assert op is not None
        op = op.parent_op()
    return op


def _graph_of(
    block: Block, devices: dict[Operation, Devices], known: set[Operation]
) -> ColoredGraph:
    """Return the ops of `block` by device, in order; arguments, control flow and all else stay
    alone.

    A value that is `known` before the model runs is copied to each reader.
    """
    colors = {
        name: number for number, name in enumerate(dict.fromkeys(map(frozenset, devices.values())))
    }
    number: dict[_Node, int] = {}
    color: list[int] = []
    operands: list[list[int]] = []
    sizes: list[int] = []

    def add(node: _Node, of: int, reads: list[int]) -> int:
        number[node] = len(color)
        values = node.results if isinstance(node, Operation) else (node,)
        sizes.append(sum(value_size(v) for v in values if isinstance(v.type, TensorType)))
        color.append(of)
        operands.append(reads)
        return number[node]

    for op in block.ops:
        if op in known:
            continue
        values = dict.fromkeys(value for inner in op.walk() for value in inner.operands)
        nodes = dict.fromkeys(_node(v, block) for v in values if not _is_inside(v, op))
        reads = [number[n] if n in number else add(n, ALONE, []) for n in nodes if n not in known]
        add(op, colors[frozenset(devices[op])] if op in devices else ALONE, reads)
    return ColoredGraph(color, operands, sizes)


def _is_inside(value: SSAValue, op: Operation) -> bool:
    """Return whether `value` is defined in a region of `op`."""
    owner = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
    return owner is not None and op.is_ancestor(owner)


def _node(value: SSAValue, block: Block) -> _Node:
    """Return the op of `block` that makes `value`, or `value` where it comes from outside."""
    owner = value.owner
    return owner if isinstance(owner, Operation) and owner.parent is block else value
