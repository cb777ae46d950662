"""Vectors of elements, from and to memory: the widest accesses that there are."""

from collections.abc import Sequence
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType, UnregisteredOp, VectorType, i1, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, SSAValue

from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.tensor_loops import index_constant

ACCESS_BYTES = 16
"""The widest access of a GPU."""


def compute(builder: Builder, body: Block, values: dict[SSAValue, SSAValue]) -> list[SSAValue]:
    """Return the results of a nest's body for these values of its arguments, and of indices."""
    own = dict(values)
    for op in body.ops:
        if isinstance(op, linalg.YieldOp):
            return [own.get(result, result) for result in op.arguments]
        if not isinstance(op, linalg.IndexOp) or op.result not in own:
            builder.insert(op.clone(own))
    raise AssertionError("a nest yields")


def load_vector(
    builder: Builder, buffer: SSAValue, index: SSAValue | Sequence[SSAValue], width: int
) -> SSAValue:
    """Load `count` elements from `index` on, aligned to all of them or to 16 bytes.

    Bools are read one by one: they are bytes in memory, and in vectors bits.
    """
    element = cast(MemRefType[Any], buffer.type).element_type
    indices = [index] if isinstance(index, SSAValue) else list(index)
    if element == i1:
        places = [_index_plus(builder, indices, number) for number in range(width)]
        single = [builder.insert(memref.LoadOp.get(buffer, place)).res for place in places]
        return builder.insert(_from_elements(single, VectorType(element, [width]))).results[0]
    load = vector.LoadOp(buffer, indices, VectorType(element, [width]))
    load.attributes["alignment"] = _alignment(element, width)
    return builder.insert(load).results[0]


def store_vector(
    builder: Builder,
    elements: Sequence[SSAValue],
    buffer: SSAValue,
    index: SSAValue | Sequence[SSAValue],
) -> None:
    """Write elements from `index` on, with the same alignment; bools one by one."""
    element = cast(MemRefType[Any], buffer.type).element_type
    type = VectorType(element, [len(elements)])
    indices = [index] if isinstance(index, SSAValue) else list(index)
    if element == i1:
        for number, value in enumerate(elements):
            place = _index_plus(builder, indices, number)
            builder.insert(memref.StoreOp.get(value, buffer, place))
        return
    whole = builder.insert(_from_elements(elements, type)).results[0]
    store = vector.StoreOp(whole, buffer, indices)
    store.attributes["alignment"] = _alignment(element, len(elements))
    builder.insert(store)


def _index_plus(builder: Builder, index: Sequence[SSAValue], number: int) -> list[SSAValue]:
    """Return the indices of the element `number` places further along the last dim."""
    if number == 0:
        return list(index)
    last = builder.insert(arith.AddiOp(index[-1], index_constant(builder, number)))
    return [*index[:-1], last.result]


def element_of(builder: Builder, loaded: SSAValue, number: int) -> SSAValue:
    """Return an element of a vector."""
    element = cast(VectorType[Any], loaded.type).element_type
    return builder.insert(vector.ExtractOp(loaded, [number], element)).results[0]


def _from_elements(elements: Sequence[SSAValue], type: Attribute) -> Any:
    made = UnregisteredOp.with_name("vector.from_elements")
    return made.create(operands=list(elements), result_types=[type])


def _alignment(element: Attribute, width: int) -> IntegerAttr[Any]:
    return IntegerAttr(min(ACCESS_BYTES, width * bytes_of(element)), i64)
