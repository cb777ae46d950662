"""Find the layouts in which an op can run, and the cost of each choice and each reorder.

Declared costs, including a table of reorders, are read here. Times come from `CostSource`, and the
start of each kernel is added.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.tensor_storage import storage_bytes, stored_alike
from braid.dialects.braid.attribute_names import REORDER_COSTS, STREAM
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.layout import InvalidLayout, Layout
from braid.dialects.braid.opaque import OpaqueOp, plain_cost
from braid.dialects.braid.regions import FusedOp
from braid.support.errors import BraidError, did_you_mean
from braid.targets.costs.cost import Cost, Source
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.device_costs import DeclaredCost, DeviceCosts, measured_seconds
from braid.targets.costs.op_amounts import ESTIMATED
from braid.targets.kernels.flexible_layouts import as_typed
from braid.targets.kernels.kernel_family import GENERIC


@dataclass(frozen=True)
class CostedChoice:
    """One way to run an op: its layouts, the cost of one run, and the family of its kernel.

    `family` is empty if the target has no such family; `source` knew the cost.
    """

    layouts: LayoutChoice
    cost: float
    source: Source
    family: str = ""


class LayoutCosts:
    """Answers for one module; `resource` is what is counted (`seconds`, …)."""

    def __init__(self, module: ModuleOp, costs: CostSource, resource: str) -> None:
        """Raise BraidError for a resource of which nothing is known."""
        self._resource = resource
        self._costs = costs
        self._declared_reorders = _declared_reorders(module)
        self._location = source_location(module)
        self._check_resource(module)

    def choices(self, op: Operation) -> list[CostedChoice]:
        """Return the ways to run `op`, the preferred one first; at least one.

        Raises `BraidError` where a declared op says nothing about the resource.
        """
        costs = self._costs.of(op)
        if isinstance(op, OpaqueOp):
            return self._opaque_choices(op, costs)
        return [self._costed(choice, cost, costs) for choice, cost in costs.choices(op)]

    def by_generic_loops(self, group: FusedOp, family: str) -> bool:
        """Return whether `family`, empty for none, compiles `group` to generic loops.

        Not on devices without kernel families, nor of what is a stream of instructions.
        """
        costs = self._costs.of(group)
        if costs.backend.issue is not None or not costs.kernels.matches.families:
            return False
        return family in ("", GENERIC) and STREAM not in group.attributes

    def _costed(self, choice: LayoutChoice, cost: Cost, costs: DeviceCosts) -> CostedChoice:
        is_known = not cost.seconds or cost.amount(self._resource) is not None
        source = cost.source if is_known else Source.UNKNOWN
        return CostedChoice(choice, self._amount(cost, costs), source, cost.family)

    def tells_of(self, source: Layout, target: Layout) -> bool:
        """Return whether the costs of reorders are known for the resource; unknown costs count as
        0.
        """
        return self._resource in ESTIMATED or (source, target) in self._declared_reorders

    def reorder(
        self, tensor: Attribute, source: Layout, target: Layout, devices: Sequence[str] = ()
    ) -> float:
        """Return the cost of one reorder of a tensor of this type, infinity if it is impossible.

        It runs on the one of `devices` where it costs least; without any on the default device.
        Declared costs take precedence over estimates, except where nothing moves. Raises
        `BraidError` where a declared reorder says nothing about the resource.
        """
        if source == target:
            return 0.0
        is_physical = not (source.is_abstract or target.is_abstract)
        tensor_type = cast(AnyTensor, tensor)
        if is_physical and stored_alike(tensor_type.get_shape(), source, target):
            return 0.0
        if (declared := self._declared_reorders.get((source, target))) is not None:
            return self._declared_reorder(source, target, declared)
        if not is_physical or source.is_transformed or target.is_transformed:
            return math.inf  # Weights are transformed at compile time, for nothing.
        return min(self._reorder_on(tensor_type, source, target, devices))

    def another_copy(self, weight: Attribute, layout: Layout) -> float:
        """Return the cost of storing a weight of this type in this layout too: it is read and
        written once.
        """
        if layout.is_abstract:
            return 0.0
        moved = {"bytes": 2.0 * storage_bytes(weight, layout)}
        if self._resource == "seconds":
            return self._costs.default.roofline_seconds(moved)
        return moved.get(self._resource, 0.0)

    def cheaper_side(
        self, tensor: Attribute, source: Layout, target: Layout, devices: Sequence[str]
    ) -> str:
        """Return the one of `devices`, the first of equals, where the reorder costs least."""
        costs = self._reorder_on(cast(AnyTensor, tensor), source, target, devices)
        return devices[costs.index(min(costs))]

    def _reorder_on(
        self, tensor: AnyTensor, source: Layout, target: Layout, devices: Sequence[str]
    ) -> list[float]:
        if source.is_abstract or target.is_abstract:  # it is declared, for all devices
            return [0.0 for _ in devices]
        known = self._costs.on_all(devices) or [self._costs.default]
        return [self._amount(costs.reorder(tensor, source, target), costs) for costs in known]

    def _declared_reorder(self, source: Layout, target: Layout, cost: DeclaredCost) -> float:
        own = cost if isinstance(cost, Mapping) else {"seconds": cost}
        amount = own.get(self._resource)
        if amount is None:
            raise BraidError(
                f"the reorder from '{source}' to '{target}' declares no '{self._resource}'",
                location=self._location,
                hint=f"give its cost as {{{self._resource} = …}}; a plain number is seconds",
            )
        return amount

    def _check_resource(self, module: ModuleOp) -> None:
        """Raise `BraidError` for a resource of which nothing is known."""
        if self._resource in ESTIMATED:
            return
        declared = [*self._declared_reorders.values(), *_declared_costs(module)]
        names = {name for cost in declared if isinstance(cost, Mapping) for name in cost}
        if self._resource not in names:
            known = sorted(names | set(ESTIMATED))
            similar = did_you_mean(self._resource, known)
            expected = f"expected one of {', '.join(known)}"
            raise BraidError(
                f"nothing declares a cost in '{self._resource}'",
                location=self._location,
                hint=f"{similar} {expected}" if similar else expected,
            )

    def stopovers(
        self, tensor: Attribute, layouts: Sequence[Layout], *, meeting: bool = False
    ) -> tuple[Layout, ...]:
        """Return other declared layouts that lie on a way from one of `layouts` to another.

        This includes layouts through which each reorder is longer than directly: from a layout that
        is made once, several others can be made cheaply. With `meeting`, this includes layouts that
        can be made from several others: a value that is carried in one of them need not be read in
        it.
        """
        rank = len(cast(AnyTensor, tensor).get_shape())
        names = dict.fromkeys(layout for pair in self._declared_reorders for layout in pair)
        fitting = [x for x in names if x.is_abstract or x.rank == rank]
        others = [x for x in fitting if x not in layouts]
        if len(layouts) < 2 or not others:
            return ()
        every = [*layouts, *others]
        cost = np.array([[self.reorder(tensor, a, b) for b in every] for a in every])
        between = np.isfinite(shortest_paths(cost))
        count = len(layouts)
        return tuple(
            other
            for index, other in enumerate(others, count)
            if _leads_on(between[:count, index], between[index, :count])
            or (meeting and between[:count, index].sum() > 1)
        )

    def _amount(self, cost: Cost, costs: DeviceCosts) -> float:
        """Return the resource of one kernel, with its start; 0 if it is unknown."""
        if self._resource == "seconds":
            return costs.start_of(cost) + cost.seconds
        return cost.amount(self._resource) or 0.0

    def _opaque_choices(self, op: OpaqueOp, costs: DeviceCosts) -> list[CostedChoice]:
        """Return what is declared of the choice, else of the op; else what was measured of
        the op.
        """
        whole = costs.declaration(op)
        if op.layouts is None:
            return [self._opaque_choice(op, as_typed(op), whole, costs)]
        choices: list[CostedChoice] = []
        for entry in op.layouts:
            attribute = entry.data.get("cost")
            declared = whole if attribute is None else plain_cost(attribute)
            choices.append(self._opaque_choice(op, _declared_choice(entry), declared, costs))
        return choices

    def _opaque_choice(
        self, op: OpaqueOp, choice: LayoutChoice, declared: DeclaredCost | None, costs: DeviceCosts
    ) -> CostedChoice:
        if declared is not None:
            cost = costs.declared(op, declared)
        elif op.layouts is None or measured_seconds(op) is not None:
            cost = costs.cost(op)
        else:
            raise self._undeclared(op, " for a choice of layouts")
        amount = cost.amount(self._resource)
        if declared is not None and not self._says(declared):
            amount = None
        if amount is None:
            raise self._undeclared(op, " for a choice of layouts" if op.layouts else "")
        source = cost.source if declared is None else Source.DECLARED
        return CostedChoice(choice, amount, source)

    def _says(self, declared: DeclaredCost) -> bool:
        """Return whether a declaration has costs for the resource: a number is seconds."""
        return self._resource == "seconds" or (
            isinstance(declared, Mapping) and self._resource in declared
        )

    def _undeclared(self, op: OpaqueOp, where: str = "") -> BraidError:
        return BraidError(
            f"opaque op '{op.kind.data}' declares no '{self._resource}'{where}",
            location=source_location(op),
            hint="give the choice, or the op, a 'cost'",
        )


def shortest_paths(cost: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the least cost of getting from one layout to the other in any number of steps (R. W.
    Floyd, 1962).
    """
    best = cost.copy()
    for via in range(len(cost)):
        best = np.minimum(best, best[:, via, None] + best[None, via, :])
    return best


def _declared_choice(entry: DictionaryAttr) -> LayoutChoice:
    def layouts(key: str) -> tuple[Layout, ...]:
        names = cast(ArrayAttr[StringAttr], entry.data[key])
        return tuple(Layout.named(name.data) for name in names)

    return LayoutChoice(layouts("operands"), layouts("results"))


def _leads_on(into: npt.NDArray[np.bool_], out: npt.NDArray[np.bool_]) -> bool:
    """Return whether there are a way in from one layout and a way out to a different one."""
    return bool(into.any() and out.any() and (into | out).sum() > 1)


def _declared_costs(module: ModuleOp) -> Iterator[DeclaredCost]:
    """Return all costs that ops of `module` declare."""
    for op in module.walk():
        if isinstance(op, OpaqueOp):
            entries = (entry.data.get("cost") for entry in op.layouts or ())
            yield from (plain_cost(cost) for cost in (op.cost, *entries) if cost is not None)


def _declared_reorders(module: ModuleOp) -> dict[tuple[Layout, Layout], DeclaredCost]:
    entries = module.attributes.get(REORDER_COSTS)
    if entries is None:
        return {}
    if not isinstance(entries, ArrayAttr):
        raise _malformed(module, entries)
    costs: dict[tuple[Layout, Layout], DeclaredCost] = {}
    for entry in cast(ArrayAttr[Attribute], entries):
        if not isinstance(entry, DictionaryAttr):
            raise _malformed(module, entry)
        source, target, cost = (entry.data.get(key) for key in _REORDER_FIELDS)
        if not isinstance(source, StringAttr) or not isinstance(target, StringAttr) or not cost:
            raise _malformed(module, entry)
        if entry.data.keys() - {*_REORDER_FIELDS}:
            raise _malformed(module, entry)
        try:
            amount = plain_cost(cost)
            pair = Layout.named(source.data), Layout.named(target.data)
        except (VerifyException, InvalidLayout) as error:
            raise _malformed(module, entry) from error
        if pair[0] == pair[1]:
            raise _malformed(module, entry, "stores nothing anew")
        if costs.setdefault(pair, amount) != amount:
            raise _malformed(module, entry, "costs something else in another entry")
    return costs


_REORDER_FIELDS = ("source", "target", "cost")


def _malformed(module: ModuleOp, entry: Attribute, problem: str = "") -> BraidError:
    return BraidError(
        f"'{REORDER_COSTS}' holds {entry}{problem and f', which {problem}'}",
        location=source_location(module),
        hint='expected [{source = "l0", target = "l1", cost = 2.0e-3 : f64}, …]',
    )
