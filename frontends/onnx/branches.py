"""`If`."""

from collections.abc import Sequence

from onnx import GraphProto
from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, SSAValue

from braid.dialects.braid.names import names_of
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.control_flow import extracted, insert_with_keys
from braid.frontends.onnx.node import Node
from braid.frontends.onnx.registry import importer


@importer("If")
def if_node(b: Builder, node: Node) -> Sequence[SSAValue]:
    """`scf.if`, or one of the branches if the condition is known."""
    condition = node.input(0)
    known = b.known(condition)
    branches = [node.graph("then_branch"), node.graph("else_branch")]
    if known is not None:
        return node.import_subgraph(branches[0 if known.item() else 1], [])
    (then, then_types), (otherwise, else_types) = (_branch(b, node, graph) for graph in branches)
    if then_types != else_types:
        node.unsupported(
            f"the branches give {_listed(then_types)} and {_listed(else_types)}, expected the "
            "same types"
        )
    keys = {
        "condition": node.proto.input[0],
        "then": _first_name(then, branches[0]),
        "else": _first_name(otherwise, branches[1]),
    }
    op = scf.IfOp(extracted(b, condition), then_types, [then], [otherwise])
    return insert_with_keys(b, op, keys).results


def _branch(b: Builder, node: Node, graph: GraphProto) -> tuple[Block, list[Attribute]]:
    block = Block()
    with b.inside(block):
        results = node.import_subgraph(graph, [])
        b.insert(scf.YieldOp(*results))
    return block, [value.type for value in results]


def _first_name(block: Block, graph: GraphProto) -> str:
    """The name of the first op of a branch, or of its first output if it has no ops."""
    named = (name for op in block.ops for name in names_of(op))
    return next(named, graph.output[0].name)


def _listed(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))
