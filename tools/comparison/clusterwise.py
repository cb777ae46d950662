"""Comparing two ways to run a model cluster by cluster."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp
from xdsl.ir import Operation, SSAValue

from braid.analysis.structure.clusters import has_clusters
from braid.dialects.braid.clusters import Placement, placement_of, tolerance_of
from braid.dialects.braid.names import names_of, set_names
from braid.dialects.braid.ports import name_dictionaries
from braid.driver.pipeline import GRAPH_PIPELINE, with_partition
from braid.driver.sources.signature import entry_of, signature_of
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.passes.partition.assign_devices import Strategy
from braid.passes.partition.select_types import SelectTypesPass
from braid.support.errors import BraidError
from braid.targets.machines.resolve import target_of
from braid.tools.comparison.layerwise import expose_results


@dataclass(frozen=True)
class ExposedClusters:
    """A model whose outputs are the values that leave each cluster.

    `order` are the names of all outputs in the order of the ops, `placements` the clusters of those
    that a cluster computes.
    """

    module: ModuleOp
    order: Sequence[str]
    placements: Mapping[str, Placement]

    def alone(self) -> "SingleClusters":
        """Return the reference by which each cluster is judged alone."""
        return _judged_alone(self.module.clone(), self.placements)


@dataclass(frozen=True)
class SingleClusters:
    """A model whose clusters read the results that others should have computed as further inputs.

    So the error of one cluster does not include that of earlier ones. `given` are the names of
    these inputs by the output that each stands for, `tolerances` those that the ops behind an
    output declare.
    """

    module: ModuleOp
    given: Mapping[str, str] = field(default_factory=dict[str, str])
    tolerances: Mapping[str, float] = field(default_factory=dict[str, float])

    def inputs(
        self, inputs: Mapping[str, NDArray[Any]], outputs: Mapping[str, NDArray[Any]]
    ) -> dict[str, NDArray[Any]]:
        """Return what it reads: inputs of the model, and outputs of the run that is judged."""
        return {**inputs, **{given: outputs[name] for name, given in self.given.items()}}


def expose_clusters(
    context: Context, module: ModuleOp, strategy: Strategy | None, pins: Sequence[str]
) -> ExposedClusters:
    """Decide the clusters of a model, and make what leaves each a further output, in place.

    Raises BraidError where the model runs on one device.
    """
    target = target_of(module)
    passes = with_partition(parse_pipeline(GRAPH_PIPELINE), strategy, pins, target)
    decides = [isinstance(pass_, SelectTypesPass) for pass_ in passes].index(True)
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
    return ExposedClusters(module, expose_results(module, clusters), clusters)


def _judged_alone(module: ModuleOp, placements: Mapping[str, Placement]) -> SingleClusters:
    """Cut what leaves clusters, in place; return how each cluster is judged."""
    function = entry_of(module)
    inputs, outputs = signature_of(module)
    block, terminator = function.body.block, function.body.block.last_op
    assert terminator is not None
    values = dict(zip((spec.name for spec in outputs), terminator.operands, strict=True))
    taken, given = {spec.name for spec in inputs}, dict[str, str]()
    for name, placement in placements.items():
        value = values.get(name)
        if value is None:  # its op has several results
            continue
        uses = [use for use in value.uses if _is_outside(use.operation, value, placement)]
        given[name] = name
        while given[name] in taken:
            given[name] += "'"
        taken.add(given[name])
        argument = block.insert_arg(value.type, len(block.args))
        for use in uses:
            if use.operation is not terminator:
                use.operation.operands[use.index] = argument
    function.function_type = FunctionType.from_lists(
        [argument.type for argument in block.args], list(function.function_type.outputs.data)
    )
    known = function.arg_attrs or name_dictionaries(spec.name for spec in inputs)
    function.arg_attrs = ArrayAttr([*known, *name_dictionaries(given.values())])
    tolerances = {name: _tolerance(value) for name, value in values.items()}
    return SingleClusters(module, given, tolerances)


def _is_outside(reader: Operation, value: SSAValue, placement: Placement) -> bool:
    return _around(reader, value) != placement


def _tolerance(value: SSAValue) -> float:
    """Sum the tolerances declared by the clusters that the value comes from: to first order."""
    worst: dict[object, float] = {}
    for op in _behind(value):
        cluster = placement_of(op)
        worst[cluster] = max(worst.get(cluster, 0.0), tolerance_of(op))
    return sum(worst.values())


def _behind(value: SSAValue) -> Iterator[Operation]:
    """Yield the ops that make a value, with those in their regions."""
    seen, waiting = set[Operation](), [value.owner]
    while waiting:
        op = waiting.pop()
        if not isinstance(op, Operation) or op in seen:
            continue
        for inner in op.walk():
            seen.add(inner)
            yield inner
            waiting += [operand.owner for operand in inner.operands]


def _leaves(value: SSAValue, placement: Placement) -> bool:
    """Return whether anything outside of the cluster reads the value."""
    return any(_is_outside(use.operation, value, placement) for use in value.uses)


def _around(op: Operation, value: SSAValue) -> Placement | None:
    """Return the cluster of a reader in the block of `value`; control flow has none."""
    owner = value.owner
    assert isinstance(owner, Operation)
    return placement_of(op) if op.parent is owner.parent else None
