"""Element types and numpy dtypes: every pair both ways, and arrays as attributes."""

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import (
    IntegerType,
    NoneAttr,
    Signedness,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i8,
    i32,
)

from braid.dialects.braid.dtypes import (
    bytes_of,
    dense_from_numpy,
    from_numpy,
    i1,
    number_attribute,
    numpy_from_dense,
    to_numpy,
)
from braid.support.errors import UnsupportedError

PAIRS = [
    (f16, np.float16),
    (bf16, ml_dtypes.bfloat16),
    (f32, np.float32),
    (f64, np.float64),
    (i1, np.bool_),
    (i8, np.int8),
    (i32, np.int32),
    (IntegerType(8, Signedness.UNSIGNED), np.uint8),
    (IntegerType(64, Signedness.UNSIGNED), np.uint64),
]


@pytest.mark.parametrize(("element_type", "dtype"), PAIRS)
def test_both_ways(element_type, dtype) -> None:
    assert to_numpy(element_type) == np.dtype(dtype)
    assert from_numpy(dtype) == element_type
    assert bytes_of(element_type) == np.dtype(dtype).itemsize


@pytest.mark.parametrize(("element_type", "dtype"), PAIRS)
def test_arrays_as_attributes(element_type, dtype) -> None:
    for array in (np.array([[0, 1], [1, 1]]), np.array([3, 3, 3]), np.array(1), np.zeros((0, 2))):
        array = array.astype(dtype)
        dense = dense_from_numpy(array)
        assert dense.type == TensorType(element_type, array.shape)
        back = numpy_from_dense(dense)
        assert back.dtype == array.dtype and np.array_equal(back, array)


def test_floats_keep_their_bits() -> None:
    array = np.array([np.inf, -np.inf, -0.0, 1e-45, 0.1], np.float32)
    assert numpy_from_dense(dense_from_numpy(array)).tobytes() == array.tobytes()
    assert np.isnan(numpy_from_dense(dense_from_numpy(np.array([np.nan, 1]))))[0]


def test_numbers() -> None:
    assert number_attribute(2, f32).value.data == 2.0
    assert number_attribute(2.0, i32).value.data == 2


def test_what_has_no_counterpart() -> None:
    with pytest.raises(UnsupportedError, match="element type i7 is not supported"):
        to_numpy(IntegerType(7))
    with pytest.raises(UnsupportedError, match="is not supported"):
        to_numpy(NoneAttr())
    with pytest.raises(UnsupportedError, match="arrays of complex64 are not supported"):
        from_numpy(np.complex64)
