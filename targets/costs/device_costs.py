"""Find the cost of one run of an op on one device, from the first source that knows it.

The sources stand in `DeviceCosts.__init__` in the order in which they are asked. For a group it is
the cost of its kernel, measured or predicted by its family: `kernel_choice.py` says which kernel.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace

from xdsl.dialects.builtin import DictionaryAttr, FloatAttr
from xdsl.ir import Block, Operation

from braid.analysis.sizes.open_forms import is_bound
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.analysis.storage.tensor_storage import is_view, logical_bytes, stored_alike
from braid.analysis.storage.view_groups import moves_nothing
from braid.analysis.structure.operation_counts import flops
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.attribute_names import LAYOUT_SECONDS, SECONDS
from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.measured_times import was_measured
from braid.dialects.braid.opaque import OpaqueOp, plain_cost
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.regions import FusedOp, GroupOp, YieldOp
from braid.support.settings import DEFAULTS
from braid.targets.backends import backend_names, kernel_families
from braid.targets.costs.cost import Cost, Source
from braid.targets.costs.declared_units import declared_amounts, names_units
from braid.targets.costs.device_rates import DeviceRates
from braid.targets.costs.kernel_choice import KernelChoice
from braid.targets.costs.measurements import (
    Measurements,
    first_family,
    load_measurements,
)
from braid.targets.costs.op_amounts import Amounts, amounts_of, computed_type, kinds_of
from braid.targets.kernels.equal_groups import GroupForms
from braid.targets.kernels.flexible_layouts import as_typed, flexible_choices
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.machine import Machine
from braid.targets.machines.target import BackendDescription, Device

DeclaredCost = float | Mapping[str, float]
"""Seconds, or amounts by resource and seconds by unit."""

_Source = Callable[[Operation, LayoutChoice | None], Cost | None]
_NOTHING = Cost(0.0, 0, 0, Source.ROOFLINE)


class DeviceCosts(DeviceRates):
    """Costs on the device that `backend` is of; families are asked in order of preference."""

    def __init__(
        self,
        backend: BackendDescription,
        records: Mapping[str, float] | None = None,
        *,
        families: Iterable[KernelFamily] | None = None,
    ) -> None:
        """Take `families`, by default those of the backend, if that is installed.

        `records` are seconds by `record_key`: with them, nothing that this user measured counts.
        Raises BraidError for a family that lacks a part.
        """
        super().__init__(backend)
        self.asked: Counter[Source] = Counter()
        if families is None:
            device = backend.device
            installed = device is not None and device.backend in backend_names()
            families = kernel_families(device) if device is not None and installed else ()
        self._measurements = (
            load_measurements(backend)
            if records is None
            else Measurements(records, machine=self.machine)
        )
        settings = DEFAULTS if backend.device is None else backend.device.settings
        self.kernels = KernelChoice(families, self._measurements, settings)
        self._sources: tuple[_Source, ...] = (
            _of_nothing,
            self._declared,
            _profiled,
            self._of_kernel,
            self._of_parts,
            self._of_roofline,
        )
        """The sources that are asked, in this order, until one knows."""
        self._forms = GroupForms()
        self._known: dict[Hashable, dict[LayoutChoice, Cost]] = {}
        """The memo: what is predicted of equal groups, and of reorders."""

    @staticmethod
    def of_families(
        families: Iterable[KernelFamily],
        machine: Machine | None = None,
        records: Mapping[str, float] | None = None,
    ) -> "DeviceCosts":
        """Return costs by kernels of `families` alone, for a machine of no target; then there are
        no rates.

        Raises BraidError for a family that lacks a part.
        """
        device = None if machine is None else Device("", "", machine.name, machine)
        backend = BackendDescription("", (), 0.0, (), (), device=device)
        return DeviceCosts(backend, records, families=families)

    def cost(self, op: Operation, layouts: LayoutChoice | None = None, threads: int = 1) -> Cost:
        """See `CostSource`."""
        cost = self._first_known(op, layouts)
        self.asked[cost.source] += not (is_leaf(op) or is_view(op))
        if threads == 1 or not cost.seconds:
            return cost
        return replace(cost, seconds=self.seconds_on_all(cost.seconds, threads))

    def _first_known(self, op: Operation, layouts: LayoutChoice | None) -> Cost:
        answers = (source(op, layouts) for source in self._sources)
        return next(answer for answer in answers if answer is not None)

    def _declared(self, op: Operation, _: LayoutChoice | None) -> Cost | None:
        declared = self.declaration(op) if isinstance(op, OpaqueOp) else None
        return None if declared is None else self.declared(op, declared)

    def _of_kernel(self, op: Operation, layouts: LayoutChoice | None) -> Cost | None:
        # Until a chip executes code itself, its host's kernels stand in: their times are not the
        # chip's.
        if not isinstance(op, FusedOp) or self.backend.issue is not None:
            return None
        choice = stored_choice(op) if layouts is None else layouts
        measured = _profiled_in(op, choice)
        cost = self._of_kernels(op, choice).get(choice)
        if cost is None or measured is None or not cost.seconds:
            return cost
        return _measured(cost, measured)

    def _of_kernels(
        self, group: FusedOp, choice: LayoutChoice | None = None
    ) -> dict[LayoutChoice, Cost]:
        """Return the cost of the best kernel in each choice of layouts, or in one, without a
        profile.
        """
        key = self._forms.of(group), choice
        if key in self._known:
            return self._known[key]
        options, amounts = self.kernels.options(group, choice), amounts_of(group)
        known = dict[LayoutChoice, Cost]()
        for option in options:
            seconds, source, started = option.gain * option.seconds, option.source, False
            if moves_nothing(group, option.layouts):
                seconds = 0.0
            elif option.factor is not None and seconds and source is not Source.MEASURED:
                seconds = option.factor.ratio * (seconds + self.launch_seconds)
                source = Source.MEASURED if option.factor.is_own else Source.CORRECTED
                started = True
            computed = int(amounts.by_resource["flops"])
            known[option.layouts] = Cost(
                seconds,
                amounts.moved,
                computed,
                source,
                family=option.match.family.name,
                started=started,
            )
        self._known[key] = known
        return known

    def _of_parts(self, op: Operation, _: LayoutChoice | None) -> Cost | None:
        if not op.regions or isinstance(op, GroupOp):
            return None
        blocks = (block for region in op.regions for block in region.blocks)
        parts = [self._first_known(each, None) for block in blocks for each in block.ops]
        seconds = sum(part.seconds for part in parts)
        return Cost(seconds, amounts_of(op).moved, flops(op), Source.ROOFLINE)

    def _of_roofline(self, op: Operation, _: LayoutChoice | None) -> Cost:
        return self._corrected(op, self._by_roofline(op, amounts_of(op, static=True)))

    def predicted(self, op: Operation) -> Cost:
        """Return the cost of a run of `op` as its tensors are stored, without a profile."""
        if isinstance(op, FusedOp) and self.backend.issue is None:
            choice = stored_choice(op)
            cost = self._of_kernels(op, choice).get(choice)
            if cost is not None:
                return cost
        unprofiled = (source for source in self._sources if source != _profiled)
        answers = (source(op, None) for source in unprofiled)
        return next(answer for answer in answers if answer is not None)

    def rivals(self, group: FusedOp, choice: LayoutChoice) -> list[tuple[str, float, Source]]:
        """Return each family that makes `group` in `choice`, its seconds a run, and their source.

        The cheapest comes first. Seconds are predictions and records, as `options` compares them.
        """
        found = [
            (option.family.name, option.gain * option.seconds, option.source)
            for option in self.kernels.contenders(group, choice)
        ]
        return sorted(found, key=lambda rival: rival[1])

    def start_of(self, cost: Cost) -> float:
        """Return the seconds of starting the kernel that are not in `cost` yet."""
        return 0.0 if cost.started or not cost.seconds else self.launch_seconds

    def choices(self, op: Operation) -> list[tuple[LayoutChoice, Cost]]:
        """Return the layouts in which `op`, with tensors alone, can run, the preferred ones first.

        Ops that move nothing cost nothing; open dims count as 1. Where a profile knows how long
        some choices take, predictions of the others are taken to be as far off as theirs.
        """
        is_group = isinstance(op, FusedOp)
        known = self._predicted(op) if is_group else {as_typed(op): self._estimate(op)}
        profiled = {c: _profiled_in(op, c) for c, cost in known.items() if cost.seconds}
        measured = {choice: time for choice, time in profiled.items() if time is not None}
        ratios = [time / known[choice].seconds for choice, time in measured.items()]
        factor = sum(ratios) / len(ratios) if ratios else 1.0
        return [
            (choice, _measured(cost, measured[choice]))
            if choice in measured
            else (choice, replace(cost, seconds=factor * cost.seconds))
            for choice, cost in known.items()
        ]

    def _predicted(self, group: FusedOp) -> Mapping[LayoutChoice, Cost]:
        """Return what `group` costs in each choice, by kernels or else by loops, without a
        profile.
        """
        known = self._of_kernels(group)
        if not known:  # as long as no family takes it
            estimate = self._estimate(group)
            for choice in flexible_choices(group):
                is_free = moves_nothing(group, choice)
                cost = replace(estimate, seconds=0.0) if is_free else estimate
                known[choice] = self._corrected(group, cost)
        if is_bound(group):  # no family says that its loops may also be none
            free = (c for c in flexible_choices(group) if moves_nothing(group, c))
            estimate = replace(self._estimate(group), seconds=0.0)
            known = {**known, **dict.fromkeys(free, estimate)}
        return known

    def reorder(self, tensor: AnyTensor, source: Layout, target: Layout) -> Cost:
        """Return the cost of one reorder of a tensor of this type."""
        way = LayoutChoice((source,), (target,))
        known = self._known.setdefault((tensor.get_shape(), tensor.element_type), {})
        if way not in known:
            known[way] = self._reorder(tensor, source, target)
        return known[way]

    def _reorder(self, tensor: AnyTensor, source: Layout, target: Layout) -> Cost:
        if not stored_alike(tensor.get_shape(), source, target):
            predicted = self.kernels.reorder(tensor, source, target)
            if predicted is not None:
                family, seconds = predicted
                moved = 2 * logical_bytes(tensor)
                return Cost(seconds, moved, 0, Source.FAMILY, family=family.name)
        # A profile cannot have this group, and no group equals it, since it is in no module.
        costs = self._predicted(reorder_group(tensor, source, target)).values()
        return min(costs, key=lambda cost: cost.seconds)

    def declared(self, op: Operation, cost: DeclaredCost) -> Cost:
        """Return what `op` costs by a declaration: a number is seconds.

        Otherwise `seconds`, or the seconds of units by their name or resource, one after the
        other, or the roofline of its `bytes` and `flops`. Other resources stay apart: they are
        never added up to a time.
        """
        amounts = amounts_of(op)
        if not isinstance(cost, Mapping):
            return Cost(cost, amounts.moved, flops(op), Source.DECLARED, started=True)
        bytes, computed = int(cost.get("bytes", amounts.moved)), int(cost.get("flops", 0))
        seconds = cost["seconds"] if "seconds" in cost else self._on_units(op, cost)
        if seconds is not None:
            return Cost(seconds, bytes, computed, Source.DECLARED, cost, started=True)
        given = Amounts({"bytes": bytes, "flops": computed, "load": bytes, "vector": computed})
        return self._by_roofline(op, given, cost)

    def _on_units(self, op: Operation, cost: Mapping[str, float]) -> float | None:
        """Return the seconds declared for units, which do their parts in sequence.

        The result is None if only amounts are declared, or resources without units, such as energy.
        """
        if not names_units(cost, self.backend):
            return None
        parts = declared_amounts(op, cost, self.backend)
        found = [part.seconds for part in parts if part.seconds is not None]
        return sum(found) if found else None

    def declaration(self, op: OpaqueOp) -> DeclaredCost | None:
        """Return what `op` declares for this backend, or for all."""
        if isinstance(op.backends, DictionaryAttr):
            own = op.backends.data.get(self.backend.name)
            if own is not None:
                return plain_cost(own)
        return op.declared_cost

    def _corrected(self, op: Operation, cost: Cost) -> Cost:
        """Return `cost` of a group without a kernel, corrected by measurements of it, or of others
        of its kind.

        Measured times include the start of the kernel.
        """
        if not self._measurements or not cost.seconds or not isinstance(op, FusedOp):
            return cost
        _, factor = self._measurements.of(op, self.kernels.matches.of(op), ())
        if factor is None:
            return cost
        seconds = factor.ratio * (cost.seconds + self.launch_seconds)
        source = Source.MEASURED if factor.is_own else Source.CORRECTED
        return replace(cost, seconds=seconds, source=source, started=True)

    def kinds(self, group: FusedOp) -> tuple[str, ...]:
        """Return the kinds of `group` by which others that are measured correct its predictions."""
        family = first_family(self.kernels.matches.of(group))
        return kinds_of(group, family, is_far=self._measurements.is_far(group))

    def _estimate(self, op: Operation) -> Cost:
        """Estimate by the roofline; what has no results costs nothing."""
        if not op.results:
            return Cost(0.0, 0, 0, Source.ROOFLINE)
        return self._by_roofline(op, amounts_of(op))

    def _by_roofline(
        self, op: Operation, amounts: Amounts, declared: Mapping[str, float] | None = None
    ) -> Cost:
        seconds = self.roofline_seconds(amounts.by_resource, computed_type(op))
        computed = int(amounts.by_resource.get("flops", 0))
        return Cost(seconds, amounts.moved, computed, Source.ROOFLINE, declared or {})


def reorder_group(tensor: AnyTensor, source: Layout, target: Layout) -> FusedOp:
    """Return a group that stores a tensor of this type in another layout."""
    body = Block(arg_types=[with_layout(tensor, source)])
    op = ReorderOp.to(body.args[0], target)
    body.add_ops([op, YieldOp(op.output)])
    operands = Block(arg_types=[body.args[0].type])
    group = FusedOp(operands.args, [op.output.type], body)
    operands.add_op(group)
    return group


def measured_seconds(op: Operation, choice: LayoutChoice | None = None) -> float | None:
    """Return the seconds of one run that `annotate-profile` noted, None if there are none.

    With a `choice`, the costs are those of a run in these layouts. A part of a measured kernel has
    no time of its own.
    """
    if not was_measured(op):
        return None
    by_layouts = op.attributes.get(LAYOUT_SECONDS)
    if choice is not None and isinstance(by_layouts, DictionaryAttr):
        attribute = by_layouts.data.get(str(choice))
    else:
        attribute = op.attributes.get(SECONDS)
    return attribute.value.data if isinstance(attribute, FloatAttr) else None


def _of_nothing(op: Operation, _: LayoutChoice | None) -> Cost | None:
    return _NOTHING if is_leaf(op) or is_view(op) else None


def _profiled(op: Operation, layouts: LayoutChoice | None) -> Cost | None:
    measured = measured_seconds(op) if layouts is None else None
    if measured is None:
        return None
    return Cost(measured, amounts_of(op).moved, flops(op), Source.MEASURED, started=True)


def _profiled_in(op: Operation, choice: LayoutChoice) -> float | None:
    """Return the seconds of a run in `choice`, if a profile knows them.

    Seconds without layouts are for those in the types of the op.
    """
    measured = measured_seconds(op, choice)
    has_layouts = measured is None or LAYOUT_SECONDS in op.attributes or choice == as_typed(op)
    return measured if has_layouts else None


def _measured(cost: Cost, seconds: float) -> Cost:
    """Return `cost` with the seconds of a profile.

    An op that moves nothing is no kernel, whatever its group took in other layouts.
    """
    return replace(cost, seconds=seconds, source=Source.MEASURED, started=True)
