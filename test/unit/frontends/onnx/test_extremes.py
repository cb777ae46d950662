"""Extreme values are rejected where a result cannot represent them."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

import braid

ENDS = (2**63 - 1, -(2**63), 2**62)


def refused(kind: str, size: int, **constants: object) -> None:
    weights = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    names = list(constants) if kind == "Range" else ["x", *constants]
    nodes = [helper.make_node(kind, names, ["y"]), helper.make_node("Shape", ["y"], ["s"])]
    x = helper.make_tensor_value_info("x", 1, [size])
    outputs = [helper.make_tensor_value_info(n, t, None) for n, t in (("s", 7), ("x", 1))]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], outputs, weights))
    with pytest.raises(braid.BraidError, match=f"\\({kind}\\)"):
        braid.compile(model, cache=False)


@pytest.mark.parametrize("end", ENDS)
def test_shapes(end: int) -> None:
    refused("Reshape", 8, shape=np.array([end]))
    refused("Reshape", 8, shape=np.array([end, -1]))


@pytest.mark.parametrize("limit", [2**63 - 1, 2**62])
def test_ranges(limit: int) -> None:
    refused("Range", 8, start=np.int64(0), limit=np.int64(limit), delta=np.int64(1))
    refused("Range", 8, start=np.float32(0), limit=np.float32(limit), delta=np.float32(1e-30))
