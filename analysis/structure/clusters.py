"""Clusters as ids on ops: completing them after a rewrite, and their invariants.

Ops that a pass inserted have no id yet. Each op joins the first cluster that reads it, in an order
in which clusters can run. An op that no cluster reads joins the last cluster that it reads. An op
without either in its block becomes a cluster on the device of its readers. So no new dependence
between clusters arises, except along dependences that there were. An op with a device forms its own
cluster if the ops around it are on another device.
"""

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.sizes.open_forms import has_open_sizes
from braid.analysis.structure.nesting import blocks_outside_groups
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.analysis.structure.verification import InvalidIRError
from braid.dialects.braid.attribute_names import CLUSTER, DEVICE, PREPARED_KEYS
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.clusters import (
    Placement,
    device_name,
    placement_of,
    replicas_of,
    set_device,
    set_placement,
)
from braid.dialects.braid.regions import FusedOp
from braid.support.errors import BraidError, Note


def has_clusters(module: ModuleOp) -> bool:
    """Return whether ops of the module have cluster ids."""
    return any(CLUSTER in op.attributes for op in module.walk())


def is_placed(op: Operation) -> bool:
    """Return whether `op` belongs to a cluster: neither leaves nor control flow do."""
    return isinstance(op, TensorOp | FusedOp) and not is_leaf(op)


def complete_clusters(module: ModuleOp) -> None:
    """Give every op without a cluster one of those around it. Time is linear in the ops.

    Ops of open sizes join clusters of the device that the module names, which is the host.
    """
    host = module.attributes.get(DEVICE)
    alone: list[tuple[Operation, Block]] = []
    for block in clustered_blocks(module):
        missing = [op for op in block.ops if is_placed(op) and placement_of(op) is None]
        if not missing:
            continue
        if isinstance(host, StringAttr):
            for op in missing:
                if device_name(op) is None and has_open_sizes(op):
                    set_device(op, host.data)
        order = _run_order(block, missing) or ()
        rank = {placement: index for index, placement in enumerate(order)}
        for op in reversed(missing):
            readers = {p for r in _readers(op, block) if (p := placement_of(r)) is not None}
            if readers:
                _join(op, min(readers, key=lambda p: rank.get(p, -1)))
        for op in missing:
            made = {p for o in op.operands if (p := _maker(o.owner, block)) is not None}
            if placement_of(op) is None and made:
                _join(op, max(made, key=lambda p: rank.get(p, -1)))
        alone += [(op, block) for op in missing if placement_of(op) is None]
    if alone:
        _found_clusters(module, alone)


def _join(op: Operation, placement: Placement) -> None:
    """Make `op` one of the cluster, unless it is for another device."""
    if device_name(op) in (None, placement.device):
        set_placement(op, placement)


def _found_clusters(module: ModuleOp, alone: Sequence[tuple[Operation, Block]]) -> None:
    """Make clusters of ops without any around them, as between loops: where the loops run."""
    known = [p for block in clustered_blocks(module) for op in block.ops if (p := placement_of(op))]
    number = 1 + max((placement.cluster for placement in known), default=-1)
    for op, block in alone:
        around = (*_readers(op, block), *(o.owner for o in op.operands))
        inside = (i for owner in around if isinstance(owner, Operation) for i in owner.walk())
        near = [p.device for p in (*map(placement_of, inside), *known) if p is not None]
        if (device := device_name(op) or next(iter(near), None)) is not None:
            set_placement(op, Placement(number, device, replicas_of(op)))
            number += 1


def clusters_in_order(function: FuncOp) -> list[int]:
    """Return the numbers of the clusters in the order in which they become functions."""
    found: list[int] = []
    for block in blocks_outside_groups(function):
        found += [placement.cluster for placement in _run_order(block) or ()]
    return found


def verify_clusters(module: ModuleOp) -> None:
    """Check that ids are complete and that clusters can run one after the other.

    Raises `InvalidIRError` for an op without a cluster or device, a cluster on two devices or in
    two blocks, and clusters that depend on each other.
    """
    homes: dict[int, tuple[Operation, Placement]] = {}
    for block in clustered_blocks(module):
        for op in block.ops:
            if not is_placed(op):
                continue
            placement = placement_of(op)
            if placement is None:
                raise InvalidIRError(
                    f"'{op.name}' op has no {CLUSTER} with a {DEVICE}, as others have",
                    location=source_location(op),
                    hint=f"an op with '{CLUSTER} = 0 : i64' also has '{DEVICE} = \"cpu:0\"'",
                )
            first, known = homes.setdefault(placement.cluster, (op, placement))
            if known != placement or first.parent is not block:
                devices = " and ".join(placement.devices)
                where = f"on {devices}" if known != placement else "in another block"
                raise InvalidIRError(
                    f"'{op.name}' op is {where}, in cluster {placement.cluster}",
                    location=source_location(op),
                    notes=[Note("the cluster begins here", source_location(first))],
                    hint="ops of a cluster stand in one block and run on one device",
                )
        if _run_order(block) is None:
            raise _circle_error(_circle(block))


def verify_devices(module: ModuleOp, default: str) -> None:
    """Check that no op of a module without clusters is for another device than `default`.

    Raises `BraidError` for the first that is.
    """
    for block in clustered_blocks(module):
        for op in block.ops:
            devices = (device_name(op) or default, *replicas_of(op))
            if is_placed(op) and devices != (default,):
                raise BraidError(
                    f"'{op.name}' op is for {' and '.join(devices)}, and in no cluster",
                    location=source_location(op),
                    hint=f"give ops that run there together one '{CLUSTER} = 0 : i64'",
                )


def _circle_error(circle: Sequence[Operation]) -> InvalidIRError:
    """Return the error that clusters wait for each other; `circle` has one op of each."""
    placements = [(op, placement_of(op)) for op in circle]
    numbers = [(op, p.cluster) for op, p in placements if p is not None]
    named = ", ".join(str(number) for _, number in numbers)
    return InvalidIRError(
        f"clusters of this block depend on each other: {named}",
        location=source_location(circle[0]),
        notes=[
            Note(f"cluster {number} begins here", source_location(op)) for op, number in numbers
        ],
        hint="separate the ops before and after another cluster into two clusters",
    )


def clustered_blocks(module: ModuleOp) -> Iterator[Block]:
    """Return the blocks of functions that run with the model, and are not a device's already.

    Called functions are not among them: once inlined, their ops run where the call is.
    """
    called = {op.callee.string_value() for op in module.walk() if isinstance(op, CallOp)}
    for function in module.ops:
        if not isinstance(function, FuncOp) or not function.body.blocks:
            continue
        is_own = not {PREPARED_KEYS, DEVICE} & function.attributes.keys()
        if is_own and function.sym_name.data not in called:
            yield from blocks_outside_groups(function)


def _readers(op: Operation, block: Block) -> Iterator[Operation]:
    """Yield the ops of `block` that read results of `op`, or contain an op that does."""
    for result in op.results:
        for use in result.uses:
            if (reader := _in_block(use.operation, block)) is not None:
                yield reader


def _in_block(op: Operation, block: Block) -> Operation | None:
    """Return `op`, or the op around it that stands in `block`."""
    current: Operation | None = op
    while current is not None and current.parent is not block:
        current = current.parent_op()
    return current


def _maker(owner: Operation | Block, block: Block) -> Placement | None:
    if isinstance(owner, Block) or owner.parent is not block:
        return None
    return placement_of(owner)


def units_of(block: Block) -> dict[Operation, int]:
    """Return a number for each op of `block`: ops of one cluster share one, all others have their
    own."""
    numbers: dict[int, int] = {}
    units: dict[Operation, int] = {}
    count = 0
    for op in block.ops:
        placement = placement_of(op)
        if placement is None:
            units[op] = count
        else:
            units[op] = numbers.setdefault(placement.cluster, count)
        count += units[op] == count
    return units


def order_of_units(block: Block, units: Mapping[Operation, int]) -> list[int] | None:
    """Return the units in an order in which they can run, as near to the block's as that allows.

    The result is None if units wait for each other.
    """
    after = _readers_of_units(block, units)
    order = _topological(after)
    return order if len(order) == len(after) else None


def _readers_of_units(block: Block, units: Mapping[Operation, int]) -> list[set[int]]:
    """Return for each unit the other units that read its results."""
    after: list[set[int]] = [set() for _ in range(max(units.values(), default=-1) + 1)]
    for op, unit in units.items():
        after[unit].update(units[reader] for reader in _readers(op, block))
        after[unit].discard(unit)
    return after


def _look_through(after: list[set[int]], hidden: Sequence[int]) -> None:
    """Connect units through the `hidden` ops between them, which are given last first."""
    seen: dict[int, set[int]] = {}
    for unit in hidden:
        seen[unit] = {far for near in after[unit] for far in seen.get(near, (near,))}
        after[unit] = set()
    for unit, others in enumerate(after):
        if not others.isdisjoint(seen):
            after[unit] = {far for near in others for far in seen.get(near, (near,))} - {unit}


def _topological(after: Sequence[set[int]]) -> list[int]:
    """Return a topological order by Kahn's algorithm (1962), the lowest number first, without
    cycles.
    """
    missing = [0] * len(after)
    for others in after:
        for other in others:
            missing[other] += 1
    ready = [unit for unit, count in enumerate(missing) if not count]
    heapify(ready)
    order: list[int] = []
    while ready:
        unit = heappop(ready)
        order.append(unit)
        for other in after[unit]:
            missing[other] -= 1
            if not missing[other]:
                heappush(ready, other)
    return order


def _circle(block: Block) -> list[Operation]:
    """Return the first ops of some units of which each waits for the next, and the last for the
    first.
    """
    units = units_of(block)
    after = _readers_of_units(block, units)
    first = {unit: op for op, unit in reversed(units.items())}
    waiting = sorted({*first} - {*_topological(after)})
    path = waiting[:1]
    while path[-1] not in path[:-1]:
        path.append(next(unit for unit in waiting if path[-1] in after[unit]))
    return [first[unit] for unit in path[path.index(path[-1]) : -1]]


def _run_order(block: Block, missing: Sequence[Operation] = ()) -> list[Placement] | None:
    """Return the clusters of `block` in an order in which they can run; None if units wait for each
    other.

    Ops that are `missing` in clusters, in their order, are not stations between these: one that
    stands between two of one cluster may join it.
    """
    units = units_of(block)
    after = _readers_of_units(block, units)
    _look_through(after, [units[op] for op in reversed(missing)])
    order = _topological(after)
    if len(order) != len(after):
        return None
    of_unit = {unit: p for op, unit in units.items() if (p := placement_of(op)) is not None}
    return [of_unit[unit] for unit in order if unit in of_unit]
