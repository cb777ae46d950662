"""Check what an order costs: carried out on a copy, bytes counted or units run op by op."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator, is_side_effect_free

from braid.analysis.diagnostics.remarks import Remark
from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.analysis.structure.functions import functions_beside
from braid.dialects.braid.attribute_names import HOST_STAGE
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.launch import LaunchOp
from braid.dialects.braid.regions import FusedOp
from braid.passes.infrastructure.decision_checks import WrongClaimError
from braid.passes.order.apply_order import ApplyOrderPass
from braid.passes.order.search_order import SearchOrderPass
from braid.passes.verification.claims import (
    TOLERANCE,
    AppliedCopy,
    about,
    claims_about,
    number,
    require_at_most,
    require_bound,
    require_equal,
)
from braid.passes.verification.live_bytes import ORDER, block_peak, read_by
from braid.targets.costs.device_rates import DeviceRates
from braid.targets.costs.launch_times import LaunchTimes
from braid.targets.machines.resolve import device_of, target_of
from braid.targets.machines.target import BackendDescription, Target
from braid.targets.simulator.steps import step_seconds, steps_of, transfers_of


def check_order(
    context: Context, pass_: ModulePass, module: ModuleOp, remarks: Sequence[Remark]
) -> None:
    """Raise WrongClaimError where value before, value, bound or gap of a block are wrong."""
    assert isinstance(pass_, SearchOrderPass)
    copy = AppliedCopy(module)
    copy.apply(context, ApplyOrderPass(), "the order")
    target = target_of(module, pass_.target)
    claims: defaultdict[Operation, list[Remark]] = defaultdict(list)
    for remark in claims_about(remarks, pass_, "before"):
        claims[remark.op].append(remark)
    for owner, own in claims.items():
        for remark, block, ordered in zip(
            own, _searched(owner), _searched(copy.of(owner)), strict=True
        ):
            if pass_.objective == "memory":
                _check_peak(remark, block, ordered)
            elif _launches(owner):
                _check_launches(remark, ordered, target)
            else:
                _check_seconds(remark, ordered, target.backend_of(device_of(owner, target)))
            require_at_most(remark, "cost", number(remark, "before"), "that of the present order")


def _searched(owner: Operation) -> list[Block]:
    """Return the blocks of `owner` in which ops can change places, and of which there is a
    remark.
    """
    blocks = (block for region in owner.regions for block in region.blocks)
    return [block for block in blocks if len(list(movable_ops(block))) > 1]


def movable_ops(block: Block) -> Iterator[Operation]:
    """Yield the ops that have a place in an order: neither constants nor the terminator."""
    for op in block.ops:
        fixed = isinstance(op, ConstantOp | ParameterOp | arith.ConstantOp)
        if not fixed and not op.has_trait(IsTerminator):
            yield op


def _check_peak(remark: Remark, block: Block, ordered: Block) -> None:
    peak = block_peak(ordered, ORDER)
    require_equal(remark, "cost", peak)
    require_bound(remark, peak)
    # Blocks inside have other orders by now, and so another peak.
    if all(not op.regions or isinstance(op, FusedOp) for op in block.ops):
        require_equal(remark, "before", block_peak(block, ORDER))


def _check_seconds(remark: Remark, ordered: Block, backend: BackendDescription) -> None:
    seconds, busy = run_units(ordered, backend)
    if transfers_of(backend) is None:
        require_equal(remark, "cost", seconds)
        require_bound(remark, seconds)
        return
    # Moves onto the chip and off it are added, since no order is faster with them.
    least = max(seconds, busy)
    if number(remark, "cost") < least * (1 - TOLERANCE):
        raise WrongClaimError(
            f"{about(remark)}: cost {number(remark, 'cost'):.9g} claimed, computing alone takes "
            f"{least:.9g}"
        )


def _launches(op: Operation) -> bool:
    """Return whether the function that `op` is or is in launches others."""
    while not isinstance(op, FuncOp) and (around := op.parent_op()) is not None:
        op = around
    return any(isinstance(inner, LaunchOp) for inner in op.walk())


def _check_launches(remark: Remark, ordered: Block, target: Target) -> None:
    seconds = run_launches(ordered, target)
    require_equal(remark, "cost", seconds)
    require_bound(remark, seconds)


def run_launches(block: Block, target: Target) -> float:
    """Return the seconds until the host and all devices have finished `block`.

    The host takes op by op. A launch waits in the queue of its device for its dependences. Then
    operands are copied in, the function runs, and results are copied out, each after earlier
    launches on that device have finished the same step. Blocks inside of ops count by expected
    executions, and keep the host and the devices that they launch on.
    """
    module = block.parent_op()
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    assert module is not None
    times = LaunchTimes.on(target, functions_beside(module), ExecutionCounts.of(module))
    host = 0.0
    ended: dict[Operation, float] = {}
    queues: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for op in movable_ops(block):
        ready = max((ended.get(maker, 0.0) for maker in _makers(op)), default=0.0)
        function = times.callee(op) if isinstance(op, LaunchOp) else None
        if not isinstance(op, LaunchOp) or function is None or HOST_STAGE in function.attributes:
            inner = (inside for region in op.regions for inside in region.blocks)
            own = times.of_op(op, target.host_device)
            if op.regions and not isinstance(op, FusedOp):
                own = sum(_runs(inside, op) * run_launches(inside, target) for inside in inner)
            kept = [queues[name] for name in _launched_on(op, times)]
            host = ended[op] = max(host, ready, *(queue[1] for queue in kept)) + own
            for queue in kept:
                queue[1] = host
            continue
        device = device_of(function, target).name
        now = max(host, ready)
        for engine, seconds in enumerate(
            (
                _moved(target, target.host, device, op.inputs),
                times.of(function),
                _moved(target, device, target.host, op.outputs),
            )
        ):
            now = queues[device][engine] = max(now, queues[device][engine]) + seconds
        ended[op] = now
    return max(ended.values(), default=0.0)


def _launched_on(op: Operation, times: LaunchTimes) -> set[str]:
    """Return the devices that get launches while the host is at `op`."""
    if not isinstance(op, LaunchOp):
        return {
            name for inner in op.walk() if inner is not op for name in _launched_on(inner, times)
        }
    function = times.callee(op)
    if HOST_STAGE not in function.attributes:
        return {device_of(function, times.target).name}
    return {name for inner in function.walk() for name in _launched_on(inner, times)}


def _makers(op: Operation) -> Iterator[Operation]:
    return (value.owner for value in read_by(op) if isinstance(value.owner, Operation))


def _moved(target: Target, source: str, destination: str, values: Iterable[SSAValue]) -> float:
    """Return the seconds of each copy; none without a link, since memory is shared."""
    link = next(
        (k for k in target.links if (k.source, k.destination) == (source, destination)), None
    )
    if link is None:
        return 0.0
    rate = link.bandwidth or inf
    return sum(link.latency + storage_bytes(value.type) / rate for value in values)


def run_units(block: Block, backend: BackendDescription) -> tuple[float, float]:
    """Return the seconds until all ops of `block` have run, and the seconds of the busiest unit.

    Each unit runs what it is given in the order of the ops; of units that differ by name alone,
    the one that is free first is given a step. An op's steps run one after the other and begin
    when the ops that it depends on have ended. Blocks inside of ops count by expected executions.
    """
    free = [0.0] * len(backend.units)
    busy = [0.0] * len(backend.units)
    ended: dict[Operation, float] = {}
    effect: Operation | None = None
    for op in movable_ops(block):
        needs = {maker for maker in (v.owner for v in read_by(op)) if maker in ended}
        if not is_side_effect_free(op):
            needs |= {effect} if effect is not None else set()
            effect = op
        now = max((ended[need] for need in needs if isinstance(need, Operation)), default=0.0)
        for unit, seconds in _work(op, backend):
            unit = min(_alike(unit, backend), key=free.__getitem__)
            now = max(now, free[unit]) + seconds
            free[unit] = now
            busy[unit] += seconds
        ended[op] = now
    return max(ended.values(), default=0.0), max(busy, default=0.0)


def _work(op: Operation, backend: BackendDescription) -> Iterator[tuple[int, float]]:
    if not op.regions or isinstance(op, FusedOp):
        rates = DeviceRates(backend)
        yield from ((step.unit, step_seconds(step, rates)) for step in steps_of(op, backend))
    elif backend.units:
        blocks = itertools.chain.from_iterable(region.blocks for region in op.regions)
        inside = sum(_runs(block, op) * run_units(block, backend)[0] for block in blocks)
        yield len(backend.units) - 1, inside


def _alike(number: int, backend: BackendDescription) -> list[int]:
    """Return the units that share the work of one."""
    facts = replace(backend.units[number], name="")
    return [n for n, unit in enumerate(backend.units) if replace(unit, name="") == facts]


def _runs(block: Block, op: Operation) -> float:
    """Return how often `block` is expected to run each time that `op`, which it is in, does."""
    module = op
    while (around := module.parent_op()) is not None:
        module = around
    if not isinstance(module, ModuleOp) or op.parent is None:
        return 1.0
    counts = ExecutionCounts.of(module)
    once = counts.of_block(op.parent)
    return counts.of_block(block) / once if once else 0.0
