"""`select-clusters`: which ops of a device run as one, so that devices start rarely."""

from collections import Counter
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.structure.clusters import clustered_blocks, has_clusters, is_placed
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attribute_names import CANDIDATES
from braid.dialects.braid.clusters import Placement, device_name, set_placement
from braid.solvers.partition.clusters import ALONE, ColoredGraph, cluster
from braid.targets.machines.resolve import target_of

_Node = Operation | SSAValue


@dataclass(frozen=True)
class SelectClustersPass(ModulePass):
    """Puts neighbours on one device into one cluster, never across an op of another device.

    Neighbours are ops of a block that exchange a value or read the same one. No cluster waits for
    one that waits for it, also through others; control flow stands between what is before and
    behind it. There are as few clusters as possible, with a bound.

    In: `braid.device` on ops; those without one run on the target's default device. Out:
    `braid.cluster` and `braid.device` on every op that is computed at run time, for
    `apply-clusters`, and no `braid.candidates`. Decides nothing where no op is for another device
    than that, or where ops have ids already. `time_limit` is in seconds, for each block.

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
    time_limit: float = 10.0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Decides block by block; ids are unique in the module."""
        for inner in op.walk():
            inner.attributes.pop(CANDIDATES, None)
        default = target_of(op, self.target).default_device.name
        blocks = list(clustered_blocks(op))
        placed = [inner for block in blocks for inner in block.ops if is_placed(inner)]
        if has_clusters(op) or all(device_name(o) in (None, default) for o in placed):
            return
        expressions = ParameterExpressions()
        before, starts = Counter[str](), Counter[str]()
        bound = 0
        for block in blocks:
            known = {o for o in block.ops if o.results and expressions.all_known(o.results)}
            ops = [o for o in block.ops if is_placed(o) and o not in known]
            devices = {o: device_name(o) or default for o in ops}
            found = cluster(_graph_of(block, devices, known), time_limit=self.time_limit)
            first = sum(starts.values())
            members = [number for number in found.of if number != ALONE]
            for each, number in zip(ops, members, strict=True):
                set_placement(each, Placement(first + number, devices[each]))
            before.update(devices.values())
            by_number = dict(zip(members, devices.values(), strict=True))
            starts.update(by_number.values())
            bound += found.lower_bound
        total = sum(starts.values())
        each = ", ".join(f"{name}: {before[name]} → {starts[name]}" for name in sorted(starts))
        emit_remark(
            op,
            self.name,
            f"starts: {sum(before.values())} → {total} (at least {bound}): {each}",
            ops=sum(before.values()),
            cost=total,
            lower_bound=bound,
            gap=(total - bound) / total if total else 0.0,
            **starts,
        )


def _graph_of(block: Block, devices: dict[Operation, str], known: set[Operation]) -> ColoredGraph:
    """The ops of `block` by device, in order; arguments, control flow and all else stay alone.

    What is `known` before the model runs has a copy wherever it is read.
    """
    colors = {name: number for number, name in enumerate(dict.fromkeys(devices.values()))}
    number: dict[_Node, int] = {}
    color: list[int] = []
    operands: list[list[int]] = []

    def add(node: _Node, of: int, reads: list[int]) -> int:
        number[node] = len(color)
        color.append(of)
        operands.append(reads)
        return number[node]

    for op in block.ops:
        if op in known:
            continue
        values = dict.fromkeys(value for inner in op.walk() for value in inner.operands)
        nodes = dict.fromkeys(_node(v, block) for v in values if not _is_inside(v, op))
        reads = [number[n] if n in number else add(n, ALONE, []) for n in nodes if n not in known]
        add(op, colors[devices[op]] if op in devices else ALONE, reads)
    return ColoredGraph(color, operands)


def _is_inside(value: SSAValue, op: Operation) -> bool:
    """Whether `value` is defined in a region of `op`."""
    owner = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
    return owner is not None and op.is_ancestor(owner)


def _node(value: SSAValue, block: Block) -> _Node:
    """The op of `block` that makes `value`, or `value` where it comes from outside."""
    owner = value.owner
    return owner if isinstance(owner, Operation) and owner.parent is block else value
