"""The weights section of a compiled model: where `plan-memory` put each value, and its bytes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.dialects.func import FuncOp

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.stored_weights import expansion_of_weight
from braid.dialects.braid.attribute_names import BUFFERS, STORED_BUFFER, STORED_TYPE, WEIGHTS_OFFSET
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.buffer import BufferAttr
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.dtypes import numpy_from_dense, to_numpy
from braid.dialects.braid.relayout import store
from braid.runtime.manifest import WeightSpec
from braid.support.errors import BraidError

Array = NDArray[Any]
_ALIGNMENT = 64


def fill_weights(
    data: NDArray[np.uint8], functions: Sequence[FuncOp], parameters: Mapping[str, Array]
) -> tuple[WeightSpec, ...]:
    """Store the parameters and constants of planned functions in `data`, the bytes of a section.

    Those that are expanded at load are stored untransformed. Each is written to its place once, in
    the layout of its type, so that the weights of a device take memory once. Returns the layout of
    the weights, in the order of the offsets.

    Raises:
        BraidError: a parameter has no value, or a value of another shape or dtype.

    """
    placed: dict[int, ConstantOp | ParameterOp] = {}
    for function in functions:
        begin = function.attributes.get(WEIGHTS_OFFSET)
        base = begin.value.data if isinstance(begin, IntegerAttr) else 0
        for op in function.walk():
            if isinstance(op, ConstantOp | ParameterOp):
                placed.setdefault(base + _offset(op), op)
    index: list[WeightSpec] = []
    for offset, op in sorted(placed.items()):
        name = op.key.data if isinstance(op, ParameterOp) else f"constant@{offset}"
        value = parameter_value(op, parameters) if isinstance(op, ParameterOp) else None
        array = numpy_from_dense(op.value) if isinstance(op, ConstantOp) else value
        assert array is not None
        layout = layout_of(op.output.type)
        if STORED_BUFFER in op.attributes:
            expansion = expansion_of_weight(op, op.attributes.get(STORED_TYPE))
            assert expansion is not None
            layout, array = expansion.layout, _narrowed(array, expansion.stored)
        shape = layout.storage_shape(array.shape)
        count = math.prod(shape) * array.itemsize
        stored = data[offset : offset + count].view(array.dtype).reshape(shape)
        store(array, layout, stored)
        index.append(WeightSpec(name, stored.dtype.name, stored.shape, offset, stored.nbytes))
    return tuple(index)


def parameter_value(op: ParameterOp, parameters: Mapping[str, Array]) -> Array:
    """Return the value of a parameter in its logical shape.

    Raises:
        BraidError: a weight is missing, or has another shape or dtype.

    """
    key = op.key.data
    try:
        value = parameters[key]
    except KeyError as error:
        raise BraidError(
            f"parameter '{key}' has no value",
            location=source_location(op),
            hint="give the file with the weights: the module's attribute 'braid.parameters', or "
            "the argument 'parameters' of braid.compile",
        ) from error
    shape, dtype = op.result_type().get_shape(), to_numpy(op.result_type().element_type)
    if value.shape != shape or value.dtype != dtype:
        raise BraidError(
            f"the value of parameter '{key}' is {value.dtype.name}{list(value.shape)}, expected "
            f"{dtype.name}{list(shape)}",
            location=source_location(op),
        )
    return value


def _narrowed(array: Array, dtype: np.dtype[Any]) -> Array:
    """Return the same values in a type that holds them."""
    if array.dtype == dtype:
        return array
    narrow = array.astype(dtype)
    assert np.array_equal(narrow.astype(array.dtype), array, equal_nan=True)
    return narrow


def _offset(op: ConstantOp | ParameterOp) -> int:
    (buffer,) = cast(ArrayAttr[BufferAttr], op.attributes[BUFFERS])
    buffer = cast(BufferAttr, op.attributes.get(STORED_BUFFER, buffer))
    assert buffer.space.data == "weights"
    return buffer.offset.data


def aligned_bytes(size: int) -> NDArray[np.uint8]:
    """Return `size` zero bytes that begin where weights may."""
    memory = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size]
