"""Inlining of function calls: of a model's own functions, and those by which ONNX defines ops.

A call is imported like a subgraph. Attribute references in the body are replaced by attributes of
the call, else by the function's defaults. Every name in the body is prefixed with the name of the
call's first output, so that calls do not share names and the body cannot refer to the graph around
it. A graph that the call passes as an attribute keeps its names, since it belongs to the caller.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, ValueInfoProto

from braid.frontends.onnx.building.opsets import domain_name, domain_of
from braid.support.errors import BraidError, SourceLocation

FunctionKey = tuple[str, str, str]
"""Domain, name and overload, which together identify a function."""


@dataclass(frozen=True)
class Body:
    """The inlined body of a call; `inputs` names all inputs of the function, omitted or not."""

    graph: GraphProto
    inputs: Sequence[str]


def functions_by_key(functions: Iterable[FunctionProto]) -> dict[FunctionKey, FunctionProto]:
    """Return the functions of a model by their keys."""
    return {(domain_name(f.domain), f.name, f.overload): f for f in functions}


def key_of(node: NodeProto) -> FunctionKey:
    """Return the key of the function that a node calls, if a function has this key."""
    return domain_of(node), node.op_type, node.overload


def called_body(function: FunctionProto, call: NodeProto, location: SourceLocation) -> Body:
    """Return the body of a function of the model, inlined for one call.

    Raises:
        BraidError: the call has more inputs or outputs than the function, or an attribute that
            the function does not have.

    """
    name = f"node '{call.name or next(iter(call.output), '')}' ({call.op_type})"
    for kind, given, known in (
        ("inputs", call.input, function.input),
        ("outputs", call.output, function.output),
    ):
        if len(given) > len(known):
            raise BraidError(
                f"{name}: it has {len(given)} {kind}, but its function has {len(known)}",
                location=location,
            )
    known = {*function.attribute, *(a.name for a in function.attribute_proto)}
    unknown = next((a.name for a in call.attribute if a.name not in known), None)
    if unknown is not None:
        listing = ", ".join(f"'{name}'" for name in sorted(known))
        raise BraidError(
            f"{name}: its function has no attribute '{unknown}'",
            location=location,
            hint=f"the attributes of the function are {listing or 'none'}",
        )
    return body_of(function, call, function.attribute_proto)


def body_of(
    function: FunctionProto, call: NodeProto, defaults: Iterable[AttributeProto] = ()
) -> Body:
    """Return the body of a function with attribute references replaced and names prefixed."""
    wanted = dict(zip(function.output, call.output, strict=False))
    # The value that becomes an output of the call takes the name of that output.
    own = {name: outer for name, outer in wanted.items() if outer and name not in function.input}
    names = _Names(next((name for name in call.output if name), call.op_type), own)
    values = {a.name: _attribute_in_call(a, names) for a in defaults if a.name}
    values |= {a.name: a for a in call.attribute if a.name}
    graph = GraphProto(
        name=function.name or call.op_type,
        node=[_node_in_call(node, names, values) for node in function.node],
        output=[ValueInfoProto(name=names.of(name)) for name, outer in wanted.items() if outer],
    )
    return Body(graph, [names.of(name) for name in function.input])


@dataclass(frozen=True)
class _Names:
    """A renaming of the values in a body: outputs as the call names them, others with a prefix."""

    prefix: str
    outputs: Mapping[str, str]

    def of(self, name: str) -> str:
        return self.outputs.get(name) or (f"{self.prefix}/{name}" if name else "")


def references(nodes: Iterable[NodeProto]) -> set[str]:
    """Return the names of function attributes that nodes, or their subgraphs, refer to."""
    found: set[str] = set()
    for node in nodes:
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                found.add(attribute.ref_attr_name)
            for graph in (attribute.g, *attribute.graphs):
                found |= references(graph.node)
    return found


def _node_in_call(
    node: NodeProto, names: _Names, values: Mapping[str, AttributeProto]
) -> NodeProto:
    copy = NodeProto(
        name=names.of(node.name),
        op_type=node.op_type,
        domain=domain_of(node),
        overload=node.overload,
        input=[names.of(name) for name in node.input],
        output=[names.of(name) for name in node.output],
    )
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            copy.attribute.append(_attribute_in_call(attribute, names, values))
        elif (value := values.get(attribute.ref_attr_name)) is not None:
            copy.attribute.append(value)
            copy.attribute[-1].name = attribute.name
        # An attribute that the call omits is omitted in the node too.
    return copy


def _attribute_in_call(
    attribute: AttributeProto, names: _Names, values: Mapping[str, AttributeProto] | None = None
) -> AttributeProto:
    if not attribute.HasField("g") and not attribute.graphs:
        return attribute
    copy = AttributeProto()
    copy.CopyFrom(attribute)
    for graph in ([copy.g] if copy.HasField("g") else []) + list(copy.graphs):
        nodes = [_node_in_call(node, names, values or {}) for node in graph.node]
        del graph.node[:]
        graph.node.extend(nodes)
        for named in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
            named.name = names.of(named.name)
    return copy
