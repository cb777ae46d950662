"""Element types by the numbers of descriptors."""

import onnx.helper
import pytest

from braid.runtime.dtypes import dtype_name
from braid.support.errors import BraidError


def test_numbers_are_those_of_onnx() -> None:
    """Every number has the dtype that onnx gives it, but that of strings, which has none."""
    strings = onnx.TensorProto.STRING
    numbers = [each for each in onnx.helper.get_all_tensor_dtypes() if each != strings]
    for number in numbers:
        assert dtype_name(number) == onnx.helper.tensor_dtype_to_np_dtype(number).name
    for number in (-1, 0, strings, max(numbers) + 1):
        with pytest.raises(BraidError, match="unknown element type"):
            dtype_name(number)
