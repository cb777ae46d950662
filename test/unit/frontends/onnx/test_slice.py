"""Every start, end and step of `Slice` on small dims, against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from braid.dialects.braid.size_evaluation import fixed
from braid.frontends.onnx import import_onnx
from braid.frontends.onnx.ops.slicing import sliced
from braid.support.errors import BraidError

FAR = (-(2**63), -(2**31), 2**31, 2**63 - 2)
"""Not 2^63 - 1, which ONNX Runtime takes as the first element of slices that go back."""
STEPS = (-(2**31), -3, -2, -1, 1, 2, 3, 2**31)


def slicing() -> onnxruntime.InferenceSession:
    names = ("x", "starts", "ends", "axes", "steps")
    node = helper.make_node("Slice", names, ["y"])
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, [None]) for name in names]
    output = helper.make_tensor_value_info("y", TensorProto.INT64, [None])
    model = helper.make_model(
        helper.make_graph([node], "g", inputs, [output]),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=9,
    )
    return onnxruntime.InferenceSession(model.SerializeToString())


@pytest.mark.parametrize("extent", [1, 2, 3, 4])
def test_every_slice_of_a_small_dim(extent: int) -> None:
    session, x, axes = slicing(), np.arange(extent), np.array([0])
    places = (*FAR, *range(-extent - 2, extent + 3))
    for step in STEPS:
        for start in places:
            for end in places:
                lists = [np.array([number]) for number in (start, end)]
                feeds = {"x": x, "starts": lists[0], "ends": lists[1], "axes": axes}
                expected = session.run(None, {**feeds, "steps": np.array([step])})[0]
                first, count = sliced(extent, start, end, step)
                taken = [first + step * i for i in range(fixed(count, "the slice"))]
                assert taken == expected.tolist(), (extent, start, end, step)


@pytest.mark.parametrize("step", [-2, -1, 1, 2])
def test_every_slice_of_an_empty_dim(step: int) -> None:
    for start in range(-2, 3):
        for end in range(-2, 3):
            assert sliced(0, start, end, step)[1] == 0


def test_a_step_of_zero_is_an_error() -> None:
    node = helper.make_node("Slice", ["x", "a", "b", "d", "s"], ["y"], name="cut")
    constants = {"a": 0, "b": 1, "d": 0, "s": 0}
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor(n, TensorProto.INT64, [1], [v]) for n, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    with pytest.raises(BraidError, match=r"cut.*steps are \[0\], expected none to be 0"):
        import_onnx(model)
