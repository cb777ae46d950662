"""Comparing two ways to run a model cluster by cluster."""

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from braid.analysis.structure.clusters import has_clusters
from braid.dialects.braid.clusters import Placement, placement_of
from braid.dialects.braid.names import names_of, set_names
from braid.execution.layerwise import expose_results
from braid.graph_pipeline import GRAPH_PIPELINE, with_partition
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.passes.partition.assign_devices import Strategy
from braid.passes.partition.select_clusters import SelectClustersPass
from braid.sources.signature import entry_of, signature_of
from braid.support.errors import BraidError
from braid.targets.machines.resolve import target_of


def expose_clusters(
    context: Context, module: ModuleOp, strategy: Strategy | None, pins: Sequence[str]
) -> tuple[tuple[str, ...], dict[str, Placement]]:
    """Decide the clusters of a model, and make what leaves each a further output, in place.

    Returns the names of all outputs in the order in which the ops stand, and the clusters of those
    that one makes. Raises BraidError where the model runs on one device.
    """
    target = target_of(module)
    passes = with_partition(parse_pipeline(GRAPH_PIPELINE), strategy, pins, target)
    decides = [isinstance(pass_, SelectClustersPass) for pass_ in passes].index(True)
    run_pipeline(context, module, passes[: decides + 1], verify=False)
    if not has_clusters(module):
        raise BraidError(
            f"the model runs on one device of target '{target.name}'",
            hint="give a target with several (--target), or --partition or --pin",
        )
    clusters: dict[str, Placement] = {}
    for place, op in enumerate(entry_of(module).body.block.ops):
        placement = placement_of(op)
        if placement is not None and any(_leaves(result, placement) for result in op.results):
            if not names_of(op):
                set_names(op, [f"{op.name}:{place}"])
            clusters[names_of(op)[0]] = placement
    results = entry_of(module).body.block.last_op
    assert results is not None
    for value, spec in zip(results.operands, signature_of(module)[1], strict=True):
        placement = placement_of(value.owner) if isinstance(value.owner, Operation) else None
        if placement is not None:
            clusters[spec.name] = placement
    return expose_results(module, clusters), clusters


def _leaves(value: SSAValue, placement: Placement) -> bool:
    """Whether anything outside of the cluster reads the value."""
    return any(_around(use.operation, value) != placement for use in value.uses)


def _around(op: Operation, value: SSAValue) -> Placement | None:
    """The cluster of a reader in the block of `value`; control flow has none."""
    owner = value.owner
    assert isinstance(owner, Operation)
    return placement_of(op) if op.parent is owner.parent else None
