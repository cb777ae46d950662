"""Ops that ONNX itself defines by other ops: their bodies, for a node's types."""

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import FunctionProto, NodeProto, TypeProto, helper, shape_inference
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import to_numpy
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.functions import references


def has_function_body(op_type: str, domain: str, opset: int) -> bool:
    """Return whether ONNX defines the op by other ops."""
    try:
        is_known = onnx.defs.has(op_type, domain=domain, max_inclusive_version=opset)
    except TypeError:  # protobuf gives bytes for a name that is not UTF-8
        is_known = False
    if not is_known:
        return False
    schema = _schema(op_type, domain, opset)
    return bool(schema.has_function or schema.has_context_dependent_function)


def ops_with_function_body() -> set[tuple[str, str]]:
    """Return the ops, by domain and name, that ONNX defines by other ops in some version."""
    schemas: Sequence[Any] = onnx.defs.get_all_schemas()
    return {
        (schema.domain, schema.name)
        for schema in schemas
        if schema.has_function or schema.has_context_dependent_function
    }


def function_of(node: Node, domain: str, opset: int) -> FunctionProto:
    """Return the function by which ONNX defines the node's op.

    `opset` is the version of the op's domain.
    Raises UnsupportedError where ONNX has no body for these attributes and types, BraidError where
    the op does not take these inputs.
    """
    schema = _schema(node.op_type, domain, opset)
    _require_inferred(node, schema)
    if versions := schema.context_dependent_function_opset_versions:
        types = [_type_of(value).SerializeToString() for value in node.inputs]
        text = schema.get_context_dependent_function_with_opset_version(
            _newest(versions, node.opset), node.proto.SerializeToString(), types
        )
        node.read_all_attributes()  # by ONNX, which writes a body for them
    else:
        versions = schema.function_opset_versions or [schema.since_version]
        text = schema.get_function_with_opset_version(_newest(versions, node.opset))
    body = FunctionProto()
    body.ParseFromString(text)
    if not body.node:
        node.unsupported("ONNX defines no function body for these attributes and types")
    for name in references(body.node):
        node.has(name)
    # Where a call leaves an attribute out, the schema has its default.
    given = {a.name for a in body.attribute_proto}
    defaults = (a.default_value for a in schema.attributes.values())
    body.attribute_proto.extend(a for a in defaults if a.name and a.name not in given)
    return body


def _schema(op_type: str, domain: str, opset: int) -> Any:
    """Return the op's schema; its functions are missing from the type stubs."""
    return onnx.defs.get_schema(op_type, max_inclusive_version=opset, domain=domain)


def _require_inferred(node: Node, schema: Any) -> None:
    """Raise BraidError where ONNX's shape inference of the op refuses the node.

    An importer checks the requirements of its op. The ops of a body take more than the op that they
    define: they repeat extents of 1, and know nothing of ranks and extents that belong together.
    """
    proto = NodeProto()
    proto.CopyFrom(node.proto)
    types: dict[str, TypeProto] = {}
    for index, value in enumerate(node.inputs):
        proto.input[index] = "" if value is None else f"x{index}"
        if value is not None:
            types[proto.input[index]] = _type_of(value)
    versions = {"": node.opset, node.domain: node.domain_opset}
    opsets = [helper.make_opsetid(*version) for version in versions.items()]
    try:
        shape_inference.infer_node_outputs(schema, proto, types, opset_imports=opsets)
    except shape_inference.InferenceError as error:
        node.fail(
            f"its inputs do not fit together: {str(error).partition(']')[2].strip() or error}"
        )


def _newest(versions: Sequence[int], opset: int) -> int:
    """Return the newest version for this opset; the oldest one if the opset is older than all."""
    return max((version for version in versions if version <= opset), default=min(versions))


def _type_of(value: SSAValue | None) -> TypeProto:
    if value is None:
        return TypeProto()
    shape = [extent if isinstance(extent, int) else str(extent) for extent in extents_of(value)]
    data_type = helper.np_dtype_to_tensor_dtype(to_numpy(element_type_of(value)))
    return helper.make_tensor_type_proto(data_type, shape)
