"""Walks a model through the default pipeline and keeps what explains its decisions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import Remark, collect_remarks
from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.structure.clusters import complete_clusters, has_clusters
from braid.dialects.braid.variants import public_functions
from braid.driver.memory_budget import check_budget, parse_budget, with_budget
from braid.driver.pipeline import graph_passes, with_partition, with_profile
from braid.driver.sources.signature import entry_of
from braid.lowering.host import model_code
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.layout.layout_report import layout_report
from braid.passes.layout.select_layouts import SelectLayoutsPass
from braid.passes.partition.apply_clusters import ApplyClustersPass
from braid.passes.partition.assign_devices import Strategy
from braid.passes.partition.host_ops import HostOps
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.layout_costs import LayoutCosts
from braid.targets.machines.resolve import target_of
from braid.targets.machines.target import Target
from braid.tools.explain.device_view import DeviceExplanation
from braid.tools.explain.graph_view import function_graph, plain_node
from braid.tools.explain.layout_view import LayoutExplanation
from braid.tools.explain.memory_view import MemoryExplanation, PlannedMemory
from braid.tools.explain.views import GraphView

RESOURCE = "seconds"


@dataclass(frozen=True)
class Walk:
    """The results of a compilation to explain: the graph as read, its layouts, and remarks.

    `devices` is None for a model that is on one device because it needs no other.
    """

    graph: GraphView
    layouts: LayoutExplanation
    layout_view: GraphView
    devices: DeviceExplanation | None
    remarks: list[Remark]


def walk_through(
    context: Context,
    module: ModuleOp,
    *,
    profile: Path | None = None,
    partition: Strategy | None = None,
    pin: Sequence[str] = (),
) -> Walk:
    """Run the default pipeline on `module`, which is changed; `profile` weighs its ops.

    `partition` and `pin` are as in `compile`.

    Raises:
        BraidError: a pass finds fault with the module, or the profile cannot be read.

    """
    target = target_of(module)
    placed = with_partition(graph_passes(target), partition, pin, target)
    passes = with_profile(placed, profile)
    decides = [isinstance(pass_, SelectLayoutsPass) for pass_ in passes].index(True)
    outlines = [isinstance(pass_, ApplyClustersPass) for pass_ in passes].index(True)
    graph = _graph(module)
    with collect_remarks() as remarks:
        run_pipeline(context, module, passes[:decides], verify=False)
        counts = ExecutionCounts.of(module)
        layouts = _layouts(module, counts)
        # The pass that applies the decision stands right behind it.
        run_pipeline(context, module, passes[decides : decides + 2], verify=False)
        layout_view = layouts.view(_main(module), counts)
        run_pipeline(context, module, passes[decides + 2 : outlines], verify=False)
        devices = _devices(module, target)
        run_pipeline(context, module, passes[outlines:], verify=False)
    return Walk(graph, layouts, layout_view, devices, remarks)


def _devices(module: ModuleOp, target: Target) -> DeviceExplanation | None:
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
    """Compile what `read` gives, and again with what keeps to `budget` if there is one.

    Raises:
        BraidError: as `walk_through`; InfeasibleError where the budget cannot be met.

    """
    module = read()
    passes = with_profile(graph_passes(target_of(module)), profile)
    before = _planned(context, module, passes, "Without a budget" if budget else "Plan")
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
    # Nothing is linked: parts that only become text, as circuits for some FPGAs, have a plan too.
    model_code.emit_parts(module, target_of(module))
    model_code.plan_memory(context, module)
    return PlannedMemory.of(module, label, tuple(remarks))


def _graph(module: ModuleOp) -> GraphView:
    graph = function_graph(_main(module), plain_node)
    summary = f"The model as it was read: {len(graph.nodes)} inputs, ops and outputs."
    return GraphView("Graph", summary, graph)


def _layouts(module: ModuleOp, counts: ExecutionCounts) -> LayoutExplanation:
    costs = LayoutCosts(module, CostSource(target_of(module)), RESOURCE)
    return LayoutExplanation(layout_report(_main(module), costs, counts), RESOURCE)


def _main(module: ModuleOp) -> FuncOp:
    """The function that runs; of several variants the first.

    Raises BraidError where there is none.
    """
    functions = public_functions(module)
    return functions[0] if functions else entry_of(module)
