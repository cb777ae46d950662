"""Checks of nodes against ONNX's schemas: inputs, outputs, element types and attributes."""

from collections.abc import Sequence
from functools import cache

import onnx
from onnx import AttributeProto, NodeProto, TensorProto, helper
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import to_numpy
from braid.frontends.onnx.admitted import ADMITTED_OPS, admits, may_ignore
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.choices import CHOICES
from braid.frontends.onnx.signatures import Formal, Signature, signature


def check_given(node: Node, known: Signature) -> None:
    """Check the number of a node's inputs and outputs, its attributes, and its element types.

    Raises:
        BraidError: ONNX does not allow the node.

    """
    if known.is_deprecated:
        node.invalid(
            f"ONNX has no such op any more in opset {node.domain_opset}",
            hint="convert the model to this opset: onnx.version_converter.convert_version",
        )
    _check_counts(node, known)
    _check_attributes(node, known)
    bound: dict[str, Attribute] = {}
    for index, value in enumerate(node.inputs):
        formal = known.inputs.of(index)
        if value is not None:
            _check_type(node, f"input {index} ('{formal.name}')", formal, value, bound)
        elif index < known.inputs.least and not formal.is_optional:
            node.invalid(f"input {index} ('{formal.name}') is missing")
    node.bound_types = bound


def check_made(node: Node, known: Signature, results: Sequence[SSAValue | None]) -> None:
    """Check an imported node: its importer read every attribute, results have allowed types.

    Raises:
        UnsupportedError: an attribute that differs from its default was not read.
        BraidError: ONNX does not allow the type of a result.

    """
    for attribute in node.unread_attributes:
        schema = known.attributes[attribute.name]
        is_default = helper.get_attribute_value(attribute) == schema.default
        if not is_default and not may_ignore(node.op_type, attribute.name):
            node.unsupported(
                f"attribute '{attribute.name}' is supported only with its default value",
                hint="leave it out if the default is meant",
            )
    bound = dict(node.bound_types)
    for index, value in enumerate(results):
        if value is not None and index < len(node.proto.output) and node.proto.output[index]:
            formal = known.outputs.of(index)
            _check_type(node, f"output {index} ('{formal.name}')", formal, value, bound)


def _check_counts(node: Node, known: Signature) -> None:
    for kind, names, values in (
        ("inputs", node.proto.input, known.inputs),
        ("outputs", node.proto.output, known.outputs),
    ):
        if not values.least <= len(names) <= values.most:
            expected = (
                f"{values.least}"
                if values.least == values.most
                else f"at least {values.least}"
                if len(names) < values.least
                else f"at most {values.most}"
            )
            node.invalid(f"it has {len(names)} {kind}, expected {expected}")


def _check_attributes(node: Node, known: Signature) -> None:
    kinds = AttributeProto.AttributeType
    seen: set[str] = set()
    for attribute in node.proto.attribute:
        schema = known.attributes.get(attribute.name)
        if schema is None:
            names = ", ".join(f"'{name}'" for name in sorted(known.attributes))
            node.invalid(
                f"{known.origin} has no attribute '{attribute.name}' of this op in opset "
                f"{node.domain_opset}",
                hint=f"its attributes are {names or 'none'}",
            )
        if attribute.name in seen:
            node.invalid(f"attribute '{attribute.name}' is given twice")
        seen.add(attribute.name)
        if attribute.ref_attr_name:
            node.invalid(
                f"attribute '{attribute.name}' refers to '{attribute.ref_attr_name}', an "
                "attribute of a function, but its node is not in a function"
            )
        if attribute.type != schema.kind:
            node.invalid(
                f"attribute '{attribute.name}' has type {_kind(attribute.type)}, expected "
                f"{kinds.Name(schema.kind)}"
            )
        choices = CHOICES.get((node.op_type, attribute.name))
        if choices is not None and attribute.s.decode(errors="replace") not in choices:
            node.invalid(
                f"{attribute.name} is '{attribute.s.decode(errors='replace')}', expected one of "
                f"{', '.join(filter(None, choices))}"
            )
    for name, schema in known.attributes.items():
        if schema.is_required and name not in seen:
            node.invalid(f"attribute '{name}' is missing")


def _kind(kind: int) -> str:
    kinds = AttributeProto.AttributeType
    return kinds.Name(kind) if kind in kinds.values() else str(kind)


def _check_type(
    node: Node, what: str, formal: Formal, value: SSAValue, bound: dict[str, Attribute]
) -> None:
    if node.is_mapping(value):
        return  # which only few nodes read and make, see `boundary`
    kind: Attribute = element_type_of(value)
    name = onnx_type(kind)
    if node.is_text(value):
        kind, name = StringAttr("text"), "string"
    if not (_allows(formal, name) or _is_allowed_later(node, formal, name)) and not admits(
        node.op_type, name
    ):
        names = sorted(t[len("tensor(") : -1] for t in formal.types if t.startswith("tensor("))
        node.invalid(
            f"{what} has element type {name}, which ONNX does not allow in opset "
            f"{node.domain_opset}",
            hint=f"expected one of {', '.join(names)}; convert it with a Cast",
        )
    if formal.variable is None:
        return
    first = bound.setdefault(formal.variable, kind)
    if first != kind:
        node.invalid(
            f"{what} has element type {name}, but another value of the same type variable "
            f"'{formal.variable}' has "
            f"{'string' if isinstance(first, StringAttr) else onnx_type(first)}",
            hint="convert one of them with a Cast",
        )


def _allows(formal: Formal, name: str) -> bool:
    tensor = f"tensor({name})"
    return tensor in formal.types or f"optional({tensor})" in formal.types


def _is_allowed_later(node: Node, formal: Formal, name: str) -> bool:
    """Return whether the newest version of the op allows the type.

    Importers support the types of all versions, and models converted to bfloat16 often keep
    an opset whose schemas do not have that type yet.
    """
    newest = signature(node.op_type, node.domain, onnx.defs.onnx_opset_version())
    formals = (*newest.inputs.formals, *newest.outputs.formals) if newest else ()
    return any(other.name == formal.name and _allows(other, name) for other in formals)


@cache
def onnx_type(element_type: Attribute) -> str:
    """Return the name of an element type in ONNX's schemas, such as `float16`."""
    return TensorProto.DataType.Name(onnx_data_type(element_type)).lower()


def onnx_data_type(element_type: Attribute) -> TensorProto.DataType:
    """Return the number of an element type in ONNX's protobuf."""
    return helper.np_dtype_to_tensor_dtype(to_numpy(element_type))


def is_too_new(proto: NodeProto, domain: str, opset: int) -> bool:
    """Return whether ONNX has the op in a newer version of its domain only."""
    if (domain, proto.op_type) in ADMITTED_OPS:
        return False
    return signature(proto.op_type, domain, opset) is None and onnx.defs.has(
        proto.op_type, domain=domain
    )
