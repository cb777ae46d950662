"""Write the small models of the documentation: model.onnx, rows.onnx and layer.mlir."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def weights(**shapes: tuple[int, ...]) -> list[TensorProto]:
    """Return random weights of these shapes, by name."""
    rng = np.random.default_rng(0)
    return [
        numpy_helper.from_array((rng.standard_normal(shape) / 4).astype(np.float32), name)
        for name, shape in shapes.items()
    ]


def write(path: str, nodes: list[onnx.NodeProto], x: list, y: list, w: list[TensorProto]) -> None:
    """Write a model from `x` to `y`, tensors of these shapes."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)]
    graph = helper.make_graph(nodes, path.removesuffix(".onnx"), inputs, outputs, w)
    opset = helper.make_opsetid("", 18)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=9), path)
    print("wrote", path)


LAYER = """\
func.func @main(%x: tensor<?x8xf32>, %w: tensor<8x4xf32>) -> tensor<?x4xf32> {
  %xw = "stablehlo.dot_general"(%x, %w) <{dot_dimension_numbers = #stablehlo.dot<
      lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}>
      : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %y = "stablehlo.tanh"(%xw) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}
"""


def main() -> None:
    """Write a convolution with a classifier on images, and a layer on rows, in two forms."""
    node = helper.make_node
    image_nodes = [
        node("Conv", ["x", "filters"], ["conv"], name="conv", pads=[1, 1, 1, 1]),
        node("Relu", ["conv"], ["relu"], name="relu"),
        node("GlobalAveragePool", ["relu"], ["pool"], name="pool"),
        node("Flatten", ["pool"], ["flat"], name="flat"),
        node("MatMul", ["flat", "classes"], ["logits"], name="logits"),
        node("Softmax", ["logits"], ["y"], name="y"),
    ]
    image_weights = weights(filters=(32, 3, 3, 3), classes=(32, 10))
    write("model.onnx", image_nodes, [1, 3, 32, 32], [1, 10], image_weights)
    row_nodes = [node("MatMul", ["x", "w"], ["xw"]), node("Tanh", ["xw"], ["y"])]
    write("rows.onnx", row_nodes, ["batch", 8], ["batch", 16], weights(w=(8, 16)))
    Path("layer.mlir").write_text(LAYER)
    print("wrote layer.mlir")


if __name__ == "__main__":
    main()
