"""`Loop`, and what it shares with `If` and `Scan`: building `scf` ops, and their profile keys.

Values of outer graphs are used as they are. What a loop collects per iteration is written into a
tensor that is carried through the loop.
"""

from collections.abc import Callable, Sequence
from typing import NoReturn

import numpy as np
from onnx import GraphProto, numpy_helper
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import DictionaryAttr, IndexType, IntegerAttr, StringAttr, TensorType
from xdsl.ir import Block, Operation, SSAValue

from braid.dialects.braid.attribute_names import PROFILE_KEYS
from braid.dialects.braid.base import element_type_of, extents_of, tensor_type
from braid.dialects.braid.dtypes import i64, to_numpy
from braid.dialects.braid.scattering import ScatterNdOp
from braid.dialects.braid.size_evaluation import SIZES, as_array
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.decisions import decided, may_decide
from braid.frontends.onnx.building.expressions import (
    apply,
    broadcast,
    concat,
    reshape,
    slice_dim,
    with_extents,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.support.errors import BraidError, UnsupportedError
from braid.support.sizes.assumptions import Answer, Assumed, Assumptions
from braid.support.sizes.expression import Extent, Size, symbols_of
from braid.support.sizes.operators import maximum

Body = Callable[[SSAValue, Sequence[SSAValue]], tuple[Sequence[SSAValue], Sequence[SSAValue]]]
"""A body takes the iteration's number (`tensor<i64>`) and the carried values, and returns the next
carried values and the values to collect."""

index = IndexType()


def counted_loop(
    b: Builder,
    count: Extent | SSAValue,
    carried: Sequence[SSAValue],
    body: Body,
    keys: dict[str, str],
) -> Sequence[SSAValue]:
    """Insert `scf.for` over `count` iterations, a number, a size or an index.

    Returns the carried values at the end, then what was collected, `[count, …]`; only a loop
    whose count is a number or a size may collect.
    """
    block = Block(arg_types=[index, *(value.type for value in carried)])
    starts = list(carried)
    with b.inside(block):
        number = iteration_number(b, block.args[0])
        following, values = body(number, block.args[1:])
        following = list(following)
        for value in values:
            assert not isinstance(count, SSAValue)
            type = tensor_type(element_type_of(value), [_rows(count), *extents_of(value)])
            collection = block.insert_arg(type, len(block.args))
            # A loop that never runs collects into nothing, in which no slice has a place.
            following.append(
                _with_slice(b, collection, number, value) if count != 0 else collection
            )
        b.insert(scf.YieldOp(*following))
    starts += [_zeros_like(b, value) for value in block.args[1 + len(carried) :]]
    zero, one = _index(b, 0), _index(b, 1)
    limit = count if isinstance(count, SSAValue) else _index(b, count)
    for start in starts:
        b.use(start)
    results = insert_with_keys(b, scf.ForOp(zero, limit, one, starts, block), keys).results
    if isinstance(count, SSAValue) or count == _rows(count):
        return results
    cut = [slice_dim(b, value, 0, 0, count) for value in results[len(carried) :]]
    return [*results[: len(carried)], *cut]


def _rows(count: Extent) -> Extent:
    """Return the rows of what a loop collects: at least 1 where it may not run, for the slice."""
    if isinstance(count, int) or SIZES.at_most(1, count) is Answer.YES:
        return count
    return maximum(count, 1)


def iteration_number(b: Builder, position: SSAValue) -> SSAValue:
    """An index or an i64 as ONNX has it: `tensor<i64>`."""
    number = position
    if isinstance(position.type, IndexType):
        number = b.insert(arith.IndexCastOp(position, i64)).results[0]
    return b.insert(tensor.FromElementsOp(number, result_type=TensorType(i64, []))).results[0]


def extracted(b: Builder, value: SSAValue) -> SSAValue:
    """The element of a tensor with one element, as a scalar."""
    flat = b.use(reshape(b, value, []))
    return b.insert(tensor.ExtractOp(flat, [], element_type_of(flat))).results[0]


def insert_with_keys(b: Builder, op: Operation, keys: dict[str, str]) -> Operation:
    """Appends a control-flow op with its profile keys."""
    names: dict[str, StringAttr] = {key: StringAttr(name) for key, name in keys.items()}
    op.attributes[PROFILE_KEYS] = DictionaryAttr(names)
    return b.insert(op)


def loop_keys(node: Node, body: GraphProto) -> dict[str, str]:
    """Profile keys of a loop: where it is entered, and where each iteration begins."""
    name = next((output for output in node.proto.output if output), node.proto.name)
    first = body.node[0].output[0] if body.node else name
    return {"enter": f"{name}/enter", "next": first}


def require_outputs(node: Node, most: int) -> None:
    """Fail where a node has more outputs than its body gives."""
    if len(node.proto.output) > most:
        node.fail(f"it has {len(node.proto.output)} outputs, its body gives {most}")


def next_carried(
    b: Builder,
    node: Node,
    names: Sequence[str],
    before: Sequence[SSAValue],
    after: Sequence[SSAValue],
) -> list[SSAValue]:
    """Return the values `after` an iteration with the types that they have `before` it.

    Raises UnsupportedError where a carried value changes its shape, and BraidError where it changes
    its element type.
    """
    require_element_types(node, names, before, after)
    for name, first, last in zip(names, before, after, strict=True):
        if not _may_stay(extents_of(first), extents_of(last)):
            node.unsupported(
                f"carried value '{name}' changes its type from {first.type} to {last.type}"
            )
    values = [with_extents(b, v, extents_of(o)) for v, o in zip(after, before, strict=True)]
    for name, first, last in zip(names, before, values, strict=True):
        if first.type != last.type:
            node.unsupported(
                f"carried value '{name}' changes its type from {first.type} to {last.type}"
            )
    return values


def _may_stay(before: Sequence[Extent], after: Sequence[Extent]) -> bool:
    """Return whether shapes are the same at sizes of which none is 0."""
    positive = {name: Assumed(minimum=1) for name in symbols_of(*before, *after)}
    known = Assumptions.of(positive)
    return len(before) == len(after) and not any(
        known.equal(a, b) is Answer.NO for a, b in zip(before, after, strict=True)
    )


def require_element_types(
    node: Node, names: Sequence[str], before: Sequence[SSAValue], after: Sequence[SSAValue]
) -> None:
    """Raise InvalidModelError where a carried value has other elements after an iteration."""
    for name, first, last in zip(names, before, after, strict=True):
        kinds = [element_type_of(value) for value in (first, last)]
        if kinds[0] != kinds[1]:
            node.invalid(f"carried value '{name}' has elements of {kinds[0]}, then of {kinds[1]}")


def _with_slice(b: Builder, collection: SSAValue, at: SSAValue, value: SSAValue) -> SSAValue:
    updates = reshape(b, value, [1, *extents_of(value)])
    return b.emit(ScatterNdOp.get(collection, reshape(b, at, [1, 1]), updates))


def _zeros_like(b: Builder, value: SSAValue) -> SSAValue:
    shape = extents_of(value)
    zero = np.zeros([1] * len(shape), to_numpy(element_type_of(value)))
    return broadcast(b, b.constant(zero), shape)


def _index(b: Builder, number: Extent) -> SSAValue:
    if isinstance(number, Size):
        held = extracted(b, b.sizes(as_array([number], [])))
        return b.insert(arith.IndexCastOp(held, index)).results[0]
    return b.insert(arith.ConstantOp(IntegerAttr(number, index))).results[0]


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
    """Inputs: trip count and condition, either of which may be left out, and carried values."""
    require_outputs(node, len(node.graph("body").output) - 1)
    for index in (0, 1):
        node.require_scalar(index)
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
    if not collects or not may_decide(b, trip_count) or b.request_value(trip_count):
        return None
    steps = apply(b, "maximum", reshape(b, trip_count, [1]), b.constant(np.zeros(1, np.int64)))
    (count,) = decided(b, steps, node.proto.input[0]).reshape(-1).tolist()
    return count


def _unrolled(
    b: Builder, node: Node, most: int | None, carried: Sequence[SSAValue]
) -> list[SSAValue]:
    """The body in a row, `most` times or until its condition, known at import, is false.

    For shapes that depend on the iteration's number, and for values that are collected until then.
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
    """A loop that collects until a condition ends it: at a known iteration, or as data say."""
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
    """Import a loop of which data say how many iterations it has, and which collects.

    What it collects has a row for each of the most iterations, and is cut afterwards. Where their
    number has no bound, it runs twice: once to count the iterations, then as often as that.
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
"""Rows and elements that are allocated for what a loop collects before it is known how many there
are; of an open number of rows, each has at most 64 elements."""
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
    return b.insert(arith.IndexCastOp(extracted(b, count), index)).results[0]


def _while_loop(b: Builder, node: Node) -> Sequence[SSAValue]:
    """Carries the iteration's number, the condition, and the values."""
    if len(node.graph("body").output) != len(node.graph("body").input) - 1:
        return _collecting_loop(b, node)
    return _until_condition(b, node)[1]


def _until_condition(
    b: Builder, node: Node, most: Extent | None = None
) -> tuple[SSAValue, Sequence[SSAValue]]:
    """Insert a loop that its condition ends; the number of its iterations, and its other results.

    These are the carried values, and where there are at most `most` iterations, and rows for all of
    them are small, what it collects, with that many rows.
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
            type = tensor_type(element_type_of(value), [_rows(most), *extents_of(value)])
            collection = after.insert_arg(type, len(after.args))
            values.append(_with_slice(b, collection, number, value))
        following = b.insert(arith.AddiOp(after.args[0], one)).results[0]
        b.insert(scf.YieldOp(following, reshape(b, proceed, []), *values))
    types = [argument.type for argument in after.args]
    starts += [_zeros_like(b, collection) for collection in after.args[len(starts) :]]
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
