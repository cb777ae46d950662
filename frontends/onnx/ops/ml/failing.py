"""Values that a run refuses: an error where an element of a condition holds."""

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.failure import FailOp
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import broadcast, reduce, reshape
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.ops.control_flow import extracted, insert_with_keys


def unless_any(
    b: Builder, node: Node, condition: SSAValue, value: SSAValue, message: str
) -> SSAValue:
    """Return `value` in a run in which no element of a condition holds; else the run fails."""
    dims = list(range(len(extents_of(condition))))
    found = reshape(b, reduce(b, "or", condition, dims), [])
    failing, passing = Block(), Block()
    with b.inside(failing):
        b.insert(FailOp.of(f"{node}: {message}"))
        shape = extents_of(value)
        zero = np.zeros([1] * len(shape), to_numpy(element_type_of(value)))
        b.insert(scf.YieldOp(b.use(broadcast(b, b.constant(zero), shape))))
    with b.inside(passing):
        b.insert(scf.YieldOp(b.use(value)))
    name = node.proto.output[0]
    keys = {"condition": f"{name}/fails", "then": f"{name}/failing", "else": name}
    op = scf.IfOp(extracted(b, found), [value.type], [failing], [passing])
    return insert_with_keys(b, op, keys).results[0]
