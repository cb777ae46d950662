"""Walks a model through the default pipeline and keeps what explains its decisions."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import Remark, collect_remarks
from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.profile.profile_file import own_record
from braid.analysis.structure.clusters import complete_clusters, has_clusters
from braid.dialects.braid.names import names_of
from braid.dialects.braid.sizes import is_open
from braid.dialects.braid.variants import public_functions
from braid.driver.memory_budget import check_budget, parse_budget, with_budget
from braid.driver.pipeline import graph_passes, with_partition, with_profile
from braid.driver.sources.signature import entry_of
from braid.lowering.host import model_code
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.layout.layout_report import layout_report
from braid.passes.layout.select_layouts import SelectLayoutsPass
from braid.passes.outlining.outline_kernels import OutlineKernelsPass
from braid.passes.partition.apply_clusters import ApplyClustersPass
from braid.passes.partition.assign_devices import AssignDevicesPass, Strategy
from braid.passes.partition.host_ops import HostOps
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.layout_costs import LayoutCosts
from braid.targets.machines.resolve import target_of
from braid.targets.machines.target import Target
from braid.tools.explain.assembly import KernelCode, kernel_code
from braid.tools.explain.device_view import DeviceExplanation
from braid.tools.explain.graph_view import Edges, function_graph
from braid.tools.explain.history import History
from braid.tools.explain.kernel_rows import KernelRow
from braid.tools.explain.kernels import KernelTable, free_ops
from braid.tools.explain.layout_view import LayoutExplanation
from braid.tools.explain.memory_view import MemoryExplanation, PlannedMemory
from braid.tools.explain.model_graph import GraphNode
from braid.tools.explain.placement import Placement
from braid.tools.explain.sizes_view import sizes_view
from braid.tools.explain.views import SizesView

RESOURCE = "seconds"
WITHOUT_BUDGET = "Without a budget"


@dataclass(frozen=True)
class Walk:
    """The results of a compilation to explain: layouts, devices and remarks.

    `devices` is None for a model that needs only one device, `whole` if it was not requested, and
    `sizes` for a module without open dims.
    """

    target: Target
    layouts: LayoutExplanation
    devices: DeviceExplanation | None
    remarks: list[Remark]
    whole: "Whole | None" = None
    sizes: SizesView | None = None


@dataclass(frozen=True)
class Whole:
    """The other parts of the page: the graph as read, kernels, ops without one, and memory."""

    nodes: tuple[GraphNode, ...]
    edges: Edges
    kernels: tuple[KernelRow, ...]
    free: tuple[tuple[tuple[str, ...], str], ...]
    plan: PlannedMemory
    seconds: float
    code: KernelCode = field(default_factory=KernelCode)


def walk_through(
    context: Context,
    module: ModuleOp,
    *,
    profile: Path | None = None,
    partition: Strategy | None = None,
    pin: Sequence[str] = (),
    whole: bool = False,
    history: History | None = None,
    assembly: bool = False,
    likely: Mapping[str, int] | None = None,
) -> Walk:
    """Run the default pipeline on `module`, which is changed; `profile` weighs its ops.

    `partition` and `pin` are as in `compile`. With `whole`, for which the module must have no open
    dims, memory is planned too. `history` notes what passes change; with `assembly`, kernels are
    compiled, and their code is kept. `likely` are the sizes at which decisions about an open module
    are made, of which times at other sizes are predicted.

    Raises:
        BraidError: a pass finds fault with the module, or the profile cannot be read.

    """
    target = target_of(module)
    chosen = with_partition(graph_passes(target), partition, pin, target)
    passes = with_profile(chosen, profile)
    assigned = _position(passes, AssignDevicesPass) + 1
    decides = _position(passes, SelectLayoutsPass)
    clusters = _position(passes, ApplyClustersPass)
    outlines = _position(passes, OutlineKernelsPass)
    # An outlined op is a call, which holds no further facts about it.
    watchers = () if history is None else (history,)
    run = _TimedPipeline(partial(run_pipeline, context, module, verify=False))
    watched = partial(run, instrumentation=watchers)
    nodes, edges = function_graph(_main(module)) if whole else ((), ())
    placement = Placement.of(module, target, partition, pin)
    op_names = {name for op in module.walk() for name in names_of(op)} if likely else set[str]()
    if history is not None:
        history.begin(module)
    with collect_remarks() as remarks:
        watched(passes[:assigned])
        placed = placement.reasons(module) if whole else dict[str, str]()
        watched(passes[assigned:decides])
        layouts = _layouts(module, ExecutionCounts.of(module))
        watched(passes[decides:clusters])
        devices = _devices(module, target)
        watched(passes[clusters:outlines])
        names = {node.name for node in nodes}
        kernels = _rows(module, target, layouts, names, profile, placed) if whole else ()
        free = tuple(free_ops(module)) if whole else ()
        sizes = sizes_view(module, target, likely, op_names) if likely else None
        run(passes[outlines:])
    if not whole:
        return Walk(target, layouts, devices, remarks, sizes=sizes)
    code = kernel_code(module, target) if assembly else KernelCode()
    began = time.process_time()
    plan = _plan(context, module, "Plan", tuple(remarks))
    seconds = run.seconds + time.process_time() - began
    found = Whole(nodes, edges, kernels, free, plan, seconds, code)
    return Walk(target, layouts, devices, remarks, found)


@dataclass
class _TimedPipeline:
    """Runs passes, and adds up their CPU seconds: explaining them is no part of these."""

    run: Callable[..., object]
    seconds: float = 0.0

    def __call__(self, passes: Sequence[ModulePass], **how: object) -> None:
        """Run `passes`."""
        began = time.process_time()
        self.run(passes, **how)
        self.seconds += time.process_time() - began


def decided_rows(
    context: Context, module: ModuleOp, passes: Sequence[ModulePass]
) -> tuple[KernelRow, ...]:
    """Run `passes` on a module without open dims until kernels are outlined; return the kernels.

    Raises:
        BraidError: a pass finds fault with the module.

    """
    decides = _position(passes, SelectLayoutsPass)
    outlines = _position(passes, OutlineKernelsPass)
    names = {name for op in module.walk() for name in names_of(op)}
    run_pipeline(context, module, passes[:decides], verify=False)
    layouts = _layouts(module, ExecutionCounts.of(module))
    run_pipeline(context, module, passes[decides:outlines], verify=False)
    return _rows(module, target_of(module), layouts, names, None, {})


def _position(passes: Sequence[ModulePass], kind: type[ModulePass]) -> int:
    return [isinstance(pass_, kind) for pass_ in passes].index(True)


def _rows(
    module: ModuleOp,
    target: Target,
    layouts: LayoutExplanation,
    names: set[str],
    profile: Path | None,
    placed: Mapping[str, str],
) -> tuple[KernelRow, ...]:
    """Return the kernels; a profile of another tool is part of their predictions."""
    record = None if profile is None else own_record(profile)
    table = KernelTable(target, layouts.report, names, placed=placed)
    if record is not None:
        runs = None if record.runs is None else record.runs.count
        counted = record.counted.runs
        table = replace(table, profile=record.ops, model_runs=runs, counted_runs=counted)
    return table.rows(module)


def _devices(module: ModuleOp, target: Target) -> DeviceExplanation | None:
    if is_open(module):
        return None  # what its launches take depends on sizes
    if has_clusters(module):
        complete_clusters(module)
    elif not HostOps.of(_main(module), target).are_beside(target):
        return None
    return DeviceExplanation.of(_main(module), target, ExecutionCounts.of(module))


def plan_memory(
    context: Context,
    read: Callable[[], ModuleOp],
    *,
    profile: Path | None = None,
    budget: str | None = None,
) -> MemoryExplanation:
    """Compile the result of `read`, and again within `budget` if there is one.

    Raises:
        BraidError: as `walk_through`; InfeasibleError where the budget cannot be met.

    """
    module = read()
    passes = with_profile(graph_passes(target_of(module)), profile)
    before = _planned(context, module, passes, WITHOUT_BUDGET if budget else "Plan")
    if budget is None:
        return MemoryExplanation(before)
    limit = parse_budget(budget)
    fitting = with_budget(passes, limit)
    after = _planned(context, read(), fitting, f"With a budget of {budget}")
    check_budget([after.report], limit)
    return MemoryExplanation(before, after)


def _planned(
    context: Context, module: ModuleOp, passes: Sequence[ModulePass], label: str
) -> PlannedMemory:
    with collect_remarks() as remarks:
        run_pipeline(context, module, passes, verify=False)
    return _plan(context, module, label, tuple(remarks))


def _plan(
    context: Context, module: ModuleOp, label: str, remarks: tuple[Remark, ...]
) -> PlannedMemory:
    # Nothing is linked: parts that only become text, as circuits for some FPGAs, have a plan too.
    model_code.emit_parts(module, target_of(module))
    model_code.plan_memory(context, module)
    return PlannedMemory.of(module, label, remarks)


def _layouts(module: ModuleOp, counts: ExecutionCounts) -> LayoutExplanation:
    costs = LayoutCosts(module, CostSource(target_of(module)), RESOURCE)
    return LayoutExplanation(layout_report(_main(module), costs, counts), RESOURCE)


def _main(module: ModuleOp) -> FuncOp:
    """Return the function that runs; of several variants the first.

    Raises BraidError if there is none.
    """
    functions = public_functions(module)
    return functions[0] if functions else entry_of(module)
