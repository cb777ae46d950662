"""From a module with its decisions to a row for each kernel, with who lost against it."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from braid.analysis.execution.compute_ops import is_compute
from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.profile.profile_file import OpRecord
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import is_only_storage, stored_choice
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.names import names_of
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.dialects.braid.variants import device_functions, public_functions
from braid.passes.layout.layout_report import LayoutReport, OpReport
from braid.targets.costs.cost import Cost
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.device_costs import DeviceCosts
from braid.targets.costs.op_amounts import amounts_of, computed_type, kind_name, main_op
from braid.targets.costs.schedule_records import TunedKernel, load_tuned
from braid.targets.kernels.kernel_family import GENERIC
from braid.targets.kernels.kernel_schedule import schedule_of
from braid.targets.kernels.keys import schedule_key
from braid.targets.machines.resolve import device_of
from braid.targets.machines.target import Target
from braid.tools.explain.kernel_rows import Candidate, KernelRow, Measured, Roofline, Searched
from braid.tools.explain.model_names import model_ops
from braid.tools.explain.reasons import reason_of

_OF_MEMORY = frozenset({"bytes", "load", "store"})
_OF_ARITHMETIC = frozenset({"flops", "matrix", "vector"})


@dataclass
class KernelTable:
    """Makes rows; one for a module, while groups are still in their places.

    `report` has the costs by which layouts were chosen, `profile` the measured times of kernels by
    name, and `names` are those of all ops as they were read.
    """

    target: Target
    report: LayoutReport
    names: Collection[str]
    profile: Mapping[str, OpRecord] = field(default_factory=dict[str, OpRecord])
    model_runs: float | None = None
    """The number of runs of the model that `profile` covers, None where it does not say."""
    counted_runs: int = 0
    """The number of runs in which the hardware counted."""
    placed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why ops run where they do, by their names."""
    tuned: Mapping[str, TunedKernel] = field(default_factory=load_tuned)
    """The records of searches, by the keys of kernels."""

    def rows(self, module: ModuleOp) -> tuple[KernelRow, ...]:
        """Return the kernels of the first variant of a model, in the order in which they run."""
        counts, costs = ExecutionCounts.of(module), CostSource(self.target)
        by_op = {id(each.op): each for each in self.report.ops}
        by_names = {names_of(each.op): each for each in self.report.ops if names_of(each.op)}
        seen = set[str]()
        found: list[KernelRow] = []
        for op in kernel_ops(module):
            names = names_of(op)
            weighed = by_op.get(id(op)) or by_names.get(names)
            runs = 1.0 if op.parent is None else counts.of_block(op.parent)
            is_again = bool(names) and seen.issuperset(names)
            found.append(self._row(op, len(found), runs, costs.of(op), weighed, is_again))
            seen.update(names)
        return tuple(found)

    def _row(
        self,
        op: Operation,
        number: int,
        runs: float,
        costs: DeviceCosts,
        weighed: OpReport | None,
        is_recomputed: bool,
    ) -> KernelRow:
        cost, choice = costs.predicted(op), stored_choice(op)
        schedule, is_reorder = schedule_of(op), _is_reorder(op)
        candidates = tuple(self._candidates(op, choice, cost, runs, costs, weighed))
        measured, why_not = self._measured("+".join(names_of(op)), choice, runs)
        is_compiled = costs.kernels.matches.families and costs.backend.issue is None
        searched = self._searched(op)
        family = cost.family or (GENERIC if is_compiled else "")
        return KernelRow(
            number,
            names_of(op),
            model_ops(names_of(op), self.names),
            tuple(_kinds(op)),
            "reorder" if is_reorder else kind_name(main_op(op)).removeprefix("braid."),
            device_of(op, self.target).name,
            runs,
            runs * cost.seconds,
            runs * costs.start_of(cost),
            measured,
            why_not,
            _roofline(op, runs, costs),
            str(choice),
            tuple(str(result.type) for result in op.results),
            family,
            "" if schedule is None else str(schedule),
            str(cost.source),
            reason_of(candidates, family, schedule is not None, is_reorder, searched),
            candidates,
            is_reorder,
            is_recomputed,
            next(iter(model_ops(names_of(main_op(op)), self.names)), ""),
            searched,
            "; ".join(dict.fromkeys(self.placed[n] for n in names_of(op) if n in self.placed)),
        )

    def _candidates(
        self,
        op: Operation,
        choice: LayoutChoice,
        cost: Cost,
        runs: float,
        costs: DeviceCosts,
        weighed: OpReport | None,
    ) -> Iterator[Candidate]:
        """Yield what was taken, then other kernels in its layouts, then other layouts."""
        # The cost with which others were compared: a profile may have known it, and storage changed
        # it since.
        taken = None if weighed is None else weighed.choices[weighed.chosen]
        known = cost if taken is None or str(taken.layouts) != str(choice) else taken
        seconds = known.seconds if isinstance(known, Cost) else known.cost
        yield Candidate(str(choice), cost.family, str(known.source), seconds, 0.0, True, True)
        if isinstance(op, FusedOp) and costs.backend.issue is None:
            for family, seconds, source in costs.rivals(op, choice):
                if family != cost.family:
                    extra = runs * max(0.0, seconds - cost.seconds)
                    yield Candidate(str(choice), family, str(source), seconds, extra)
        if weighed is None:
            return
        for index, other in enumerate(weighed.choices):
            if index != weighed.chosen:
                extra = other.total - self.report.cost
                lasting = None if extra == float("inf") else max(0.0, extra)
                known = (other.family, str(other.source), other.cost, lasting, weighed.is_exact)
                yield Candidate(str(other.layouts), *known)

    def _searched(self, op: Operation) -> Searched | None:
        """Return the record of a kernel's search, None without one."""
        if not isinstance(op, FusedOp) or not self.tuned:
            return None
        found = self.tuned.get(schedule_key(op, device_of(op, self.target).machine))
        if found is None:
            return None
        return Searched(found.baseline, found.seconds, found.chosen is None)

    def _measured(
        self, name: str, choice: LayoutChoice, runs: float
    ) -> tuple[Measured | None, str]:
        """Return what the profile has of a kernel, or why it has nothing."""
        if not self.profile:
            return None, "no profile was given"
        record = self.profile.get(name)
        if record is None:
            return None, "the profile has no such kernel"
        if record.layouts and str(choice) not in record.layouts:
            return None, f"the profile has it in other layouts: {', '.join(record.layouts)}"
        record = record.layouts.get(str(choice), record)
        if record.seconds is None or not record.count:
            return None, "the profile counts its runs, but has no times"
        model_runs = record.count / runs if self.model_runs is None else self.model_runs
        low, median, high = record.quartiles or (None, None, None)
        counted = max(1, self.counted_runs)
        counters = {name: value / counted for name, value in record.counters.items()}
        seconds = record.seconds / model_runs
        return Measured(seconds, median, low, high, record.count, counters), ""


def kernel_ops(module: ModuleOp) -> Iterator[Operation]:
    """Yield the groups that become kernels, in one variant of a model."""
    for op in _ops(module):
        is_kernel = not is_only_storage(op) if isinstance(op, FusedOp) else is_compute(op)
        if is_kernel:
            yield op


def _ops(module: ModuleOp) -> Iterator[Operation]:
    """Yield the ops of one variant of a model that are in no group."""
    for function in (*public_functions(module)[:1], *device_functions(module)):
        for op in function.walk():
            if not isinstance(op.parent_op(), FusedOp):
                yield op


def free_ops(module: ModuleOp) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the names of groups without a kernel, each with the reason."""
    for op in _ops(module):
        if isinstance(op, FusedOp) and is_only_storage(op):
            why = "moves nothing, since its operands lie where its result is wanted"
            yield names_of(op), f"{' '.join(_kinds(op))} {why}"


def _kinds(op: Operation) -> Iterator[str]:
    if isinstance(op, FusedOp):
        for inner in op.body.block.ops:
            if not is_leaf(inner) and not isinstance(inner, YieldOp):
                yield inner.name.removeprefix("braid.")
    else:
        yield kind_name(op).removeprefix("braid.")


def _is_reorder(op: Operation) -> bool:
    return isinstance(op, FusedOp) and isinstance(op.body.block.first_op, ReorderOp)


def _roofline(op: Operation, runs: float, costs: DeviceCosts) -> Roofline | None:
    """Return the roofline of an op on its device, None where nothing is known of it."""
    amounts = amounts_of(op)
    parts = costs.roofline_parts(amounts.by_resource, computed_type(op))
    if not parts:
        return None
    most = max(parts, key=lambda resource: parts[resource])
    limit = "memory" if most in _OF_MEMORY else "compute" if most in _OF_ARITHMETIC else most
    return Roofline(
        runs * parts[most],
        limit,
        {resource: runs * seconds for resource, seconds in parts.items()},
        int(amounts.by_resource["flops"]),
        amounts.moved,
    )
