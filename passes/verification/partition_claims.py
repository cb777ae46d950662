"""Check what an assignment of devices costs: counted op by op, and value by value in each block."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import Remark
from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.structure.clusters import is_placed
from braid.analysis.structure.nesting import ops_outside_groups
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attribute_names import COLOCATE
from braid.dialects.braid.clusters import replicas_of
from braid.passes.infrastructure.decision_checks import WrongClaimError
from braid.passes.partition.assign_devices import AssignDevicesPass
from braid.passes.partition.group_costs import Trial
from braid.passes.partition.partition_graph import memory_of, value_size
from braid.passes.pipelines import GROUPS, LAYOUTS
from braid.passes.verification.claims import (
    about,
    claims_about,
    number,
    require_bound,
    require_equal,
)
from braid.targets.costs.backend_support import priority_on
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.launch_times import link_seconds
from braid.targets.machines.resolve import device_of, target_of
from braid.targets.machines.target import Device, Target

Seconds = Callable[[Operation, str], float]
"""The seconds of one run of an op on a device."""
Places = tuple[str, ...]
"""A device and those that take turns with it: each has its part of the runs."""


def check_assignment(
    context: Context, pass_: ModulePass, module: ModuleOp, remarks: Sequence[Remark]
) -> None:
    """Raise WrongClaimError where an op cannot run where it is, or a cost or bound is wrong."""
    assert isinstance(pass_, AssignDevicesPass)
    target = target_of(module, pass_.target)
    for remark in claims_about(remarks, pass_, "strategy"):
        assert isinstance(remark.op, FuncOp)
        devices = {
            op: (device_of(op, target).name, *replicas_of(op)) for op in assigned_ops(remark.op)
        }
        _check_devices(remark, devices, target)
        if pass_.strategy == "throughput":  # in whichever order they take turns
            devices = {op: tuple(sorted(places)) for op, places in devices.items()}
        else:  # one request is on one device
            devices = {op: places[:1] for op, places in devices.items()}
        if "cost" in remark.data:
            _check_costs(context, remark, module, devices, pass_, target)


def assigned_ops(function: FuncOp) -> list[Operation]:
    """Return the ops that run on devices, without values known before."""
    known = ParameterExpressions()
    inner = ops_outside_groups(function)
    return [op for op in inner if is_placed(op) and not known.all_known(op.results)]


def _check_devices(remark: Remark, devices: Mapping[Operation, Places], target: Target) -> None:
    together: dict[str, set[str]] = {}
    for op, places in devices.items():
        for device in map(target.device, places):
            if priority_on(op, target.backend(device.backend)) is None:
                raise WrongClaimError(f"{about(remark)}: {device.name} does not run '{op.name}'")
            if (device.backend, device.plugin) != _kind(target.device(places[0])):
                raise WrongClaimError(f"{about(remark)}: {device.name} is not like {places[0]}")
        name = op.attributes.get(COLOCATE)
        if isinstance(name, StringAttr) and together.setdefault(name.data, {*places}) != {*places}:
            raise WrongClaimError(f"{about(remark)}: colocation '{name.data}' is on two devices")
        if len(places) > 1 and not isinstance(op.parent_op(), FuncOp):
            raise WrongClaimError(f"{about(remark)}: '{op.name}' in a branch takes turns")


def _kind(device: Device) -> tuple[str, str]:
    return device.backend, device.plugin


def _check_costs(
    context: Context,
    remark: Remark,
    module: ModuleOp,
    devices: Mapping[Operation, Places],
    pass_: AssignDevicesPass,
    target: Target,
) -> None:
    ops, costs = list(devices), CostSource(target)
    numbers = {op: place for place, op in enumerate(ops)}
    of_one = pass_.strategy == "latency"
    counts = ExecutionCounts.of(module)
    assert isinstance(remark.op, FuncOp)
    cost = number(remark, "cost")
    if remark.data["model"] == 0:
        names = [device.name for device in target.devices]
        trial = Trial.run(context, module, GROUPS, ops, {}, pass_.target)
        own = [set(devices[op]) for op in ops]
        table = trial.seconds(target.devices, own, costs)
        found = recount(
            remark.op, devices, lambda op, k: table[numbers[op], names.index(k)], target, counts
        )
        require_equal(remark, "cost", found.cost(of_one))
        for device in target.devices:
            if found.held[device.name] > memory_of(target, device):
                raise WrongClaimError(f"{about(remark)}: the memory of {device.name} is too small")
    require_bound(remark, cost)
    if "recosted" in remark.data:
        trial = Trial.run(context, module, LAYOUTS, ops, devices, pass_.target)
        chosen = trial.chosen_seconds(costs)
        found = recount(remark.op, devices, lambda op, _: chosen[numbers[op]], target, counts)
        require_equal(remark, "recosted", found.cost(of_one))


@dataclass
class Recount:
    """Seconds and bytes by device."""

    loads: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    held: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def cost(self, of_one: bool) -> float:
        """Return the seconds of one request if devices take turns, or of the busiest device."""
        return sum(self.loads.values()) if of_one else max(self.loads.values(), default=0.0)


def recount(
    function: FuncOp,
    devices: Mapping[Operation, Places],
    seconds: Seconds,
    target: Target,
    counts: ExecutionCounts,
) -> Recount:
    """Return the time of every device in a run of `function` if ops are on `devices`.

    Devices that take turns each take their share of the time of the slowest of them.
    """
    walk = _Walk(devices, (target.host,), counts)
    for block in function.body.blocks:
        walk.block(block, [], lambda _: None)
    found = Recount()

    def add(places: Places, runs: float, each: Iterable[float]) -> None:
        for name in places:
            found.loads[name] += runs * max(each) / len(places)

    for op, places in devices.items():
        assert op.parent is not None
        add(places, counts.of_block(op.parent), [seconds(op, name) for name in places])
    for value in walk.values:
        others = value.readers - {value.places}
        for places in others if value.size else ():
            into = [link_seconds(target, target.host, name, value.size) for name in places]
            add(places, value.runs, into)
        if others and value.size:
            out = [link_seconds(target, name, target.host, value.size) for name in value.places]
            add(value.places, value.runs, out)
        for name in value.places:
            found.held[name] += value.size + value.weights
    for places in dict.fromkeys(value.places for value in walk.values):
        starts = max(value.starts.get(places, 0.0) for value in walk.values)
        add(places, starts, [target.device(name).start_seconds for name in places])
    return found


@dataclass
class _Value:
    """A value that one op makes, or that comes from the host, on a device in a block.

    `starts` are, by device, the most starts of it on a path that ends here.
    """

    places: Places
    runs: float
    size: float
    weights: float = 0.0
    readers: set[Places] = field(default_factory=set[Places])
    starts: dict[Places, float] = field(default_factory=dict[Places, float])


_Outer = Callable[[SSAValue], _Value | None]


class _Walk:
    """Goes through blocks in program order, and notes who reads what where."""

    def __init__(
        self, devices: Mapping[Operation, Places], host: Places, counts: ExecutionCounts
    ) -> None:
        self._devices, self._host, self._counts = devices, host, counts
        self._known = ParameterExpressions()
        self.values: list[_Value] = []

    def block(self, block: Block, entered: Sequence[_Value], outer: _Outer) -> _Value | None:
        """Note all ops of a block and its nested blocks; return the operands of its last op."""
        here: dict[SSAValue, _Value] = {}
        runs = self._counts.of_block(block)

        def add(places: Places, results: Sequence[SSAValue], reads: Sequence[_Value]) -> _Value:
            made = _Value(places, runs, sum(value_size(v) for v in results if v.uses))
            made.starts[places] = runs
            for read in reads:
                read.readers.add(places)
                for name, count in read.starts.items():
                    begun = runs if name == places != read.places else 0.0
                    made.starts[name] = max(made.starts.get(name, 0.0), count + begun)
            here.update(dict.fromkeys(results, made))
            self.values.append(made)
            return made

        def find(value: SSAValue) -> _Value | None:
            if value not in here and not self._known.is_known(value):
                if (around := outer(value)) is None:
                    return None
                add(self._host, [value], [around])
            return here.get(value)

        last: _Value | None = None
        for argument in block.args:
            add(self._host, [argument], entered)
        for op in block.ops:
            if op.results and not op.regions and self._known.all_known(op.results):
                continue
            operands = dict.fromkeys(op.operands)
            reads = [read for value in operands if (read := find(value)) is not None]
            if op in self._devices:
                made = add(self._devices[op], op.results, reads)
                weights = (value for value in operands if self._known.is_known(value))
                made.weights = float(sum(map(value_size, weights)))
                continue
            inner = [b for region in op.regions for b in region.blocks]
            ends = [end for b in inner if (end := self.block(b, reads, find)) is not None]
            last = add(self._host, op.results, [*reads, *ends])
        return last
