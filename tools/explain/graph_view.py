"""From the ops of a function to a graph that can be drawn."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from braid.analysis.structure.operation_counts import flops
from braid.analysis.structure.parameter_expressions import ParameterExpressions, is_leaf
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.ports import input_names, output_names
from braid.dialects.braid.regions import GroupOp
from braid.targets.costs.model_summary import label_of
from braid.targets.costs.op_amounts import amounts_of
from braid.tools.explain.views import Edge, Graph, Node
from braid.tools.explain.views import Region as DrawnRegion

NodeOf = Callable[[Operation], Node]
"""How an op without regions is drawn."""

RegionLabel = Callable[[Operation, Region], str]
"""What is written over a region of an op."""


def region_name(op: Operation, region: Region) -> str:
    """What a region of control flow is called."""
    index = op.regions.index(region)
    if isinstance(op, scf.IfOp):
        return ("then", "else")[index]
    if isinstance(op, scf.IndexSwitchOp):
        return "default" if index == 0 else f"case {op.cases.get_values()[index - 1]}"
    if isinstance(op, scf.WhileOp):
        return ("condition", "body")[index]
    return "body"


def function_graph(
    function: FuncOp, node_of: NodeOf, region_label: RegionLabel = region_name
) -> Graph:
    """The graph of `function`, with a node for every input, op and output; weights and
    what is made of them alone are left out.

    `region_label` gives the words over branches and bodies.
    """
    names = input_names(function), output_names(function)
    known = ParameterExpressions()
    return _GraphBuilder(function.body.block, node_of, region_label, known, names).build()


def plain_node(op: Operation) -> Node:
    """An op with its results, arithmetic and traffic."""
    kinds = list(_inner_kinds(op))
    facts = [("op", op.name), ("result", "\n".join(str(r.type) for r in op.results))]
    if len(kinds) > 1:
        facts.append(("computes", " → ".join(kinds)))
    if isinstance(op, TensorOp | GroupOp):
        facts.append(("operations", f"{flops(op):,}"))
        facts.append(("bytes", f"{amounts_of(op).moved:,}"))
    label = label_of(op)
    kind = "+".join(kinds) or op.name
    return Node(label if label != op.name else kind, _note(op, kind), facts=tuple(facts))


def _inner_kinds(op: Operation) -> Iterator[str]:
    if isinstance(op, GroupOp):
        for inner in op.body.block.ops:
            if inner is not op.terminator and not is_leaf(inner):
                yield inner.name.removeprefix("braid.")
    elif isinstance(op, TensorOp):
        yield op.name.removeprefix("braid.")


def _note(op: Operation, kind: str) -> str:
    shapes = [_shape(result) for result in op.results if _is_tensor(result)]
    return " ".join([kind, *shapes])


def _is_tensor(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)


def _shape(value: SSAValue) -> str:
    text = str(value.type).removeprefix("tensor<").removesuffix(">")
    return text.partition(",")[0]


class _GraphBuilder:
    """Collects the nodes and edges of one block."""

    def __init__(
        self,
        block: Block,
        node_of: NodeOf,
        region_label: RegionLabel,
        expressions: ParameterExpressions,
        names: tuple[tuple[str, ...], tuple[str, ...]] | None = None,
    ) -> None:
        self._block = block
        self._expressions = expressions
        self._node_of = node_of
        self._region_label = region_label
        self._names = names
        self._nodes: list[Node] = []
        self._edges: dict[tuple[int, int], Edge] = {}
        self._maker: dict[SSAValue, int] = {}

    def build(self) -> Graph:
        for index, argument in enumerate(self._block.args):
            if _is_tensor(argument):
                name = self._names[0][index] if self._names else f"carried {index}"
                self._add(Node(name, _shape(argument), facts=(("type", str(argument.type)),)))
                self._maker[argument] = len(self._nodes) - 1
        for op in self._block.ops:
            if op is self._block.last_op:  # an unregistered op may be a terminator as well
                self._add_outputs(op)
            elif _is_drawn(op) and not self._known_to_be_constant(op):
                self._add_op(op)
        return Graph(tuple(self._nodes), tuple(self._edges.values()))

    def _add(self, node: Node) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _add_op(self, op: Operation) -> None:
        node = self._node_of(op)
        if not isinstance(op, GroupOp):
            node = replace(node, regions=tuple(self._regions(op)))
        number = self._add(node)
        for value in _reads(op):
            self._connect(value, number)
        self._maker.update((result, number) for result in op.results)

    def _add_outputs(self, terminator: Operation) -> None:
        for index, value in enumerate(terminator.operands):
            if _is_tensor(value):
                name = self._names[1][index] if self._names else f"yield {index}"
                facts = (("type", str(value.type)),)
                self._connect(value, self._add(Node(name, _shape(value), facts=facts)))

    def _connect(self, value: SSAValue, target: int) -> None:
        source = self._maker.get(value)
        if source is not None and (source, target) not in self._edges:
            colour = str(layout_of(value.type)) if _is_tensor(value) else ""
            self._edges[source, target] = Edge(source, target, str(value.type), colour)

    def _regions(self, op: Operation) -> Iterator[DrawnRegion]:
        for region in op.regions:
            if region.blocks:
                graph = self._inner(region.block).build()
                yield DrawnRegion(self._region_label(op, region), graph)

    def _inner(self, block: Block) -> "_GraphBuilder":
        return _GraphBuilder(block, self._node_of, self._region_label, self._expressions)

    def _known_to_be_constant(self, op: Operation) -> bool:
        return bool(op.results) and self._expressions.is_known(op.results[0])


def _is_drawn(op: Operation) -> bool:
    """Ops with tensors, and the scalars that control flow hangs on; not weights."""
    if is_leaf(op) or not (op.operands or op.regions):
        return False
    return bool(op.regions) or any(map(_is_tensor, op.operands))


def _reads(op: Operation) -> Iterator[SSAValue]:
    """Operands of `op` and what its regions read from outside."""
    yield from op.operands
    if not isinstance(op, GroupOp):
        for region in op.regions:
            for inner in region.walk():
                yield from inner.operands
