"""One model for several batches: buckets, and padding between them."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import braid


def make_model() -> onnx.ModelProto:
    """Return a model of softmax(x @ w) for any number of rows."""
    w = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["y"], axis=-1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])
    graph = helper.make_graph(nodes, "rows", [x], [y], [numpy_helper.from_array(w, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def main() -> None:
    """Compile for batches of 1, 4 and 16; run any up to 16."""
    model = braid.compile(make_model(), shape_buckets={"batch": [1, 4, 16]})
    print(model)
    for batch in (1, 3, 16):
        y = model(np.ones((batch, 8), np.float32))
        print(f"{batch} rows in, {y.shape[0]} rows out")
    try:
        model(np.ones((17, 8), np.float32))
    except braid.BraidError as error:
        print(error)
    with TemporaryDirectory() as directory:
        model.save(Path(directory) / "rows.braid")
        loaded = braid.load(Path(directory) / "rows.braid")
        print(loaded(np.ones((5, 8), np.float32)).shape)


if __name__ == "__main__":
    main()
