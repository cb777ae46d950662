"""`Scan`: `scf.for` over slices of sequences."""

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.size_evaluation import as_array, fixed, fixed_shape
from braid.dialects.braid.size_limits import require_table
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    concat,
    drop_dims,
    normalized,
    reshape,
    slice_dim,
    transpose,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.control_flow import (
    counted_loop,
    loop_keys,
    next_carried,
    require_outputs,
)
from braid.support.sizes.expression import Extent


@importer("Scan")
def scan_by_batch_entry(b: Builder, node: Node) -> Sequence[SSAValue]:
    """Import `Scan` of opset 8, which scans the batch's entries one by one.

    The batch is the first dim of all inputs.
    """
    if node.optional(0) is not None:
        node.unsupported("sequences of different lengths are not supported")
    inputs = [node.input(i) for i in range(1, len(node.inputs))]
    count = fixed_shape(inputs[0])[0]
    by_entry = [
        _scanned(b, node, [drop_dims(b, slice_dim(b, x, 0, i, 1), [0]) for x in inputs])
        for i in range(count)
    ]
    return [
        concat(b, [reshape(b, value, [1, *extents_of(value)]) for value in values], 0)
        for values in zip(*by_entry, strict=True)
    ]


@importer("Scan", since=9)
def scan(b: Builder, node: Node) -> Sequence[SSAValue]:
    """Import `Scan` of states, then sequences, into final states, then collected values."""
    return _scanned(b, node, [node.input(i) for i in range(len(node.inputs))])


def _scanned(b: Builder, node: Node, inputs: Sequence[SSAValue]) -> list[SSAValue]:
    graph, sequences = node.graph("body"), node.integer("num_scan_inputs")
    require_outputs(node, len(graph.output))
    states, scanned = inputs[: len(inputs) - sequences], inputs[len(inputs) - sequences :]
    axes = node.integers("scan_input_axes", (0,) * sequences)
    directions = "directions" if node.opset < 9 else "scan_input_directions"
    backward = node.integers(directions, (0,) * sequences)
    dims = [normalized(a, len(extents_of(x))) for a, x in zip(axes, scanned, strict=True)]
    counts = {extents_of(x)[dim] for dim, x in zip(dims, scanned, strict=True)}
    if len(counts) != 1:
        node.fail(f"the sequences have lengths {sorted(map(str, counts))}, expected one length")
    count = counts.pop()

    def body(
        number: SSAValue, values: Sequence[SSAValue]
    ) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
        slices = [
            b.emit(GatherOp.get(x, _from_end(b, number, count) if reverse else number, dim))
            for x, dim, reverse in zip(scanned, dims, backward, strict=True)
        ]
        results = node.import_subgraph(graph, [*values, *slices])
        after, collected = results[: len(values)], results[len(values) :]
        names = [value.name for value in graph.input[: len(values)]]
        return next_carried(b, node, names, values, after), collected

    results = counted_loop(b, count, states, body, loop_keys(node, graph))
    return [*results[: len(states)], *_placed(b, node, results[len(states) :], count)]


def _from_end(b: Builder, number: SSAValue, count: Extent) -> SSAValue:
    return apply(b, "sub", b.sizes(as_array([count - 1], [])), number)


def _placed(
    b: Builder, node: Node, collections: Sequence[SSAValue], count: Extent
) -> list[SSAValue]:
    """Return the collected values in the order and along the dims that the node asks for."""
    axes = node.integers("scan_output_axes", (0,) * len(collections))
    backward = node.integers("scan_output_directions", (0,) * len(collections))
    placed: list[SSAValue] = []
    for value, axis, reverse in zip(collections, axes, backward, strict=True):
        rank = len(extents_of(value))
        if reverse:
            steps = fixed(count, "the number of iterations")
            require_table(steps, "the order of the collected values")
            value = b.emit(GatherOp.get(value, b.constant(np.arange(steps)[::-1].copy()), 0))
        order = list(range(1, rank))
        order.insert(normalized(axis, rank), 0)
        placed.append(transpose(b, value, order))
    return placed
