"""Element types of tensors and their numpy counterparts."""

import math
from typing import Any, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    BFloat16Type,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    Float4E2M1FNType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute

from braid.dialects.braid.relayout import Array
from braid.support.errors import UnsupportedError

_FLOATS: dict[type[Attribute], npt.DTypeLike] = {
    Float16Type: np.float16,
    BFloat16Type: ml_dtypes.bfloat16,
    Float32Type: np.float32,
    Float64Type: np.float64,
}
_NARROW_FLOATS: dict[type[Attribute], npt.DTypeLike] = {
    Float4E2M1FNType: ml_dtypes.float4_e2m1fn,
    Float8E4M3FNType: ml_dtypes.float8_e4m3fn,
    Float8E4M3FNUZType: ml_dtypes.float8_e4m3fnuz,
    Float8E5M2Type: ml_dtypes.float8_e5m2,
    Float8E5M2FNUZType: ml_dtypes.float8_e5m2fnuz,
    Float8E8M0FNUType: ml_dtypes.float8_e8m0fnu,
}
_NARROW_INTEGERS: dict[tuple[int, bool], npt.DTypeLike] = {
    (2, False): ml_dtypes.int2,
    (4, False): ml_dtypes.int4,
    (2, True): ml_dtypes.uint2,
    (4, True): ml_dtypes.uint4,
}
_INTEGERS: dict[tuple[int, bool], npt.DTypeLike] = {
    (1, False): np.bool_,
    (8, False): np.int8,
    (16, False): np.int16,
    (32, False): np.int32,
    (64, False): np.int64,
    (8, True): np.uint8,
    (16, True): np.uint16,
    (32, True): np.uint32,
    (64, True): np.uint64,
}
_ALL_FLOATS = _FLOATS | _NARROW_FLOATS
_ALL_INTEGERS = _INTEGERS | _NARROW_INTEGERS

ELEMENT_TYPES = (
    *(kind.name for kind in _ALL_FLOATS),
    *(f"{'u' * unsigned}i{width}" for width, unsigned in _ALL_INTEGERS),
)
"""MLIR's names of the types that tensors can have."""

_NUMBERS: frozenset[Attribute] = frozenset(
    [
        *(kind() for kind in _FLOATS),
        *(
            IntegerType(width, Signedness.UNSIGNED if unsigned else Signedness.SIGNLESS)
            for width, unsigned in _INTEGERS
            if width > 1
        ),
    ]
)

i1 = IntegerType(1)
i64 = IntegerType(64)
f32 = Float32Type()


def is_element_type(element_type: Attribute) -> bool:
    """Return whether tensors may have this element type, which needs a numpy counterpart."""
    if isinstance(element_type, IntegerType):
        integer = cast(IntegerType, element_type)
        return (integer.width.data, is_unsigned(integer)) in _ALL_INTEGERS
    return type(element_type) in _ALL_FLOATS


def is_number(element_type: Attribute) -> bool:
    """Return whether kernels load and store this type: a number that tensors are computed in."""
    return element_type in _NUMBERS


def is_float(element_type: Attribute) -> bool:
    """Return whether values of this type are floating-point numbers."""
    return isinstance(element_type, AnyFloat)


def holds_floats(dtype: "np.dtype[Any]") -> bool:
    """Return whether this numpy type is a floating-point type, including those of ml_dtypes.

    numpy itself knows those of ml_dtypes neither as floats nor as integers.
    """
    narrow = {np.dtype(integer) for integer in _NARROW_INTEGERS.values()}
    return dtype.kind not in "biu" and dtype not in narrow


def is_unsigned(element_type: Attribute) -> bool:
    """Return whether this is an unsigned integer type (`ui8`); signless ones count as signed."""
    if not isinstance(element_type, IntegerType):
        return False
    return cast(IntegerType, element_type).signedness.data == Signedness.UNSIGNED


def is_computed_integer(element_type: Attribute) -> bool:
    """Return whether this is an integer type, not of bools, that tensors are computed in."""
    is_integer = isinstance(element_type, IntegerType) and element_type != i1
    return is_integer and not is_stored_only(cast(Attribute, element_type))


def is_stored_only(element_type: Attribute) -> bool:
    """Return whether tensors of this type are moved and bitcast, but not computed with.

    Elements of these types take a byte each, with the value in its low bits.
    """
    if isinstance(element_type, IntegerType):
        return cast(IntegerType, element_type).width.data in (2, 4)
    return type(element_type) in _NARROW_FLOATS


def to_numpy(element_type: Attribute) -> np.dtype:
    """Return numpy's type for an element type. Raises UnsupportedError if there is none."""
    dtype = _ALL_FLOATS.get(type(element_type))
    if dtype is None and isinstance(element_type, IntegerType):
        width = cast(IntegerType, element_type).width.data
        dtype = _ALL_INTEGERS.get((width, is_unsigned(cast(IntegerType, element_type))))
    if dtype is not None:
        return np.dtype(dtype)
    raise UnsupportedError(f"element type {element_type} is not supported")


def from_numpy(dtype: npt.DTypeLike) -> Attribute:
    """Return the element type of a numpy array. Raises UnsupportedError if there is none."""
    dtype = np.dtype(dtype)
    for float_type, candidate in _ALL_FLOATS.items():
        if np.dtype(candidate) == dtype:
            return float_type()
    for (width, unsigned), candidate in _ALL_INTEGERS.items():
        if np.dtype(candidate) == dtype:
            return IntegerType(width, Signedness.UNSIGNED if unsigned else Signedness.SIGNLESS)
    raise UnsupportedError(f"arrays of {dtype} are not supported")


def bytes_of(element_type: Attribute) -> int:
    """Return the bytes of one element in memory; a bool takes one byte."""
    return to_numpy(element_type).itemsize


def number_attribute(
    value: float, element_type: Attribute
) -> FloatAttr[AnyFloat] | IntegerAttr[IntegerType]:
    """Return `value` as an attribute of this element type."""
    if isinstance(element_type, AnyFloat):
        return FloatAttr(float(value), element_type)
    return IntegerAttr(int(value), cast(IntegerType, element_type))


def dense_from_numpy(array: Array) -> DenseIntOrFPElementsAttr:
    """Return `array` as an elements attribute.

    It is meant for small arrays: weights stay outside the IR.
    """
    array = np.asarray(array)
    tensor_type = TensorType(from_numpy(array.dtype), array.shape)
    if array.size and array.tobytes() == array.reshape(-1)[:1].tobytes() * array.size:
        array = array.reshape(-1)[:1]
    flat = array.reshape(-1)
    if isinstance(tensor_type.element_type, AnyFloat):
        # Numbers of Python do not keep the bits of NaN.
        bits = np.broadcast_to(flat, math.prod(tensor_type.get_shape())).tobytes()
        held = cast(TensorType[AnyFloat], tensor_type)
        return DenseIntOrFPElementsAttr(held, BytesAttr(bits))
    return DenseIntOrFPElementsAttr.from_list(tensor_type, flat.tolist())  # type: ignore


def dense_fault(dense: DenseIntOrFPElementsAttr) -> str | None:
    """Return how the bytes of an elements attribute contradict its type, None if they do not."""
    size, width = len(dense.data.data), dense.get_element_type().compile_time_size
    shape = dense.get_shape()
    if DYNAMIC_INDEX in shape:
        return f"elements of type {dense.type}, expected a static shape"
    if size in (width * math.prod(shape), width):
        return None
    return f"{size} bytes of elements, expected {width * math.prod(shape)} for {dense.type}"


def dense_is_splat(dense: DenseIntOrFPElementsAttr) -> bool:
    """Return whether there are elements and all have the same bits.

    xDSL's own method treats 0 and -0 as equal, and fails for empty attributes.
    """
    bits, width = dense.data.data, dense.get_element_type().compile_time_size
    return len(bits) > 0 and bits == bits[:width] * (len(bits) // width)


def numpy_from_dense(dense: DenseIntOrFPElementsAttr) -> Array:
    """Return the array that an elements attribute holds; a splat is spread out."""
    element_type = dense.get_element_type()
    if isinstance(element_type, AnyFloat):
        values = np.frombuffer(dense.data.data, to_numpy(element_type)).copy()
    else:
        # The dtype is given, since numpy would convert a list of large and small unsigned numbers
        # to floats.
        held = np.uint64 if is_unsigned(element_type) else np.int64
        values = np.array(dense.get_values(), held).astype(to_numpy(element_type))
    if values.size == 1:
        return np.full(dense.get_shape(), values.reshape(()))
    return values.reshape(dense.get_shape())
