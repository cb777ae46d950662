"""Imports the op `RmsNorm` of the ONNX domain `toy`."""

from xdsl.ir import SSAValue

from braid.extend import Builder, Node, importer
from braid_toy.dialect import RmsNormOp


@importer("RmsNorm", domain="toy")
def rms_norm(b: Builder, node: Node) -> SSAValue:
    """Import the op; `epsilon` is 1e-5 where it is not given."""
    return b.emit(RmsNormOp.get(node.input(0), node.number("epsilon", 1e-5)))
