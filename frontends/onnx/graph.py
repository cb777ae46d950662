"""Importing the nodes of a graph, in order, into the builder's block."""

import itertools
from collections import ChainMap, Counter
from collections.abc import MutableMapping, Sequence
from graphlib import CycleError, TopologicalSorter

import numpy as np
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, ValueInfoProto
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.attribute_names import NAME
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.names import set_names
from braid.frontends.onnx.boundary import check_text, is_text, moves_text
from braid.frontends.onnx.building.builder import FOLDED_ELEMENTS, Builder
from braid.frontends.onnx.building.node import (
    CALLED_OPSET,
    DeclaredSizes,
    InvalidModelError,
    Node,
    SubgraphImporter,
)
from braid.frontends.onnx.building.opsets import Opsets, domain_of, imported_opsets
from braid.frontends.onnx.building.registry import Importer
from braid.frontends.onnx.constraints import check_given, check_made
from braid.frontends.onnx.functions import Body, body_of, called_body, key_of
from braid.frontends.onnx.importers import find_importer
from braid.frontends.onnx.inference import Constant, check_inference
from braid.frontends.onnx.model_file import ModelFile, declared_shape, tensor_type_of
from braid.frontends.onnx.schema_functions import function_of
from braid.frontends.onnx.signatures import is_of_onnx_runtime, signature
from braid.frontends.onnx.supported import missing_importer, names_used, op_name
from braid.support.errors import BraidError, UnsupportedError
from braid.support.unsupported_ops import UnsupportedNodes

Scope = MutableMapping[str, SSAValue | None]
"""None is an input of a function that a call leaves out."""

_KNOWN_FLOATS = 8

_MALFORMED = (LookupError, ValueError, TypeError, ArithmeticError, MemoryError)
"""Python and numpy raise these about ranks, extents and attributes that no valid node has."""


class GraphImporter:
    """An importer of the graphs of a model, or of one of its functions with its own opsets."""

    def __init__(
        self,
        builder: Builder,
        file: ModelFile,
        *,
        opsets: Opsets | None = None,
        names: Counter[str] | None = None,
    ) -> None:
        self._builder = builder
        self._file = file
        self._opsets = file.opsets if opsets is None else opsets
        self._names: Counter[str] = Counter() if names is None else names
        self._declared: dict[str, DeclaredSizes] = {}
        self._constants: set[Constant] = set()

    def import_graph(self, graph: GraphProto, scope: Scope) -> list[SSAValue]:
        """Append the graph's nodes, and return its outputs.

        `scope` maps the names that the graph may use, including its inputs, and is extended.
        """
        for value in itertools.chain(graph.value_info, graph.output):
            if tensor_type_of(value).HasField("shape"):
                sizes = declared_shape(value)
                self._declared[value.name] = tuple(d if isinstance(d, int) else None for d in sizes)
        for tensor in graph.initializer:
            value = self._initializer(tensor)
            scope[tensor.name] = value
            self._constants.add((tensor.name, value))
        if graph.sparse_initializer:
            raise self._unsupported("sparse initializers are not supported")
        self._import_nodes(self._in_order(graph.node), scope)
        results = [self._result(output.name, scope) for output in graph.output]
        for output, value in zip(graph.output, results, strict=True):
            self._check_element_type(f"output '{output.name}'", output, value)
        return results

    def _import_nodes(self, nodes: Sequence[NodeProto], scope: Scope) -> None:
        """Import nodes in order; an unsupported one does not keep others from being checked.

        Raises:
            UnsupportedNodesError: some are not supported; those that need these were left out.

        """
        refused, unknown = UnsupportedNodes(), set[str]()
        for node in nodes:
            try:
                if not unknown or unknown.isdisjoint(names_used(node)):
                    self._import_node(node, scope)
                    continue
            except UnsupportedError as error:
                refused.add(op_name(node), error)
            except BraidError:
                if not refused:  # else the first that was found is told
                    raise
            unknown.update(name for name in node.output if name)
        if refused:
            raise refused.error()

    def _check_element_type(self, what: str, info: ValueInfoProto, value: SSAValue) -> None:
        """Raise BraidError for another type than the graph declares: its users rely on that."""
        declared = info.type.tensor_type.elem_type
        actual: Attribute | None = getattr(value.type, "element_type", None)
        if not declared or actual is None:
            return
        if (value in self._builder.texts) != is_text(info):
            raise InvalidModelError(
                f"{what} is {'text' if value in self._builder.texts else 'no text'}, unlike its "
                "declaration",
                location=self._file.location,
                hint="declare the type that it has",
            )
        if is_text(info):
            return
        expected = self._file.tensors.dtype(declared, info.name)
        found = to_numpy(actual)
        if found != expected:
            raise InvalidModelError(
                f"{what} is declared as {expected}, but is {found}",
                location=self._file.location,
                hint="declare the type that it has, or convert it with a Cast",
            )

    def _initializer(self, tensor: TensorProto) -> SSAValue:
        if tensor.data_type == TensorProto.STRING:
            codes = map(self._builder.texts.code, self._file.tensors.texts(tensor))
            numbers = np.array(list(codes), np.int64).reshape(tuple(tensor.dims))
            return self._builder.as_text(self._builder.constant(numbers))
        name, array = tensor.name, self._file.tensors.read(tensor)
        is_integer = np.issubdtype(array.dtype, np.integer) or array.dtype == np.bool_
        if array.size <= (FOLDED_ELEMENTS if is_integer else _KNOWN_FLOATS):
            return self._builder.constant(array)
        return self._builder.parameter(name, array)

    def _import_node(self, proto: NodeProto, scope: Scope) -> None:
        def import_subgraph(graph: GraphProto, inputs: Sequence[SSAValue]) -> list[SSAValue]:
            names = [value.name for value in graph.input]
            if len(names) != len(inputs):
                node.fail(f"subgraph has {len(names)} inputs, expected {len(inputs)}")
            for declared, value in zip(graph.input, inputs, strict=True):
                self._check_element_type(f"input '{declared.name}' of its graph", declared, value)
            inner: Scope = dict(zip(names, inputs, strict=True))
            return self.import_graph(graph, ChainMap(inner, scope))

        inputs = [
            self._lookup(name, scope, f"node '{proto.name}'") if name else None
            for name in proto.input
        ]
        function = self._file.functions.get(key_of(proto))
        if function is not None:
            body = called_body(function, proto, self._file.location)
            results = self._call(body, function, inputs, scope)
            scope.update(zip((name for name in proto.output if name), results, strict=True))
            return
        node = self._node(proto, inputs, import_subgraph)
        first = len(self._builder.new_ops)
        for name, value in zip(proto.output, self._outputs(node, scope), strict=False):
            if name and value is not None:
                scope[name] = value
                if node.op_type == "Constant":
                    self._constants.add((name, value))
        self._name_ops(proto, first, scope)

    def _node(
        self,
        proto: NodeProto,
        inputs: Sequence[SSAValue | None],
        import_subgraph: SubgraphImporter,
    ) -> Node:
        return Node(
            proto,
            inputs,
            builder=self._builder,
            opset=self._opsets.default,
            domain_opset=self._opsets.of(domain_of(proto)),
            location=self._file.location,
            tensors=self._file.tensors,
            import_subgraph=import_subgraph,
            import_node=self._import_called,
            declared=self._declared,
        )

    def _import_called(
        self, proto: NodeProto, inputs: Sequence[SSAValue | None]
    ) -> Sequence[SSAValue | None]:
        """Import a node of ONNX's domain that an importer calls; see `Node.call`."""

        def import_subgraph(graph: GraphProto, inputs: Sequence[SSAValue]) -> list[SSAValue]:
            raise NotImplementedError("importers call no ops with subgraphs")

        opsets = Opsets({**self._opsets.versions, "": CALLED_OPSET})
        called = GraphImporter(self._builder, self._file, opsets=opsets, names=self._names)
        return called._outputs(called._node(proto, inputs, import_subgraph), {})

    def _call(
        self,
        body: Body,
        function: FunctionProto,
        inputs: Sequence[SSAValue | None],
        scope: Scope,
    ) -> list[SSAValue]:
        """Import the body of a function and return the outputs that the call names."""
        given = [*inputs, *[None] * (len(body.inputs) - len(inputs))]
        inner: Scope = dict(zip(body.inputs, given, strict=True))
        opsets = imported_opsets(function.opset_import, self._file.location, self._opsets)
        importer = GraphImporter(self._builder, self._file, opsets=opsets, names=self._names)
        return importer.import_graph(body.graph, ChainMap(inner, scope))

    def _outputs(self, node: Node, scope: Scope) -> Sequence[SSAValue | None]:
        importer = find_importer(node.op_type, node.domain_opset, node.domain)
        known = signature(node.op_type, node.domain, node.domain_opset)
        missing = missing_importer(node.proto, self._opsets, self._file.location)
        if missing is not None:
            raise missing
        try:
            if known is not None:
                check_given(node, known)
            check_text(node, self._builder.texts)
            results = self._imported(node, importer, scope)
            if moves_text(node, self._builder.texts):
                texts = self._builder.as_text
                results = [value if value is None else texts(value) for value in results]
            if known is not None:
                check_made(node, known, results)
                if not is_of_onnx_runtime(node.op_type, node.domain):
                    check_inference(node, self._opsets, self._constants)
            elif importer is not None and not importer.__module__.startswith("braid."):
                node.require_attributes_read()
            return results
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

    def _imported(
        self, node: Node, importer: Importer | None, scope: Scope
    ) -> Sequence[SSAValue | None]:
        if importer is None:
            function = function_of(node, node.domain, node.domain_opset)
            body = body_of(function, node.proto, function.attribute_proto)
            results = iter(self._call(body, function, node.inputs, scope))
            return [next(results, None) if name else None for name in node.proto.output]
        outputs = importer(self._builder, node)
        return [outputs] if isinstance(outputs, SSAValue) else outputs

    def _name_ops(self, proto: NodeProto, first: int, scope: Scope) -> None:
        """Name the ops that give outputs of the node after these, other ops after the first."""
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

    def _lookup(self, name: str, scope: Scope, user: str) -> SSAValue | None:
        if name not in scope:
            raise BraidError(
                f"{user} uses '{name}', which nothing produces", location=(self._file.location)
            )
        return scope[name]

    def _result(self, name: str, scope: Scope) -> SSAValue:
        value = self._lookup(name, scope, "the graph")
        if value is None:
            raise BraidError(
                f"output '{name}' is an input that the call of the function leaves out",
                location=self._file.location,
            )
        return value

    def _in_order(self, nodes: Sequence[NodeProto]) -> Sequence[NodeProto]:
        """Return the nodes with producers before users. Raises BraidError for a cycle."""
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

    def _unsupported(self, message: str) -> UnsupportedError:
        return UnsupportedError(message, location=self._file.location)
