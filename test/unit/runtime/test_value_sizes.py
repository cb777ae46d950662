"""Inputs whose elements are sizes, on a hand-written model, and descriptions that are refused."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

from braid.runtime.native import NativeContext, NativeModel
from braid.runtime.native_abi import load_library
from braid.support.errors import BraidError
from test.unit.runtime.conftest import Build

SOURCE = Path(__file__).parent / "value_sizes.c"
KINDS = {6: np.int32, 7: np.int64}


@pytest.fixture(params=KINDS)
def context(request: pytest.FixtureRequest, build_code: Build) -> NativeContext:
    return NativeModel.from_memory(build_code(SOURCE, DTYPE=request.param)).context()


def sizes(context: NativeContext, *values: int) -> np.ndarray:
    return np.array(values, context.model.inputs[0].dtype)


def test_description(context: NativeContext) -> None:
    (k,), (y,) = context.model.inputs, context.model.outputs
    assert k.values == ("k.value[0]", "k.value[1]") and k.shape == (2,) and y.shape == (-1,)


def test_values_decide_shapes(context: NativeContext) -> None:
    for first, count in ((3, 5), (4, 5), (4, 0), (0, 70), (3, 5)):
        (y,) = context.run([sizes(context, first, count)])
        np.testing.assert_array_equal(y, np.full(count, first, np.float32))
    y = np.zeros(2, np.float32)
    context.run([sizes(context, 7, 2)], [y])
    assert y.tolist() == [7, 7]
    with pytest.raises(BraidError, match=r"output 'y' has shape \(2,\), expected \(3,\)"):
        context.run([sizes(context, 7, 3)], [y])


def test_what_is_no_size(context: NativeContext) -> None:
    for value in (-1, -(2**31)):
        with pytest.raises(BraidError, match=f"'k': element 1 is {value}, expected a size, at"):
            context.run([sizes(context, 2, value)])
    assert context.run([sizes(context, 2, 1)])[0].tolist() == [2]


def test_from_c(context: NativeContext) -> None:
    library, handle = load_library(), context.handle
    k, y = sizes(context, 9, 3), np.zeros(3, np.float32)
    given = (ctypes.c_void_p * 1)(k.ctypes.data)
    written = (ctypes.c_void_p * 1)(y.ctypes.data)

    def failure(status: object) -> str:
        assert status
        return library.braid_last_error().decode()

    asked = not library.braid_context_output_shape(handle, 0)
    assert "input 'k' says sizes; set its values before" in failure(asked)
    for index, data, message in (
        (1, k.ctypes.data, "the model has 1 inputs, there is no input 1"),
        (-1, k.ctypes.data, "there is no input -1"),
        (0, None, "the data of the input is NULL"),
    ):
        status = library.braid_context_set_input_values(handle, index, data)
        assert message in failure(status)
    nothing = (ctypes.c_void_p * 1)(None)
    assert "input 'k' is NULL" in failure(library.braid_context_run(handle, nothing, written))
    assert library.braid_context_set_input_values(handle, 0, k.ctypes.data) == 0
    assert library.braid_context_output_shape(handle, 0)[0] == 3
    assert library.braid_context_run(handle, given, written) == 0
    assert y.tolist() == [9, 9, 9]


@pytest.mark.parametrize(
    ("definitions", "message"),
    [
        ({"COUNT": -1}, "number of sizes in inputs -1"),
        ({"COUNT": 1 << 21}, "number of sizes in inputs 2097152"),
        ({"COUNT": 1}, "no input has dim 1"),
        ({"INPUT": 1}, "size in inputs 1"),
        ({"INPUT": -1}, "size in inputs 1"),
        ({"ELEMENT": 2}, "size in inputs 1"),
        ({"ELEMENT": -1}, "size in inputs 1"),
        ({"DIM": 2}, "size in inputs 1"),
        ({"DIM": -1}, "size in inputs 1"),
        ({"DTYPE": 1}, "size in inputs 0"),
        ({"DTYPE": 9}, "size in inputs 0"),
    ],
)
def test_refused(build_code: Build, definitions: dict[str, str | int], message: str) -> None:
    with pytest.raises(BraidError, match=f"malformed: .*{message}"):
        NativeModel.from_memory(build_code(SOURCE, **definitions))
