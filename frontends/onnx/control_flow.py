"""What `If`, `Loop` and `Scan` share: building `scf` ops, and their profile keys.

Values of outer graphs are used as they are. What a loop collects per iteration is written into a
tensor that is carried through the loop.
"""

from collections.abc import Callable, Sequence

import numpy as np
from onnx import GraphProto
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import DictionaryAttr, IndexType, IntegerAttr, StringAttr, TensorType
from xdsl.ir import Block, Operation, SSAValue

from braid.dialects.braid.attribute_names import PROFILE_KEYS
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import i64, to_numpy
from braid.dialects.braid.scattering import ScatterNdOp
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.expressions import broadcast, reshape
from braid.frontends.onnx.node import Node

Body = Callable[[SSAValue, Sequence[SSAValue]], tuple[Sequence[SSAValue], Sequence[SSAValue]]]
"""From the iteration's number (`tensor<i64>`) and the carried values to the next carried values
and the values to collect."""

index = IndexType()


def counted_loop(
    b: Builder,
    count: int | SSAValue,
    carried: Sequence[SSAValue],
    body: Body,
    keys: dict[str, str],
) -> Sequence[SSAValue]:
    """`scf.for` over `count` iterations, a number or an index.

    Returns the carried values at the end, then what was collected, `[count, …]`; only a loop
    whose count is a number may collect.
    """
    block = Block(arg_types=[index, *(value.type for value in carried)])
    starts = list(carried)
    with b.inside(block):
        number = iteration_number(b, block.args[0])
        following, values = body(number, block.args[1:])
        following = list(following)
        for value in values:
            assert isinstance(count, int)
            type = TensorType(element_type_of(value), [count, *shape_of(value)])
            collection = block.insert_arg(type, len(block.args))
            following.append(_with_slice(b, collection, number, value))
        b.insert(scf.YieldOp(*following))
    starts += [_zeros_like(b, value) for value in block.args[1 + len(carried) :]]
    zero, one = _index(b, 0), _index(b, 1)
    limit = _index(b, count) if isinstance(count, int) else count
    for start in starts:
        b.use(start)
    return insert_with_keys(b, scf.ForOp(zero, limit, one, starts, block), keys).results


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


def require_carried(
    node: Node, names: Sequence[str], before: Sequence[SSAValue], after: Sequence[SSAValue]
) -> None:
    """Raises UnsupportedError where a carried value changes its type in an iteration."""
    for name, first, last in zip(names, before, after, strict=True):
        if first.type != last.type:
            node.unsupported(
                f"carried value '{name}' changes its type from {first.type} to {last.type}"
            )


def _with_slice(b: Builder, collection: SSAValue, at: SSAValue, value: SSAValue) -> SSAValue:
    updates = reshape(b, value, [1, *shape_of(value)])
    return b.emit(ScatterNdOp.get(collection, reshape(b, at, [1, 1]), updates))


def _zeros_like(b: Builder, value: SSAValue) -> SSAValue:
    shape = shape_of(value)
    zero = np.zeros([1] * len(shape), to_numpy(element_type_of(value)))
    return broadcast(b, b.constant(zero), shape)


def _index(b: Builder, number: int) -> SSAValue:
    return b.insert(arith.ConstantOp(IntegerAttr(number, index))).results[0]
