"""Images in files, which are decoded before a model."""

from typing import NoReturn

from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer


@importer("ImageDecoder", since=20)
def image_decoder(_: Builder, node: Node) -> NoReturn:
    """Refuse it: decoders are no computations on tensors, and do not agree on pixels."""
    mode = "L" if node.text("pixel_format", "RGB") == "Grayscale" else "RGB"
    node.unsupported(
        "images are decoded before the model, since decoders differ in their results",
        hint=f"give the model the pixels: np.asarray(PIL.Image.open(FILE).convert('{mode}'))",
    )
