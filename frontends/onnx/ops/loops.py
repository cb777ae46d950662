"""`Loop`: with a known number of iterations, until a condition, and one after the other.

A loop that collects has a row for each iteration. If data decide their number, there are rows for
the maximum, which are cut afterwards, or the loop runs once to count them and once to collect.
"""

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
from onnx import GraphProto, numpy_helper
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType
from xdsl.ir import Block, SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, tensor_type
from braid.dialects.braid.dtypes import i64
from braid.dialects.braid.size_evaluation import SIZES
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.decisions import decided, may_decide
from braid.frontends.onnx.building.expressions import apply, concat, reshape, slice_dim
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.building.size_inputs import request_value
from braid.frontends.onnx.ops.control_flow import (
    collected_rows,
    counted_loop,
    extracted,
    insert_with_keys,
    iteration_number,
    loop_keys,
    next_carried,
    require_element_types,
    require_outputs,
    with_slice,
    zeros_like,
)
from braid.support.errors import BraidError, UnsupportedError
from braid.support.sizes.expression import Extent, Size
from braid.support.sizes.operators import maximum

UNROLLED_ITERATIONS = 64
"""A loop of more iterations must have a body that is the same in all of them."""

_UNROLLED = {None, *range(1, UNROLLED_ITERATIONS + 1)}
"""Trip counts of loops that may be unrolled; None for one that only a condition ends."""

_BUFFER = (
    "let the loop carry a tensor with a row for each of the most iterations, and write into that"
)
"""This has a known shape instead; the number of iterations can be carried as well."""


@importer("Loop")
def loop(b: Builder, node: Node) -> Sequence[SSAValue]:
    """Import `Loop`.

    Its inputs are trip count and condition, either of which may be left out, and carried values.
    """
    require_outputs(node, len(node.graph("body").output) - 1)
    for operand in (0, 1):
        node.require_scalar(operand)
    condition = node.optional(1)
    known = None if condition is None else b.known(condition)
    starts_true = condition is None or (known is not None and bool(known.item()))
    if starts_true and _stays_true(node.graph("body")):
        return _for_loop(b, node)
    return _while_loop(b, node)


def _stays_true(body: GraphProto) -> bool:
    """Return whether the condition that the body gives is the one it gets, or a constant true."""
    producers = {name: inner for inner in body.node for name in inner.output}
    constants = {tensor.name: tensor for tensor in body.initializer}
    name = body.output[0].name
    while name in producers and producers[name].op_type == "Identity":
        name = producers[name].input[0]
    if name == body.input[1].name:
        return True
    producer = producers.get(name)
    if producer is not None and producer.op_type == "Constant":
        values = [attribute.t for attribute in producer.attribute if attribute.name == "value"]
    else:
        values = [constants[name]] if name in constants else []
    return any(bool(numpy_helper.to_array(value).item()) for value in values)


def _for_loop(b: Builder, node: Node) -> Sequence[SSAValue]:
    graph, carried = node.graph("body"), [node.input(i) for i in range(2, len(node.inputs))]
    trip_count = node.optional(0)
    if trip_count is None:
        node.fail("the loop never ends: it has no trip count, and its condition stays true")
    count = _iterations(b, node, trip_count, collects=len(graph.output) > 1 + len(carried))

    def body(
        number: SSAValue, values: Sequence[SSAValue]
    ) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
        true = b.constant(np.array(True))
        results = node.import_subgraph(graph, [number, true, *values])[1:]
        after, collected = results[: len(values)], results[len(values) :]
        after = next_carried(b, node, [value.name for value in graph.input[2:]], values, after)
        if collected and count is None:
            node.unsupported(
                "values are collected over a number of iterations that is not known at import",
                hint=_BUFFER,
            )
        return after, collected

    limit: Extent | SSAValue = count if count is not None else _as_index(b, trip_count)
    try:
        with b.requiring_branches():  # in single iterations a condition may be known
            return counted_loop(b, limit, carried, body, loop_keys(node, graph))
    except BraidError as error:
        is_unsupported = isinstance(error, UnsupportedError)
        if is_unsupported and isinstance(count, int) and 0 < count <= UNROLLED_ITERATIONS:
            return _unrolled(b, node, count, carried)
        if b.requires_branches:
            raise
        return counted_loop(b, limit, carried, body, loop_keys(node, graph))


def _iterations(b: Builder, node: Node, trip_count: SSAValue, *, collects: bool) -> Extent | None:
    """Return the number of iterations; None where data say it, and nothing is collected."""
    known = b.sizes_of(trip_count)
    if known is not None:
        (count,) = known.reshape(-1).tolist()
        return max(0, count) if isinstance(count, int) else SIZES.simplified(maximum(0, count))
    if not collects or not may_decide(b, trip_count):
        return None
    steps = apply(b, "maximum", reshape(b, trip_count, [1]), b.constant(np.zeros(1, np.int64)))
    if request_value(b, steps):
        return None
    (count,) = decided(b, steps, node.proto.input[0]).reshape(-1).tolist()
    return count


def _unrolled(
    b: Builder, node: Node, most: int | None, carried: Sequence[SSAValue]
) -> list[SSAValue]:
    """Repeat the body `most` times or until its condition, known at import, is false.

    This is for shapes that depend on the iteration's number, and for values collected until then.
    """
    graph, values = node.graph("body"), list(carried)
    condition, collected = b.constant(np.array(True)), list[list[SSAValue]]()
    for number in range(UNROLLED_ITERATIONS if most is None else most):
        inputs = [b.constant(np.array(number, np.int64)), condition, *values]
        condition, *results = node.import_subgraph(graph, inputs)
        names = [value.name for value in graph.input[2:]]
        require_element_types(node, names, values, results[: len(values)])
        values = results[: len(values)]
        collected.append([reshape(b, v, [1, *extents_of(v)]) for v in results[len(values) :]])
        goes_on = b.known(condition)
        if goes_on is None:
            _refuse_to_collect(node)
        if not goes_on.item():
            break
    else:
        if most is None:
            _refuse_to_collect(node)
    return [*values, *(concat(b, slices, 0) for slices in zip(*collected, strict=True))]


def _collecting_loop(b: Builder, node: Node) -> Sequence[SSAValue]:
    """Import a loop that collects until a condition ends it.

    The loop ends at a known iteration, or when data decide.
    """
    trip_count, condition = node.optional(0), node.optional(1)
    first = None if condition is None else b.known(condition)
    limit = None if trip_count is None else b.known(trip_count)
    is_known = (condition is None) == (first is None) and (trip_count is None) == (limit is None)
    most = None if limit is None else int(limit.item())
    if is_known and most in _UNROLLED and (first is None or first.item()):
        carried = [node.input(i) for i in range(2, len(node.inputs))]
        before = len(b.new_ops)
        try:
            return _unrolled(b, node, most, carried)
        except UnsupportedError:
            if not b.may_decide:
                raise
            b.give_up(before)
    if not b.may_decide:
        _refuse_to_collect(node)
    return _counted_by_data(b, node)


def _counted_by_data(b: Builder, node: Node) -> Sequence[SSAValue]:
    """Import a loop whose number of iterations depends on data, and which collects values.

    The collected tensor has a row for each possible iteration, and is cut afterwards. If their
    number has no bound, the loop runs twice: once to count the iterations, then for that number of
    iterations.
    """
    carried = [node.input(i) for i in range(2, len(node.inputs))]
    graph, most = node.graph("body"), _most_iterations(b, node)
    name = next((n for n in node.proto.output[len(carried) :] if n), node.proto.name)
    count, results = _until_condition(b, node, most)
    is_collected = len(results) > len(carried)
    counted = b.insert(tensor.FromElementsOp(count, result_type=TensorType(i64, [1])))
    (steps,) = decided(b, counted.results[0], name or "iterations").reshape(-1).tolist()
    if is_collected:
        collected = [slice_dim(b, value, 0, 0, steps) for value in results[len(carried) :]]
        return [*results[: len(carried)], *collected]

    def body(
        number: SSAValue, values: Sequence[SSAValue]
    ) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
        true = b.constant(np.array(True))
        following = node.import_subgraph(graph, [number, true, *values])[1:]
        names = [value.name for value in graph.input[2:]]
        after = next_carried(b, node, names, values, following[: len(values)])
        return after, following[len(values) :]

    return counted_loop(b, steps, carried, body, loop_keys(node, graph))


MOST_ROWS, MOST_ROW_ELEMENTS = 1 << 12, 1 << 16
"""Rows and elements that are allocated for a loop's collected values before their number is known;
if the number of rows is open, each row has at most 64 elements."""

_MOST_OPEN_ROW = 64


def _is_small(most: Extent, row: Sequence[Extent]) -> bool:
    """Return whether rows of these extents may be allocated for all iterations."""
    elements = 1
    for extent in row:
        if isinstance(extent, Size):
            return False
        elements *= extent
    if isinstance(most, Size):
        return elements <= _MOST_OPEN_ROW
    return elements * most <= MOST_ROW_ELEMENTS


def _most_iterations(b: Builder, node: Node) -> Extent | None:
    """Return the most iterations of a loop if rows for all of them may be allocated."""
    trip_count = node.optional(0)
    known = None if trip_count is None else b.sizes_of(trip_count)
    if known is None:
        return None
    (most,) = known.reshape(-1).tolist()
    return most if isinstance(most, Size) or 0 < most <= MOST_ROWS else None


def _refuse_to_collect(node: Node) -> NoReturn:
    node.unsupported(
        "values are collected by a loop that a condition may end, so that their number is "
        "not known at import",
        hint=_BUFFER,
    )


def _as_index(b: Builder, count: SSAValue) -> SSAValue:
    return b.insert(arith.IndexCastOp(extracted(b, count), IndexType())).results[0]


def _while_loop(b: Builder, node: Node) -> Sequence[SSAValue]:
    """Import a loop that carries the iteration's number, the condition, and the values."""
    if len(node.graph("body").output) != len(node.graph("body").input) - 1:
        return _collecting_loop(b, node)
    return _until_condition(b, node)[1]


def _until_condition(
    b: Builder, node: Node, most: Extent | None = None
) -> tuple[SSAValue, Sequence[SSAValue]]:
    """Insert a loop that its condition ends; the number of its iterations, and its other results.

    These are the carried values and, if there are at most `most` iterations whose rows are small
    together, the collected values with that many rows.
    """
    graph, condition = node.graph("body"), node.optional(1)
    limit = None if (trip_count := node.optional(0)) is None else extracted(b, trip_count)
    first = b.constant(np.array(True)) if condition is None else reshape(b, condition, [])
    zero = b.insert(arith.ConstantOp(IntegerAttr(0, i64))).results[0]
    one = b.insert(arith.ConstantOp(IntegerAttr(1, i64))).results[0]
    starts = [zero, first, *(node.input(i) for i in range(2, len(node.inputs)))]
    after = Block(arg_types=[value.type for value in starts])
    with b.inside(after):
        number, carried = iteration_number(b, after.args[0]), after.args[2:]
        proceed, *results = node.import_subgraph(graph, [number, after.args[1], *carried])
        names = [value.name for value in graph.input[2:]]
        values = next_carried(b, node, names, carried, results[: len(carried)])
        rows = results[len(carried) :]
        if most is None or not all(_is_small(most, extents_of(row)) for row in rows):
            rows = []
        for value in rows:
            assert most is not None
            type = tensor_type(element_type_of(value), [collected_rows(most), *extents_of(value)])
            collection = after.insert_arg(type, len(after.args))
            values.append(with_slice(b, collection, number, value))
        following = b.insert(arith.AddiOp(after.args[0], one)).results[0]
        b.insert(scf.YieldOp(following, reshape(b, proceed, []), *values))
    types = [argument.type for argument in after.args]
    starts += [zeros_like(b, collection) for collection in after.args[len(starts) :]]
    before = Block(arg_types=types)
    with b.inside(before):
        goes_on = extracted(b, before.args[1])
        if limit is not None:
            in_range = b.insert(arith.CmpiOp(before.args[0], limit, "slt")).results[0]
            goes_on = b.insert(arith.AndIOp(in_range, goes_on)).results[0]
        b.insert(scf.ConditionOp(goes_on, *before.args))
    op = scf.WhileOp([b.use(value) for value in starts], types, [before], [after])
    count, _, *others = insert_with_keys(b, op, loop_keys(node, graph)).results
    return count, others
