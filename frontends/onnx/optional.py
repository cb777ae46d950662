"""Values that may be absent, of which only what an importer knows to be there or not is left."""

import numpy as np
from xdsl.ir import SSAValue

from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.node import Node
from braid.frontends.onnx.registry import importer


@importer("OptionalHasElement")
def has_element(b: Builder, node: Node) -> SSAValue:
    """Whether the input is there: a tensor always is."""
    return b.constant(np.array(node.optional(0) is not None))


@importer("OptionalGetElement")
def get_element(b: Builder, node: Node) -> SSAValue:
    """The input itself."""
    return node.input(0)
