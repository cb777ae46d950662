"""`apply-clusters`: every cluster becomes a function of its device, and a launch in its place."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.sizes.open_forms import has_open_sizes
from braid.analysis.structure.clusters import (
    clustered_blocks,
    complete_clusters,
    has_clusters,
    order_of_units,
    units_of,
    verify_clusters,
    verify_devices,
)
from braid.analysis.structure.nesting import blocks_outside_groups
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.attribute_names import CANDIDATES, DEVICE, STREAMS
from braid.dialects.braid.clusters import (
    Placement,
    clear_placement,
    device_name,
    placement_of,
    set_device,
    set_tolerance,
    tolerance_of,
)
from braid.dialects.braid.launch import AwaitOp, LaunchOp
from braid.dialects.braid.names import names_of, set_names
from braid.dialects.braid.sizes import is_open
from braid.dialects.braid.variants import free_symbols
from braid.passes.partition.replicas import check_replicas
from braid.support.errors import BraidError
from braid.targets.machines.resolve import target_of

CLUSTER_PREFIX = "cluster_"


@dataclass(frozen=True)
class ApplyClustersPass(ModulePass):
    """Makes one private function `@cluster_N` of every cluster, and launches it.

    In: `braid.device` and `braid.cluster` on every op that is computed at run time. Out: functions
    with `braid.device`, and `braid.replicas` and the largest `braid.tolerance` where the ops have
    them, into which the parameters and constants that they read are copied, and where the ops stood
    `braid.launch async`, in an order in which they can run. A launch depends on the launches whose
    results it reads. Everything else (other ops, control flow, results of the block) reads the
    results of a `braid.await` before the first such reader; launches in a region of control flow
    are awaited there. If sizes of the module are open, clusters of the host stay in place, and
    `braid.device` on the module says that the host runs them. Raises InvalidIRError for ids that
    are not complete, and clusters that depend on each other, and BraidError for an op that is in no
    cluster and for another device than `target` has by default.

    ```mlir
    %0 = braid.conv %x, %w … {braid.cluster = 0 : i64, braid.device = "npu:0"}
    // becomes
    %0, %t = braid.launch async [] @cluster_0(%x) : (tensor<…>) -> tensor<…>
    %1 = braid.await [%t] %0 : (tensor<…>) -> tensor<…>
    ```
    """

    name = "apply-clusters"

    target: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Outline the clusters of every function that runs with the model."""
        target = target_of(op, self.target)
        if not has_clusters(op):
            verify_devices(op, target.default_device.name)
            return
        check_replicas([each for block in clustered_blocks(op) for each in block.ops], target)
        inline = set[str]()
        if is_open(op):
            inline.add(target.host)
            op.attributes[DEVICE] = StringAttr(target.host)
        complete_clusters(op)
        verify_clusters(op)
        if inline:
            _check_open(op, target.host)
        symbols = free_symbols(op, CLUSTER_PREFIX)
        for function in list(runtime_functions(op)):
            if device_name(function) is None:
                starts: dict[str, int] = {}
                for block in list(blocks_outside_groups(function)):
                    for device in _apply(block, op, symbols, inline):
                        starts[device] = starts.get(device, 0) + 1
                _drop_unread(function)
                emit_remark(
                    function,
                    self.name,
                    f"{sum(starts.values())} launches: "
                    + ", ".join(f"{count} on {name}" for name, count in sorted(starts.items())),
                    **starts,
                )


def _check_open(module: ModuleOp, host: str) -> None:
    """Raise BraidError for an op of open sizes in a cluster of another device than the host."""
    for block in clustered_blocks(module):
        for op in block.ops:
            device = device_name(op)
            if device not in (None, host) and has_open_sizes(op):
                raise BraidError(
                    f"'{op.name}' op has open sizes and {DEVICE} = \"{device}\", expected "
                    f'"{host}": the memory of functions that are launched is fixed',
                    location=source_location(op),
                    hint=f"run 'assign-devices' before, or write {DEVICE} = \"{host}\" there",
                )


def _drop_unread(function: FuncOp) -> None:
    """Erase parameters and constants that clusters have copies of: they would be stored twice."""
    for op in [op for op in function.walk() if is_leaf(op)]:
        if not any(result.uses for result in op.results):
            op.detach()
            op.erase()


def _apply(
    block: Block, module: ModuleOp, symbols: Iterator[str], inline: Collection[str]
) -> list[str]:
    """Outline the clusters of one block, and return the device of each launch.

    Those on the devices `inline` stay in the block.
    """
    units = units_of(block)
    order = order_of_units(block, units)
    assert order is not None, "verified clusters can be ordered"
    members: dict[int, list[Operation]] = {}
    for op, unit in units.items():
        members.setdefault(unit, []).append(op)
    launches: list[LaunchOp] = []
    devices: list[str] = []
    last = block.last_op
    assert last is not None
    for unit in order:
        ops = members[unit]
        placement = placement_of(ops[0])
        if placement is None or placement.device in inline:
            for op in (op for op in ops if op is not last):
                _move_before(op, last)
                if placement is not None:
                    _clear_decisions(op)
            continue
        launch = _launch(ops, placement, next(symbols), module)
        block.insert_op_before(launch, last)
        _replace(ops, launch)
        launches.append(launch)
        devices.append(placement.device)
    for launch in launches:
        _await(launch)
    return devices


def _move_before(op: Operation, other: Operation) -> None:
    block = op.parent
    assert block is not None
    op.detach()
    block.insert_op_before(op, other)


def _escaping(members: Sequence[Operation]) -> list[SSAValue]:
    """Return the results that are read outside of the cluster."""
    inside = set(members)

    def is_member(op: Operation) -> bool:
        current: Operation | None = op
        while current is not None and current not in inside:
            current = current.parent_op()
        return current is not None

    results = (result for op in members for result in op.results)
    return [r for r in results if any(not is_member(use.operation) for use in r.uses)]


def _launch(
    members: Sequence[Operation], placement: Placement, symbol: str, module: ModuleOp
) -> LaunchOp:
    """Add the function of a cluster to the module, and return its launch, which is not inserted
    yet.
    """
    inside = {result for op in members for result in op.results}
    read = dict.fromkeys(operand for op in members for operand in op.operands)
    outside = [value for value in read if value not in inside]
    leaves = [v.owner for v in outside if isinstance(v.owner, Operation) and is_leaf(v.owner)]
    operands = [v for v in outside if not (isinstance(v.owner, Operation) and is_leaf(v.owner))]
    assert all(isinstance(value.type, TensorType) for value in operands)
    escaping = _escaping(members)
    body = Block(arg_types=[value.type for value in operands])
    mapping: dict[SSAValue, SSAValue] = dict(zip(operands, body.args, strict=True))
    for op in (*dict.fromkeys(leaves), *members):
        copy = op.clone(mapping)
        _clear_decisions(copy)
        body.add_op(copy)
        mapping.update(zip(op.results, copy.results, strict=True))
    body.add_op(ReturnOp(*(mapping[value] for value in escaping)))
    signature = FunctionType.from_lists([v.type for v in operands], [v.type for v in escaping])
    function = FuncOp(symbol, signature, Region(body), visibility=StringAttr("private"))
    set_device(function, placement.device, placement.replicas)
    set_tolerance(function, max(tolerance_of(inner) for op in members for inner in op.walk()))
    _take_streams(members[0], placement, function)
    module.body.block.add_op(function)
    launch = LaunchOp(symbol, operands, [v.type for v in escaping], _tokens(operands))
    launch.location = members[0].location
    set_names(launch, [name for op in members for name in names_of(op)])
    return launch


def _take_streams(member: Operation, placement: Placement, function: FuncOp) -> None:
    """Move the streams of the cluster from the function that it was in to its own."""
    around = member.parent_op()
    while around is not None and not isinstance(around, FuncOp):
        around = around.parent_op()
    entries = None if around is None else around.attributes.get(STREAMS)
    if around is None or not isinstance(entries, ArrayAttr):
        return
    all_entries = cast(ArrayAttr[DictionaryAttr], entries).data
    number = IntegerAttr(placement.cluster, i64)
    own = [entry for entry in all_entries if entry.data.get("cluster") == number]
    if own:
        function.attributes[STREAMS] = ArrayAttr(own)
        around.attributes[STREAMS] = ArrayAttr([e for e in all_entries if e not in own])


def _clear_decisions(op: Operation) -> None:
    """Remove what was decided on `op` and the ops in it: the function that they are in says it."""
    for inner in op.walk():
        clear_placement(inner)
        inner.attributes.pop(CANDIDATES, None)


def _tokens(values: Sequence[SSAValue]) -> list[SSAValue]:
    """Return the tokens of the launches that make `values`."""
    owners = dict.fromkeys(value.owner for value in values)
    return [owner.token for owner in owners if isinstance(owner, LaunchOp)]


def _replace(members: Sequence[Operation], launch: LaunchOp) -> None:
    for old, new in zip(_escaping(members), launch.outputs, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    for op in reversed(members):
        op.detach()
        op.erase()


def _await(launch: LaunchOp) -> None:
    """Wait for `launch` before the first reader that is not a launch beside it."""
    block = launch.parent
    outside = {
        use
        for result in launch.outputs
        for use in result.uses
        if not (isinstance(use.operation, LaunchOp) and use.operation.parent is block)
    }
    waited = any(
        isinstance(use.operation, LaunchOp) and use.operation.parent is block
        for result in launch.results
        for use in result.uses
    )
    if not outside and waited:
        return  # Whoever waits for the launches that read it waits for it.
    read = [r for r in launch.outputs if any(use in outside for use in r.uses)]
    waiting = AwaitOp([launch.token], read)
    first = _first_reader(launch, {use.operation for use in outside})
    assert block is not None
    block.insert_op_before(waiting, first)
    for old, new in zip(read, waiting.outputs, strict=True):
        new.name_hint = old.name_hint
        for use in [use for use in old.uses if use in outside]:
            use.operation.operands[use.index] = new


def _first_reader(launch: LaunchOp, readers: set[Operation]) -> Operation:
    """Return the first op after `launch` that is among `readers` or has one nested, or the last
    op.
    """
    block = launch.parent
    around: set[Operation] = set()
    for reader in readers:
        current: Operation | None = reader
        while current is not None and current.parent is not block:
            current = current.parent_op()
        if current is not None:
            around.add(current)
    op = launch.next_op
    while op is not None and op not in around and op.next_op is not None:
        op = op.next_op
    assert op is not None
    return op
