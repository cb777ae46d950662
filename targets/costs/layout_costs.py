"""In which layouts an op can run on a backend, and what each choice and each reorder costs.

Facts come from the first source that knows: declared on the op, a profile of it in these layouts,
a measurement, the kernel families that take the group, the generic lowering being one of them, and
where none does the roofline of the target.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation
from xdsl.utils.exceptions import VerifyException

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.tensor_storage import logical_bytes, stored_alike
from braid.analysis.storage.view_groups import moves_nothing
from braid.dialects.braid.attribute_names import REORDER_COSTS
from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.layout import InvalidLayout, Layout
from braid.dialects.braid.opaque import Cost, OpaqueOp, plain_cost
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.support.errors import BraidError
from braid.targets.backends import kernel_families
from braid.targets.costs.cost_records import CostRecords
from braid.targets.costs.cost_source import DeviceCosts, measured_seconds
from braid.targets.costs.kernel_costs import KernelCosts
from braid.targets.costs.op_amounts import ESTIMATED, flops, moved_bytes
from braid.targets.kernels.flexible_layouts import as_typed, flexible_choices
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.target import BackendDescription

_CALL_SECONDS = 0.5e-6
"""What it takes to call one kernel from another, with its arguments cold."""


@dataclass(frozen=True)
class CostedChoice:
    """One way to run an op: its layouts, what one run costs, and which family makes its kernel.

    `family` is empty where the target has none that does.
    """

    layouts: LayoutChoice
    cost: float
    family: str = ""


class LayoutCosts:
    """Answers for one module on one backend; `resource` is what is counted (`seconds`, …)."""

    def __init__(
        self,
        module: ModuleOp,
        backend: BackendDescription | None,
        resource: str,
        records: CostRecords | None = None,
        *,
        families: Sequence[KernelFamily] | None = None,
    ) -> None:
        """`families` are by default those of `backend`, `records` this user's measurements.

        Without a backend, what no family makes costs nothing.
        """
        self._resource = resource
        self._device = None if backend is None else DeviceCosts(backend, records)
        if families is None:
            device = None if backend is None else backend.device
            families = () if device is None else kernel_families(device)
        self._kernels = KernelCosts(families, records)
        self._launch = _CALL_SECONDS if backend is None else backend.launch_seconds
        self._reorder_costs: dict[tuple[Attribute, Attribute, Layout, Layout], float] = {}
        self._declared_reorders = _declared_reorders(module)
        self._location = source_location(module)
        self._check_resource(module)

    def choices(self, op: Operation) -> list[CostedChoice]:
        """The ways to run `op`, the preferred one first; at least one.

        Raises `BraidError` where a declared op says nothing about the resource.
        """
        if isinstance(op, OpaqueOp):
            return self._opaque_choices(op)
        if isinstance(op, FusedOp):
            return self._group_choices(op)
        return [CostedChoice(as_typed(op), self._estimate(op))]

    def reorder(self, tensor: Attribute, source: Layout, target: Layout) -> float:
        """Cost of one reorder of a tensor of this type, infinity where there is none.

        What is declared counts before what is estimated, except where nothing moves. Raises
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
        if not is_physical:
            return math.inf
        key = (tensor_type.element_type, tensor_type.shape, source, target)
        if key not in self._reorder_costs:
            self._reorder_costs[key] = self._reorder_cost(tensor_type, source, target)
        return self._reorder_costs[key]

    def _declared_reorder(self, source: Layout, target: Layout, cost: Cost) -> float:
        amount = self._declared(cost)
        if amount is None:
            raise BraidError(
                f"the reorder from '{source}' to '{target}' declares no '{self._resource}'",
                location=self._location,
                hint=f"give its cost as {{{self._resource} = …}}; a plain number is seconds",
            )
        return amount

    def _check_resource(self, module: ModuleOp) -> None:
        """Raises `BraidError` for a resource of which nothing is known."""
        if self._resource in ESTIMATED:
            return
        declared = [*self._declared_reorders.values(), *_declared_costs(module)]
        names = {name for cost in declared if isinstance(cost, Mapping) for name in cost}
        if self._resource not in names:
            known = sorted(names | set(ESTIMATED))
            raise BraidError(
                f"nothing declares a cost in '{self._resource}'",
                location=self._location,
                hint=f"expected one of {', '.join(known)}",
            )

    def _reorder_cost(self, tensor: AnyTensor, source: Layout, target: Layout) -> float:
        if self._resource == "seconds":
            options = self._kernels.options(reorder_group(tensor, source, target))
            if options:
                return self._launch + min(option.seconds for option in options)
        return self._amount(2 * logical_bytes(tensor), 0)

    def stopovers(
        self, tensor: Attribute, layouts: Sequence[Layout], *, meeting: bool = False
    ) -> tuple[Layout, ...]:
        """Other declared layouts that lie on a way from one of `layouts` to another.

        Also where each of these ways is longer than the direct one: from a layout that is made
        once, several can be made cheaply. With `meeting`, those too that can be made of several:
        what is carried in one of them need not be read in any.
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

    def _estimate(self, op: Operation) -> float:
        return self._amount(moved_bytes(op), flops(op)) if op.results else 0.0

    def _amount(self, bytes: int, flops: int) -> float:
        """The resource of what moves and computes this much; 0 if it has neither."""
        if self._device is None:
            return 0.0
        amounts = {"bytes": float(bytes), "flops": float(flops)}
        if self._resource == "seconds":
            return self._launch + self._device.roofline_seconds(bytes, flops)
        return amounts.get(self._resource, 0.0)

    def _group_choices(self, group: FusedOp) -> list[CostedChoice]:
        options = self._kernels.options(group)
        if not options:
            estimate = self._estimate(group)
            return [
                CostedChoice(choice, self._known(group, choice) or estimate)
                for choice in flexible_choices(group)
            ]
        if self._resource != "seconds":
            estimate = self._estimate(group)
            return [CostedChoice(o.layouts, estimate, o.family.name) for o in options]
        return [
            CostedChoice(
                option.layouts,
                0.0
                if moves_nothing(group, option.layouts)
                else self._known(group, option.layouts) or option.seconds,
                option.family.name,
            )
            for option in options
        ]

    def _known(self, group: FusedOp, choice: LayoutChoice) -> float | None:
        return _profiled(group, choice) if self._resource == "seconds" else None

    def _opaque_choices(self, op: OpaqueOp) -> list[CostedChoice]:
        whole = None if op.cost is None else self._declared(plain_cost(op.cost))
        if op.layouts is None:
            if whole is None and op.cost is not None:
                raise self._undeclared(op)
            return [CostedChoice(as_typed(op), whole or 0.0)]
        choices: list[CostedChoice] = []
        for entry in op.layouts:
            attribute = entry.data.get("cost")
            cost = whole if attribute is None else self._declared(plain_cost(attribute))
            if cost is None:
                raise self._undeclared(op, " for a choice of layouts")
            choices.append(CostedChoice(_declared_choice(entry), cost))
        return choices

    def _undeclared(self, op: OpaqueOp, where: str = "") -> BraidError:
        return BraidError(
            f"opaque op '{op.kind.data}' declares no '{self._resource}'{where}",
            location=source_location(op),
            hint="give the choice, or the op, a 'cost'",
        )

    def _declared(self, cost: Cost) -> float | None:
        if isinstance(cost, Mapping):
            return cost.get(self._resource)
        return cost if self._resource == "seconds" else None


def reorder_group(tensor: AnyTensor, source: Layout, target: Layout) -> FusedOp:
    """A group that stores a tensor of this type in another layout."""
    body = Block(arg_types=[with_layout(tensor, source)])
    op = ReorderOp.to(body.args[0], target)
    body.add_ops([op, YieldOp(op.output)])
    operands = Block(arg_types=[body.args[0].type])
    group = FusedOp(operands.args, [op.output.type], body)
    operands.add_op(group)
    return group


def _profiled(group: FusedOp, choice: LayoutChoice) -> float | None:
    """Seconds of a run as a profile says, if it ran in `choice`: the layouts of the types.

    Types without a layout say nothing about how the profiled model stored its tensors.
    """
    typed = as_typed(group)
    if choice != typed or all(x.is_row_major for x in (*typed.operands, *typed.results)):
        return None
    return measured_seconds(group)


def shortest_paths(cost: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Least cost of getting from one to the other in any number of steps (R. W. Floyd, 1962)."""
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
    """Whether there are a way in from one layout and a way out to a different one."""
    return bool(into.any() and out.any() and (into | out).sum() > 1)


def _declared_costs(module: ModuleOp) -> Iterator[Cost]:
    """All costs that ops of `module` declare."""
    for op in module.walk():
        if isinstance(op, OpaqueOp):
            entries = (entry.data.get("cost") for entry in op.layouts or ())
            yield from (plain_cost(cost) for cost in (op.cost, *entries) if cost is not None)


def _declared_reorders(module: ModuleOp) -> dict[tuple[Layout, Layout], Cost]:
    entries = module.attributes.get(REORDER_COSTS)
    if entries is None:
        return {}
    if not isinstance(entries, ArrayAttr):
        raise _malformed(module, entries)
    costs: dict[tuple[Layout, Layout], Cost] = {}
    for entry in cast(ArrayAttr[Attribute], entries):
        if not isinstance(entry, DictionaryAttr):
            raise _malformed(module, entry)
        source, target, cost = (entry.data.get(key) for key in ("source", "target", "cost"))
        if not isinstance(source, StringAttr) or not isinstance(target, StringAttr) or not cost:
            raise _malformed(module, entry)
        try:
            amount = plain_cost(cost)
            pair = Layout.named(source.data), Layout.named(target.data)
        except (VerifyException, InvalidLayout) as error:
            raise _malformed(module, entry) from error
        costs[pair] = amount
    return costs


def _malformed(module: ModuleOp, entry: Attribute) -> BraidError:
    return BraidError(
        f"'{REORDER_COSTS}' holds {entry}",
        location=source_location(module),
        hint='expected [{source = "l0", target = "l1", cost = 2.0e-3 : f64}, …]',
    )
