"""Check the limits of a model before anything recursive or expensive sees it.

The limits are far beyond the models of exporters. They keep files that were made to exhaust a
reader from doing so.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto

from braid.frontends.onnx.functions import FunctionKey, functions_by_key, key_of
from braid.support.errors import BraidError, SourceLocation

GRAPH_DEPTH = 24
"""Graphs within graphs: branches and bodies of loops within each other."""
CALL_DEPTH = 64
"""Calls of a model's own functions within each other."""
INLINED_NODES = 2**20
"""Nodes after all calls have been inlined."""

_WITH_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


def check_limits(proto: ModelProto, location: SourceLocation) -> None:
    """Check nesting, and the size of the inlined calls of the model's own functions.

    Raises:
        BraidError: a limit is exceeded, or a function calls itself.

    """
    _check_nesting(proto.graph.node, location)
    for function in proto.functions:
        _check_nesting(function.node, location)
    if proto.functions:
        _check_calls(proto, location)


def _check_nesting(nodes: Iterable[NodeProto], location: SourceLocation) -> None:
    level, depth = [nodes], 0
    while level:
        inner = [graph.node for nodes in level for node in nodes for graph in _graphs(node)]
        if inner and depth == GRAPH_DEPTH:
            raise BraidError(
                f"graphs of control flow are nested more than {GRAPH_DEPTH} deep",
                location=location,
                hint="combine the conditions, or turn the innermost graphs into functions",
            )
        level, depth = inner, depth + 1


def _graphs(node: NodeProto) -> Sequence[GraphProto]:
    found = [a for a in node.attribute if a.type in _WITH_GRAPHS or a.HasField("g")]
    return [graph for a in found for graph in chain([a.g] if a.HasField("g") else (), a.graphs)]


def _all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    pending = [nodes]
    while pending:
        for node in pending.pop():
            yield node
            pending.extend(graph.node for graph in _graphs(node))


def _check_calls(proto: ModelProto, location: SourceLocation) -> None:
    functions = functions_by_key(proto.functions)
    calls: dict[FunctionKey, list[FunctionKey]] = {}
    own: dict[FunctionKey, int] = {}
    for key, function in functions.items():
        names = [key_of(node) for node in _all_nodes(function.node)]
        calls[key] = [name for name in names if name in functions]
        own[key] = len(names) - len(calls[key])
    order = _callees_first(calls, location)
    nodes: dict[FunctionKey, int] = {}
    depth: dict[FunctionKey, int] = {}
    for key in order:
        nodes[key] = own[key] + sum(nodes[callee] for callee in calls[key])
        depth[key] = 1 + max((depth[callee] for callee in calls[key]), default=0)
        if depth[key] > CALL_DEPTH:
            raise BraidError(
                f"calls of the model's functions are nested more than {CALL_DEPTH} deep",
                location=location,
                hint="inline them when the model is exported",
            )
    names = [key_of(node) for node in _all_nodes(proto.graph.node)]
    total = sum(nodes.get(name, 1) for name in names)
    if total > INLINED_NODES:
        raise BraidError(
            f"with its functions inlined the model has {_rounded(total)} nodes, expected at most "
            f"{INLINED_NODES:,}",
            location=location,
            hint="write what is repeated as a Loop",
        )


def _rounded(count: int) -> str:
    return f"{count:,}" if count < 10**15 else f"more than 10^{len(str(count)) - 1}"


def _callees_first(
    calls: Mapping[FunctionKey, Sequence[FunctionKey]], location: SourceLocation
) -> list[FunctionKey]:
    """Return the functions, each after those that it calls. Raises BraidError for a circle."""
    order: dict[FunctionKey, None] = {}
    for root in calls:
        path = {root: iter(calls[root])}
        while root not in order:
            caller = next(reversed(path))
            callee = next((c for c in path[caller] if c not in order), None)
            if callee is None:
                order[caller] = None
                del path[caller]
            elif callee in path:
                raise BraidError(
                    f"function '{callee[1]}' calls itself, directly or through others",
                    location=location,
                    hint="ONNX has no recursion; write a Loop",
                )
            else:
                path[callee] = iter(calls[callee])
    return list(order)
