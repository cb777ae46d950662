"""Importing the nodes of a graph, in order, into the builder's block."""

import itertools
from collections import ChainMap, Counter
from collections.abc import Iterator, MutableMapping, Sequence
from graphlib import CycleError, TopologicalSorter

import numpy as np
from onnx import GraphProto, NodeProto, ValueInfoProto
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.attribute_names import NAME
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.names import set_names
from braid.dialects.braid.relayout import Array
from braid.frontends.onnx.builder import FOLDED_ELEMENTS, Builder
from braid.frontends.onnx.model_file import ModelFile
from braid.frontends.onnx.node import Node
from braid.frontends.onnx.registry import find_importer
from braid.frontends.onnx.schema_functions import function_body, has_function_body
from braid.support.errors import BraidError, UnsupportedError

Scope = MutableMapping[str, SSAValue]

_KNOWN_FLOATS = 8

_MALFORMED = (LookupError, ValueError, TypeError, ArithmeticError, MemoryError)
"""What Python and numpy raise about ranks, extents and attributes that no valid node has."""


class GraphImporter:
    """Imports the graphs of one model."""

    def __init__(self, builder: Builder, file: ModelFile) -> None:
        self._builder = builder
        self._file = file
        self._names: Counter[str] = Counter()

    def import_graph(self, graph: GraphProto, scope: Scope) -> list[SSAValue]:
        """Appends the graph's nodes; its outputs.

        `scope` maps the names the graph may use, its inputs among them, and is extended.
        """
        self._check_single_assignment(graph)
        for tensor in graph.initializer:
            scope[tensor.name] = self._initializer(tensor.name, self._file.tensors.read(tensor))
        if graph.sparse_initializer:
            raise self._unsupported("sparse initializers are not supported")
        for node in self._in_order(graph.node):
            self._import_node(node, scope)
        results = [self._lookup(output.name, scope, "the graph") for output in graph.output]
        for output, value in zip(graph.output, results, strict=True):
            self._check_element_type(output, value)
        return results

    def _check_element_type(self, output: ValueInfoProto, value: SSAValue) -> None:
        """What a graph declares of an output is what programs that run it rely on."""
        declared = output.type.tensor_type.elem_type
        actual: Attribute | None = getattr(value.type, "element_type", None)
        if not declared or actual is None:
            return
        expected = self._file.tensors.dtype(declared, output.name)
        found = to_numpy(actual)
        if found != expected:
            raise BraidError(
                f"output '{output.name}' is declared as {expected}, but the graph makes {found}",
                location=self._file.location,
                hint="declare the type that the graph makes, or end the graph with a Cast",
            )

    def _check_single_assignment(self, graph: GraphProto) -> None:
        """A name has one meaning in a graph; an initializer may be the default of an input."""
        made = (name for node in graph.node for name in node.output if name)
        names = Counter(itertools.chain((tensor.name for tensor in graph.initializer), made))
        given = {value.name for value in graph.input} - {t.name for t in graph.initializer}
        for name, count in names.items():
            if count > 1 or name in given:
                raise BraidError(
                    f"'{name}' is defined several times in graph '{graph.name}'",
                    location=self._file.location,
                    hint="give each input, initializer and output of a node a name of its own",
                )

    def _initializer(self, name: str, array: Array) -> SSAValue:
        is_integer = np.issubdtype(array.dtype, np.integer) or array.dtype == np.bool_
        if array.size <= (FOLDED_ELEMENTS if is_integer else _KNOWN_FLOATS):
            return self._builder.constant(array)
        return self._builder.parameter(name, array)

    def _import_node(self, proto: NodeProto, scope: Scope) -> None:
        def import_subgraph(graph: GraphProto, inputs: Sequence[SSAValue]) -> list[SSAValue]:
            names = [value.name for value in graph.input]
            if len(names) != len(inputs):
                node.fail(f"subgraph has {len(names)} inputs, expected {len(inputs)}")
            inner = dict(zip(names, inputs, strict=True))
            return self.import_graph(graph, ChainMap(inner, scope))

        inputs = [
            self._lookup(name, scope, f"node '{proto.name}'") if name else None
            for name in proto.input
        ]
        node = Node(
            proto,
            inputs,
            builder=self._builder,
            opset=self._file.opset,
            location=self._file.location,
            tensors=self._file.tensors,
            import_subgraph=import_subgraph,
        )
        first = len(self._builder.new_ops)
        for name, value in zip(proto.output, self._outputs(node), strict=False):
            if name and value is not None:
                scope[name] = value
        self._name_ops(proto, first, scope)

    def _outputs(self, node: Node) -> Sequence[SSAValue | None]:
        domain = domain_of(node.proto)
        importer = find_importer(node.op_type, self._file.opset_of(domain), domain)
        try:
            if importer is None:
                body = function_body(node, domain, self._file.opset_of(domain))
                present = [value for value in node.inputs if value is not None]
                results = iter(node.import_subgraph(body, present))
                return [next(results, None) if name else None for name in node.proto.output]
            outputs = importer(self._builder, node)
            if not importer.__module__.startswith("braid."):
                node.require_attributes_read()
        except VerifyException as error:
            node.fail(str(error))
        except BraidError as error:
            if error.location is not None:
                raise
            raise type(error)(
                f"{node}: {error.message}", location=self._file.location, hint=error.hint
            ) from error
        except _MALFORMED as error:
            raise BraidError(
                f"{node}: its inputs and attributes do not fit together ({error})",
                location=self._file.location,
                hint="see what onnx.checker.check_model says about the model; if nothing, this is "
                "a bug of braid",
            ) from error
        return [outputs] if isinstance(outputs, SSAValue) else outputs

    def _name_ops(self, proto: NodeProto, first: int, scope: Scope) -> None:
        """Names what gives an output of the node after the output, other ops after the first."""
        names = {scope[name]: name for name in proto.output if name in scope}
        prefix = next((name for name in proto.output if name), proto.name)
        for op in self._builder.new_ops[first:]:
            is_named = NAME in op.attributes
            if is_named or not (isinstance(op, TensorOp) or op.regions):
                continue
            own = next((names[result] for result in op.results if result in names), None)
            set_names(op, [self._unique(own or f"{prefix}/{op.name.split('.')[-1]}")])

    def _unique(self, name: str) -> str:
        self._names[name] += 1
        count = self._names[name]
        return name if count == 1 else self._unique(f"{name}#{count}")

    def _lookup(self, name: str, scope: Scope, user: str) -> SSAValue:
        if name not in scope:
            raise BraidError(
                f"{user} uses '{name}', which nothing produces", location=(self._file.location)
            )
        return scope[name]

    def _in_order(self, nodes: Sequence[NodeProto]) -> Sequence[NodeProto]:
        """The nodes with producers before users. Raises BraidError for a cycle."""
        producer = {name: i for i, node in enumerate(nodes) for name in node.output if name}
        uses = [{producer[n] for n in names_used(node) if n in producer} for node in nodes]
        if all(max(used, default=-1) < i for i, used in enumerate(uses)):
            return nodes
        try:
            order = TopologicalSorter(dict(enumerate(uses))).static_order()
            return [nodes[i] for i in order]
        except CycleError as error:
            path: list[int] = error.args[1]
            cycle = " -> ".join(nodes[i].name or nodes[i].output[0] for i in path)
            raise BraidError(
                f"the graph has a cycle: {cycle}", location=self._file.location
            ) from error

    def check_supported(self, graph: GraphProto) -> None:
        """Raises UnsupportedError that lists all op types without an importer, with counts."""
        counts = Counter(
            f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            for node in all_nodes(graph)
            if not self._is_supported(node)
        )
        if counts:
            listing = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
            raise self._unsupported(f"ops that are not supported: {listing}")

    def _is_supported(self, node: NodeProto) -> bool:
        domain = domain_of(node)
        opset = self._file.opset_of(domain)
        if find_importer(node.op_type, opset, domain) is not None:
            return True
        return has_function_body(node.op_type, domain, opset)

    def _unsupported(self, message: str) -> UnsupportedError:
        return UnsupportedError(message, location=self._file.location)


def domain_of(node: NodeProto) -> str:
    """The node's domain; the default one has two names."""
    return "" if node.domain == "ai.onnx" else node.domain


def all_nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """Every node of the graph and of the subgraphs in it."""
    for node in graph.node:
        yield node
        for subgraph in subgraphs(node):
            yield from all_nodes(subgraph)


def subgraphs(node: NodeProto) -> list[GraphProto]:
    """The subgraphs of a node."""
    return [a.g for a in node.attribute if a.HasField("g")] + [
        graph for a in node.attribute for graph in a.graphs
    ]


def names_used(node: NodeProto) -> set[str]:
    """The names that the node, or a subgraph of it, takes as inputs."""
    names = set(node.input)
    for graph in subgraphs(node):
        for inner in graph.node:
            names |= names_used(inner)
        names |= {output.name for output in graph.output}
    return names
