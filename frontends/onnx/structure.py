"""Check that the names in a model are defined, in all graphs, before anything is imported.

A branch that is never taken may not fit the shapes at hand, and is then an error where it is taken.
Errors in names and ops do not depend on shapes, and are raised always.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import onnx
from onnx import FunctionProto, GraphProto, NodeProto

from braid.frontends.onnx.building.node import node_text
from braid.frontends.onnx.building.opsets import Opsets, domain_of, imported_opsets
from braid.frontends.onnx.functions import key_of
from braid.frontends.onnx.importers import find_importer
from braid.frontends.onnx.model_file import ModelFile
from braid.frontends.onnx.supported import is_branching, subgraphs
from braid.support.errors import BraidError


def check_structure(file: ModelFile, *, lacks_ops: bool = False) -> None:
    """Check the names in the graph of a model, in its subgraphs and in its functions.

    With `lacks_ops`, ops that ONNX does not have are accepted: another check reports them.

    Raises:
        BraidError: a name is defined twice where only one of both can be meant, or nowhere; a
            branch takes inputs; an op is of a domain that is not imported, or of none that ONNX
            has; a function is there twice.

    """
    keys = Counter((f.domain, f.name, f.overload) for f in file.proto.functions)
    for (domain, name, _), count in keys.items():
        if count > 1:
            raise _invalid(file, f"function '{domain}.{name}' is defined {count} times")
    _Scope(file, file.opsets, lacks_ops).check(file.proto.graph, set(), set())
    for function in file.proto.functions:
        _check_function(file, function, lacks_ops)


def _check_function(file: ModelFile, function: FunctionProto, lacks_ops: bool) -> None:
    where = f"function '{function.domain}.{function.name}'"
    for name, count in Counter(function.output).items():
        if count > 1:
            raise _invalid(file, f"{where} gives '{name}' {count} times")
    opsets = imported_opsets(function.opset_import, file.location, file.opsets)
    names = {*function.input, *_made(function.node)}
    _require_single(file, function.node, set(function.input), where)
    _Scope(file, opsets, lacks_ops).check_nodes(function.node, names, set(function.input))
    _require_defined(file, function.output, names, where)


@dataclass(frozen=True)
class _Scope:
    """The model, the opsets that a graph of it imports, and whether ONNX may not have its ops."""

    file: ModelFile
    opsets: Opsets
    lacks_ops: bool

    def check(self, graph: GraphProto, outer: set[str], before: set[str]) -> None:
        """Check a graph, in which the names `outer` of graphs around it can be read.

        Nodes may be in any order, but names defined `before` must not be defined again.
        """
        where = f"graph '{graph.name}'"
        inputs = [value.name for value in graph.input]
        for name, count in Counter(inputs).items():
            if count > 1:
                raise _invalid(self.file, f"{where} has {count} inputs '{name}'")
        own = {*inputs, *(tensor.values.name for tensor in graph.sparse_initializer)}
        for name, count in Counter(tensor.name for tensor in graph.initializer).items():
            if count > 1:
                raise _invalid(self.file, f"'{name}' is defined several times in {where}")
            own.add(name)  # for an input, it is the default
        _require_single(self.file, graph.node, own, where)
        names = own | _made(graph.node)
        self.check_nodes(graph.node, names | outer, own | before)
        _require_defined(self.file, [value.name for value in graph.output], names, where)

    def check_nodes(self, nodes: Sequence[NodeProto], names: set[str], before: set[str]) -> None:
        """Check nodes that read `names`; those of `before` are there before the first node."""
        before = set(before)
        for node in nodes:
            self._require_op(node)
            self._require_read(node, names)
            for graph in subgraphs(node):
                if is_branching(node) and graph.input:
                    inputs = ", ".join(f"'{value.name}'" for value in graph.input)
                    raise _invalid(
                        self.file, f"{node_text(node)} has a branch with inputs {inputs}"
                    )
                for name in _made(graph.node) & before:
                    raise _invalid(
                        self.file,
                        f"'{name}' is defined in a graph of {node_text(node)}, and before in a "
                        "graph around it",
                    )
                self.check(graph, names, before)
            before.update(name for name in node.output if name)

    def _require_op(self, node: NodeProto) -> None:
        domain = domain_of(node)
        is_function = key_of(node) in self.file.functions
        if is_function and domain not in self.opsets.versions:
            raise _invalid(
                self.file, f"{node_text(node)} is of domain '{domain}', without an opset"
            )
        if is_function or self.lacks_ops or domain not in ("", "ai.onnx.ml"):
            return
        opset = self.opsets.of(domain)
        if not onnx.defs.has(node.op_type, domain) and not find_importer(
            node.op_type, opset, domain
        ):
            raise _invalid(self.file, f"{node_text(node)} is of a type that ONNX does not have")

    def _require_read(self, node: NodeProto, names: Collection[str]) -> None:
        for name in node.input:
            if name and name not in names:
                raise _invalid(
                    self.file, f"{node_text(node)} uses '{name}', which nothing produces"
                )


def _made(nodes: Iterable[NodeProto]) -> set[str]:
    return {name for node in nodes for name in node.output if name}


def _require_single(file: ModelFile, nodes: Iterable[NodeProto], own: set[str], where: str) -> None:
    """Raise BraidError if an output of a node has the name of another one, or a name in `own`."""
    made = Counter(name for node in nodes for name in node.output if name)
    for name, count in made.items():
        if count > 1 or name in own:
            raise _invalid(file, f"'{name}' is defined several times in {where}")


def _require_defined(
    file: ModelFile, outputs: Iterable[str], names: Collection[str], where: str
) -> None:
    for name in outputs:
        if name not in names:
            raise _invalid(file, f"{where} gives '{name}', which it does not define")


def _invalid(file: ModelFile, message: str) -> BraidError:
    return BraidError(
        message,
        location=file.location,
        hint="give each value a unique name, or see the message of onnx.checker.check_model",
    )
