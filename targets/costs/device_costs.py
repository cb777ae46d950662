"""What one run of an op costs on one device; see `cost_source.py` for who is asked in which order.

Of a group that is what its kernel costs: see `kernel_choice.py` for which that is.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property

from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation

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
from braid.support.settings import DEFAULTS, Settings
from braid.targets.backends import backend_names, kernel_families
from braid.targets.costs.cost import Cost, Source
from braid.targets.costs.cost_records import CostRecords, load_records
from braid.targets.costs.declared_units import declared_amounts, names_units
from braid.targets.costs.device_rates import DeviceRates
from braid.targets.costs.group_kinds import kinds_of, model_weight_bytes
from braid.targets.costs.kernel_choice import KernelChoice, KernelOption
from braid.targets.costs.measured_ratios import Factor, MeasuredRatios, load_ratios
from braid.targets.costs.op_amounts import Amounts, amounts_of, computed_type
from braid.targets.costs.schedule_records import load_tuned
from braid.targets.costs.tuned_gains import TunedGains
from braid.targets.kernels.equal_groups import EqualGroups
from braid.targets.kernels.flexible_layouts import as_typed, flexible_choices
from braid.targets.kernels.group_matches import GroupMemo
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.machine import Machine
from braid.targets.machines.target import BackendDescription, Device

_PARTS_OF_CACHE = 2
"""What a core uses of the last cache, in parts for each core, while others do not need theirs."""

DeclaredCost = float | Mapping[str, float]
"""Seconds, or amounts by resource and seconds by unit."""


class DeviceCosts(DeviceRates):
    """Costs on the device that `backend` is of; families are asked in order of preference."""

    def __init__(
        self,
        backend: BackendDescription,
        records: CostRecords | None = None,
        *,
        families: Iterable[KernelFamily] | None = None,
    ) -> None:
        """`families` are by default those of the backend, `records` those of this user.

        With `records`, nothing else that was measured counts.
        """
        super().__init__(backend)
        self.asked: Counter[Source] = Counter()
        self._families, self._given = families, records
        self._factors = GroupMemo(self._factor)
        self._choices = EqualGroups(self._choices_without_profile)
        self._weights: dict[ModuleOp, int] = {}
        self._reorders: dict[tuple[tuple[int, ...], Attribute, Layout, Layout], Cost] = {}

    @staticmethod
    def of_families(
        families: Iterable[KernelFamily],
        machine: Machine | None = None,
        records: CostRecords | None = None,
    ) -> "DeviceCosts":
        """Kernels of `families` alone, for a machine of no target; without one there are no rates.

        Raises BraidError for a family that lacks a part of the protocol.
        """
        device = None if machine is None else Device("", "", machine.name, machine)
        backend = BackendDescription("", (), 0.0, (), (), device=device)
        costs = DeviceCosts(backend, records, families=families)
        _ = costs.kernels
        return costs

    @cached_property
    def kernels(self) -> KernelChoice:
        """Among those of the families, none for a backend that is not installed.

        Raises BraidError for a family that lacks a part.
        """
        families = self._families
        if families is None:
            device = self.backend.device
            installed = device is not None and device.backend in backend_names()
            families = kernel_families(device) if device is not None and installed else ()
        given = self._given
        records = load_records if given is None else lambda: given
        return KernelChoice(families, records, self._settings)

    def cost(self, op: Operation, layouts: LayoutChoice | None = None, threads: int = 1) -> Cost:
        """As in `CostSource`."""
        cost = self._on_one_core(op, layouts)
        self.asked[cost.source] += not (is_leaf(op) or is_view(op))
        if threads == 1 or not cost.seconds:
            return cost
        return replace(cost, seconds=self.seconds_on_all(cost.seconds, threads))

    def start_of(self, cost: Cost) -> float:
        """The seconds of starting the kernel that are not in `cost` yet."""
        return 0.0 if cost.started or not cost.seconds else self.launch_seconds

    def choices(self, op: Operation) -> list[tuple[LayoutChoice, Cost]]:
        """The layouts in which `op`, with tensors alone, can run, the preferred ones first.

        What moves nothing costs nothing; open dims count as 1. Where a profile knows how long some
        choices take, predictions of the others are taken to be as far off as theirs.
        """
        if isinstance(op, FusedOp):
            predicted = self._choices.of(op)
        else:
            predicted = [(as_typed(op), self._estimate(op))]
        found = [(p, _or_profiled(op, choice, p)) for choice, p in predicted]
        ratios = [c.seconds / p.seconds for p, c in found if c is not p and p.seconds]
        factor = sum(ratios) / len(ratios) if ratios else 1.0
        return [
            (choice, cost if cost is not p else replace(cost, seconds=factor * cost.seconds))
            for (choice, _), (p, cost) in zip(predicted, found, strict=True)
        ]

    def _choices_without_profile(self, group: FusedOp) -> list[tuple[LayoutChoice, Cost]]:
        if options := self.kernels.options(group):
            amounts = amounts_of(group)
            predicted = [(o.layouts, self._predicted(o, amounts)) for o in options]
        else:
            estimate = self._estimate(group)
            predicted = [
                (
                    choice,
                    replace(estimate, seconds=0.0) if moves_nothing(group, choice) else estimate,
                )
                for choice in flexible_choices(group)
            ]
        return [(choice, self._corrected(group, cost)) for choice, cost in predicted]

    def reorder(self, tensor: AnyTensor, source: Layout, target: Layout) -> Cost:
        """One reorder of a tensor of this type."""
        key = (tensor.get_shape(), tensor.element_type, source, target)
        if key not in self._reorders:
            self._reorders[key] = self._reorder(tensor, source, target)
        return self._reorders[key]

    def _reorder(self, tensor: AnyTensor, source: Layout, target: Layout) -> Cost:
        is_copy = not stored_alike(tensor.get_shape(), source, target)
        if is_copy and not self._gains and not self._ratios:
            predicted = self.kernels.reorder(tensor, source, target)
            if predicted is not None:
                family, seconds = predicted
                moved = 2 * logical_bytes(tensor)
                return Cost(seconds, moved, 0, Source.FAMILY, family=family.name)
        # No profile has this group, and no group equals it: it stands in no module.
        choices = self._choices_without_profile(reorder_group(tensor, source, target))
        return min((cost for _, cost in choices), key=lambda c: c.seconds)

    def declared(self, op: Operation, cost: DeclaredCost) -> Cost:
        """What `op` costs by a declaration: a number is seconds.

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
        """The seconds declared for units, which do their parts one after the other.

        None where amounts alone are declared, or what is not a matter of units, such as energy.
        """
        if not names_units(cost, self.backend):
            return None
        parts = declared_amounts(op, cost, self.backend)
        found = [part.seconds for part in parts if part.seconds is not None]
        return sum(found) if found else None

    def _on_one_core(self, op: Operation, layouts: LayoutChoice | None) -> Cost:
        if is_leaf(op) or is_view(op):
            return Cost(0.0, 0, 0, Source.ROOFLINE)
        if isinstance(op, OpaqueOp) and (declared := self.declaration(op)) is not None:
            return self.declared(op, declared)
        if layouts is None and (measured := measured_seconds(op)) is not None:
            return Cost(measured, amounts_of(op).moved, flops(op), Source.MEASURED, started=True)
        # What a chip computes by until it executes itself are kernels of its host: not its times.
        if isinstance(op, FusedOp) and self.backend.issue is None:
            choice = stored_choice(op) if layouts is None else layouts
            if (match := self.kernels.match(op, choice)) is not None:
                option = self.kernels.option(match, choice)
                predicted = self._predicted(option, amounts_of(op))
                return _or_profiled(op, choice, self._corrected(op, predicted))
        if op.regions and not isinstance(op, GroupOp):
            blocks = (block for region in op.regions for block in region.blocks)
            parts = [self._on_one_core(each, None) for block in blocks for each in block.ops]
            seconds = sum(part.seconds for part in parts)
            return Cost(seconds, amounts_of(op).moved, flops(op), Source.ROOFLINE)
        return self._corrected(op, self._by_roofline(op, amounts_of(op, static=True)))

    def declaration(self, op: OpaqueOp) -> DeclaredCost | None:
        """What `op` declares for this backend, or for all."""
        if isinstance(op.backends, DictionaryAttr):
            own = op.backends.data.get(self.backend.name)
            if own is not None:
                return plain_cost(own)
        return op.declared_cost

    @property
    def _settings(self) -> Settings:
        device = self.backend.device
        return DEFAULTS if device is None else device.settings

    @cached_property
    def _gains(self) -> TunedGains:
        kernels = self._settings.kernels
        return TunedGains(load_tuned() if self._given is None else {}, self.machine, kernels)

    @cached_property
    def _ratios(self) -> MeasuredRatios:
        return load_ratios(self.backend) if self._given is None else MeasuredRatios()

    def _corrected(self, op: Operation, cost: Cost) -> Cost:
        """`cost` of a group, by what was measured of it or of others of its kind, if it was.

        What was measured counts the start of the kernel.
        """
        is_known = cost.started or cost.source is Source.MEASURED
        if not self._ratios or is_known or not cost.seconds or not isinstance(op, FusedOp):
            return cost
        factor = self._factors.of(op)
        seconds = factor.ratio * (cost.seconds + self.launch_seconds)
        source = Source.MEASURED if factor.is_own else Source.CORRECTED
        return replace(cost, seconds=seconds, source=source, started=True)

    def _factor(self, group: FusedOp) -> Factor:
        return self._ratios.of_group(group, self._first_family(group), is_far=self._is_far(group))

    def kinds(self, group: FusedOp) -> tuple[str, ...]:
        """The kinds of `group` by which others that are measured correct its predictions."""
        return kinds_of(group, self._first_family(group), is_far=self._is_far(group))

    def _first_family(self, group: FusedOp) -> str:
        first = next(iter(self.kernels.matches.of(group)), None)
        return "" if first is None else first.family.name

    def _is_far(self, group: FusedOp) -> bool | None:
        """Whether the weights of the model come from memory in each run; None if not known.

        A core alone gets more than its part of the last cache: twice is assumed.
        """
        cache = self.machine.fact("last_cache_bytes", 0.0)
        module = group.get_toplevel_object()
        if not cache or not isinstance(module, ModuleOp):
            return None
        if module not in self._weights:
            self._weights[module] = model_weight_bytes(module)
        return self._weights[module] > _PARTS_OF_CACHE * cache

    def _predicted(self, option: KernelOption, amounts: Amounts) -> Cost:
        """What the kernel costs without a profile of its group."""
        group, layouts = option.match.group, option.layouts
        seconds = 0.0 if moves_nothing(group, layouts) else option.seconds
        if self._gains:
            seconds *= self._gains.of(group, layouts, self.kernels.matches.of(group))
        flops = int(amounts.by_resource["flops"])
        return Cost(seconds, amounts.moved, flops, option.source, family=option.family.name)

    def _estimate(self, op: Operation) -> Cost:
        """By the roofline; what has no results costs nothing."""
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
    """A group that stores a tensor of this type in another layout."""
    body = Block(arg_types=[with_layout(tensor, source)])
    op = ReorderOp.to(body.args[0], target)
    body.add_ops([op, YieldOp(op.output)])
    operands = Block(arg_types=[body.args[0].type])
    group = FusedOp(operands.args, [op.output.type], body)
    operands.add_op(group)
    return group


def measured_seconds(op: Operation, choice: LayoutChoice | None = None) -> float | None:
    """Seconds of one run as `annotate-profile` noted them, None where it did not.

    With a `choice` they are those of a run in these layouts. What is a part of the kernel that was
    measured has none.
    """
    if not was_measured(op):
        return None
    by_layouts = op.attributes.get(LAYOUT_SECONDS)
    if choice is not None and isinstance(by_layouts, DictionaryAttr):
        attribute = by_layouts.data.get(str(choice))
    else:
        attribute = op.attributes.get(SECONDS)
    return attribute.value.data if isinstance(attribute, FloatAttr) else None


def _or_profiled(op: Operation, choice: LayoutChoice, cost: Cost) -> Cost:
    """`cost`, unless a profile knows how long `op` takes in `choice`.

    One that does not tell layouts tells of those in the types of the op. What moves nothing is no
    kernel, whatever its group took in other layouts.
    """
    measured = measured_seconds(op, choice)
    if measured is None or not cost.seconds:
        return cost
    if LAYOUT_SECONDS not in op.attributes and choice != as_typed(op):
        return cost
    return replace(cost, seconds=measured, source=Source.MEASURED, started=True)
