"""Find the ops of a model that cannot be imported, before anything is imported."""

from collections.abc import Iterable, Iterator

from onnx import GraphProto, NodeProto

from braid.frontends.onnx.building.node import node_text
from braid.frontends.onnx.building.opsets import Opsets, domain_of, imported_opsets
from braid.frontends.onnx.constraints import is_too_new
from braid.frontends.onnx.functions import FunctionKey, key_of
from braid.frontends.onnx.importers import find_importer, imported_ops
from braid.frontends.onnx.model_file import ModelFile
from braid.frontends.onnx.schema_functions import has_function_body, ops_with_function_body
from braid.support.errors import SourceLocation
from braid.support.unsupported_ops import MissingOpError, UnsupportedNodes, missing_op


def missing_nodes(file: ModelFile) -> UnsupportedNodes:
    """Return the nodes of a model whose ops have no importers.

    Branches of `If` are left out: their unsupported ops are found when they are imported, and
    matter only if they are taken.
    """
    missing = UnsupportedNodes()
    for node, error in _missing(file, file.proto.graph.node, file.opsets, set()):
        missing.add(op_name(node), error)
    return missing


def _missing(
    file: ModelFile, nodes: Iterable[NodeProto], opsets: Opsets, called: set[FunctionKey]
) -> Iterator[tuple[NodeProto, MissingOpError]]:
    """Yield each node of an unsupported op; each function is checked once for all its calls."""
    for node in _certain_nodes(nodes):
        key = key_of(node)
        function = file.functions.get(key)
        if function is not None:
            if key not in called:
                called.add(key)
                inner = imported_opsets(function.opset_import, file.location, opsets)
                yield from _missing(file, function.node, inner, called)
        elif (error := missing_importer(node, opsets, file.location)) is not None:
            yield node, error


def missing_importer(
    node: NodeProto, opsets: Opsets, location: SourceLocation
) -> MissingOpError | None:
    """Return the message about a node whose op has no importer, None if it has one."""
    domain = domain_of(node)
    opset = opsets.of(domain)
    if not is_too_new(node, domain, opset) and _is_supported(node.op_type, domain, opset):
        return None
    known = imported_ops() | dict.fromkeys(ops_with_function_body(), 0)
    return missing_op(
        op_name(node),
        (f"{domain}.{name}" if domain else name for domain, name in known),
        subject=node_text(node),
        origin=f"domain '{domain or 'ai.onnx'}', opset {opset}",
        location=location,
        hint=f"'{node.op_type}' is supported in newer opsets: "
        "onnx.version_converter.convert_version converts the model"
        if (domain, node.op_type) in known
        else None,
    )


def op_name(node: NodeProto) -> str:
    """Return the name of a node's op, with its domain in front unless that is ONNX's."""
    domain = domain_of(node)
    return f"{domain}.{node.op_type}" if domain else node.op_type


def _is_supported(op_type: str, domain: str, opset: int) -> bool:
    if find_importer(op_type, opset, domain) is not None:
        return True
    return has_function_body(op_type, domain, opset)


def _certain_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield every node, and the nodes of nested subgraphs but for branches, in order."""
    for node in nodes:
        yield node
        for subgraph in () if is_branching(node) else subgraphs(node):
            yield from _certain_nodes(subgraph.node)


def is_branching(node: NodeProto) -> bool:
    """Return whether only one of a node's subgraphs runs."""
    return node.op_type == "If" and not domain_of(node)


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield every node, and the nodes of nested subgraphs, in order."""
    for node in nodes:
        yield node
        for subgraph in subgraphs(node):
            yield from all_nodes(subgraph.node)


def subgraphs(node: NodeProto) -> list[GraphProto]:
    """Return the graphs that a node has as attributes."""
    return [a.g for a in node.attribute if a.HasField("g")] + [
        graph for a in node.attribute for graph in a.graphs
    ]


def names_used(node: NodeProto) -> set[str]:
    """Return the names of values that a node reads, also in its subgraphs from around these."""
    names = set(node.input)
    for graph in subgraphs(node):
        read = {output.name for output in graph.output}
        for inner in graph.node:
            read |= names_used(inner)
        own = {name for inner in graph.node for name in inner.output}
        own |= {value.name for value in (*graph.input, *graph.initializer)}
        names |= read - own
    return names
