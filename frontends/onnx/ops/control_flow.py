"""Build the `scf` ops that `Loop`, `If` and `Scan` have in common, with their profile keys.

Values of outer graphs are used directly. Values that a loop collects per iteration are written into
a tensor that the loop carries.
"""

from collections.abc import Callable, Sequence

import numpy as np
from onnx import GraphProto
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import DictionaryAttr, IndexType, IntegerAttr, StringAttr, TensorType
from xdsl.ir import Block, Operation, SSAValue

from braid.dialects.braid.attribute_names import PROFILE_KEYS
from braid.dialects.braid.base import element_type_of, extents_of, tensor_type
from braid.dialects.braid.dtypes import i64, to_numpy
from braid.dialects.braid.scattering import ScatterNdOp
from braid.dialects.braid.size_evaluation import SIZES, as_array
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import broadcast, reshape, slice_dim, with_extents
from braid.frontends.onnx.building.node import Node
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

    Returns the final carried values, then the collected ones, `[count, …]`; only a loop
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
            type = tensor_type(element_type_of(value), [collected_rows(count), *extents_of(value)])
            collection = block.insert_arg(type, len(block.args))
            # A loop that never runs collects into nothing, in which no slice has a place.
            following.append(with_slice(b, collection, number, value) if count != 0 else collection)
        b.insert(scf.YieldOp(*following))
    starts += [zeros_like(b, value) for value in block.args[1 + len(carried) :]]
    zero, one = _index(b, 0), _index(b, 1)
    limit = count if isinstance(count, SSAValue) else _index(b, count)
    for start in starts:
        b.use(start)
    results = insert_with_keys(b, scf.ForOp(zero, limit, one, starts, block), keys).results
    if isinstance(count, SSAValue) or count == collected_rows(count):
        return results
    cut = [slice_dim(b, value, 0, 0, count) for value in results[len(carried) :]]
    return [*results[: len(carried)], *cut]


def collected_rows(count: Extent) -> Extent:
    """Return the rows that a loop collects: at least 1 if it may not run, for the slice."""
    if isinstance(count, int) or SIZES.at_most(1, count) is Answer.YES:
        return count
    return maximum(count, 1)


def iteration_number(b: Builder, position: SSAValue) -> SSAValue:
    """Return an index or an i64 as ONNX has it: as a `tensor<i64>`."""
    number = position
    if isinstance(position.type, IndexType):
        number = b.insert(arith.IndexCastOp(position, i64)).results[0]
    return b.insert(tensor.FromElementsOp(number, result_type=TensorType(i64, []))).results[0]


def extracted(b: Builder, value: SSAValue) -> SSAValue:
    """Return the element of a tensor with one element, as a scalar."""
    flat = b.use(reshape(b, value, []))
    return b.insert(tensor.ExtractOp(flat, [], element_type_of(flat))).results[0]


def insert_with_keys(b: Builder, op: Operation, keys: dict[str, str]) -> Operation:
    """Insert a control-flow op with its profile keys, and return it."""
    names: dict[str, StringAttr] = {key: StringAttr(name) for key, name in keys.items()}
    op.attributes[PROFILE_KEYS] = DictionaryAttr(names)
    return b.insert(op)


def loop_keys(node: Node, body: GraphProto) -> dict[str, str]:
    """Return the profile keys of a loop: where it is entered, and where each iteration begins."""
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


def with_slice(b: Builder, collection: SSAValue, at: SSAValue, value: SSAValue) -> SSAValue:
    """Return `collection` with `value` as row `at`, a `tensor<i64>`."""
    updates = reshape(b, value, [1, *extents_of(value)])
    return b.emit(ScatterNdOp.get(collection, reshape(b, at, [1, 1]), updates))


def zeros_like(b: Builder, value: SSAValue) -> SSAValue:
    """Return zeros of the shape and the element type of `value`."""
    shape = extents_of(value)
    zero = np.zeros([1] * len(shape), to_numpy(element_type_of(value)))
    return broadcast(b, b.constant(zero), shape)


def _index(b: Builder, number: Extent) -> SSAValue:
    if isinstance(number, Size):
        held = extracted(b, b.sizes(as_array([number], [])))
        return b.insert(arith.IndexCastOp(held, index)).results[0]
    return b.insert(arith.ConstantOp(IntegerAttr(number, index))).results[0]
