"""Checks of nodes by ONNX's own shape inference, which knows rules that no importer needs."""

from collections.abc import Collection
from functools import lru_cache
from typing import Any

import onnx
from onnx import AttributeProto, helper, numpy_helper
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.opsets import Opsets
from braid.frontends.onnx.constraints import onnx_data_type
from braid.support.sizes.expression import Extent

_MOST_ELEMENTS = 1024
"""Inference gets the values of inputs up to this size; shapes, axes and the like are smaller."""

_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


Constant = tuple[str, SSAValue]
"""The name and value of an initializer or of the output of a `Constant`."""


def check_inference(node: Node, opsets: Opsets, constants: Collection[Constant]) -> None:
    """Check an imported node by the inference function of its schema.

    The function gets the shapes of the inputs, without open dims, and of values only small
    constants of the model: what braid computes at import is unknown to ONNX, which accepts other
    shapes of it. An op with subgraphs is left out, as inferring these needs the graphs around it.

    Raises:
        BraidError: ONNX's inference rejects the node.

    """
    if any(attribute.type in _GRAPHS for attribute in node.proto.attribute):
        return
    types: dict[str, bytes] = {}
    values: dict[str, bytes] = {}
    for index, name in enumerate(node.proto.input):
        value = node.optional(index)
        if value is None or name in types:
            continue
        if not isinstance(value.type, TensorType):
            return
        types[name] = _serialized(element_type_of(value), tuple(extents_of(value)))
        known = node.value_if_known(index) if (name, value) in constants else None
        if known is not None and known.size <= _MOST_ELEMENTS:
            values[name] = numpy_helper.from_array(known, name).SerializeToString()
    schema: Any = onnx.defs.get_schema(node.op_type, node.domain_opset, node.domain)
    try:
        schema._infer_node_outputs(
            node.proto.SerializeToString(),
            types,
            values,
            {},
            dict(opsets.versions),
            onnx.IR_VERSION,
        )
    except onnx.checker.ValidationError:
        return  # about counts and types, of which `constraints` admits more than this version
    except onnx.shape_inference.InferenceError as error:
        reason = str(error).strip().removeprefix("[ShapeInferenceError]").strip()
        node.fail(f"ONNX's shape inference rejects it: {reason}")


@lru_cache(maxsize=1024)
def _serialized(element_type: Attribute, shape: tuple[Extent, ...]) -> bytes:
    dims = [extent if isinstance(extent, int) and extent >= 0 else None for extent in shape]
    return helper.make_tensor_type_proto(onnx_data_type(element_type), dims).SerializeToString()
