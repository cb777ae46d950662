"""From the ops of a function, as they were read, to the nodes and edges of its graph."""

from collections.abc import Iterable, Iterator, Mapping

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from braid.analysis.structure.parameter_expressions import ParameterExpressions, is_leaf
from braid.dialects.braid.names import names_of
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.ports import input_names, output_names
from braid.dialects.braid.regions import GroupOp
from braid.tools.explain.model_graph import GraphNode

INPUT, OUTPUT = "input", "output"

Edges = tuple[tuple[int, int], ...]


def function_graph(function: FuncOp) -> tuple[tuple[GraphNode, ...], Edges]:
    """Return a node for every input, op and output of a function, and edges by their numbers.

    Weights, and values computed from weights alone, are left out. A region's results come from its
    ops, which have the surrounding op in their path.
    """
    builder = _GraphBuilder(function)
    builder.add_inputs(input_names(function))
    builder.add_block(function.body.block, ())
    builder.add_outputs(function.body.block, output_names(function))
    return tuple(builder.nodes), tuple(builder.edges)


def region_name(op: Operation, region: Region) -> str:
    """Return what a region of control flow is called."""
    index = op.regions.index(region)
    if isinstance(op, scf.IfOp):
        return ("then", "else")[index]
    if isinstance(op, scf.IndexSwitchOp):
        return "default" if index == 0 else f"case {op.cases.get_values()[index - 1]}"
    if isinstance(op, scf.WhileOp):
        return ("condition", "body")[index]
    return "body"


def module_paths(names: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the modules that each name is in: `a/b` is in `a`, and so is `a` where that has parts.

    The ops that an importer makes of one op of a model are called `NODE/part`, and the last one
    `NODE`.
    """
    parts = {name: tuple(part for part in name.split("/") if part) for name in names}
    outer = {path[:depth] for path in parts.values() for depth in range(1, len(path))}
    return {name: path if path in outer else path[:-1] for name, path in parts.items()}


class _GraphBuilder:
    def __init__(self, function: FuncOp) -> None:
        self.nodes: list[GraphNode] = []
        self.edges: dict[tuple[int, int], None] = {}
        self._function = function
        self._known = ParameterExpressions()
        self._makers: dict[SSAValue, frozenset[int]] = {}
        self._paths = module_paths(
            name for op in function.walk() if _is_drawn(op) for name in names_of(op)[:1]
        )

    def add_inputs(self, names: tuple[str, ...]) -> None:
        for name, argument in zip(names, self._function.body.block.args, strict=True):
            if _is_tensor(argument):
                number = self._add(GraphNode(name, INPUT, _text(argument.type), ()))
                self._makers[argument] = frozenset([number])

    def add_outputs(self, block: Block, names: tuple[str, ...]) -> None:
        terminator = block.last_op
        operands = () if terminator is None else terminator.operands
        for name, value in zip(names, operands, strict=True):
            if _is_tensor(value):
                self._read(value, self._add(GraphNode(name, OUTPUT, _text(value.type), ())))

    def add_block(self, block: Block, path: tuple[str, ...]) -> None:
        """Add the ops of a block but the last one."""
        for op in block.ops:
            if op is block.last_op or not _is_drawn(op) or self._is_constant(op):
                continue
            regions = () if isinstance(op, GroupOp) else op.regions
            if any(region.blocks for region in regions) and self._add_regions(op, path):
                continue
            self._add_op(op, path)

    def _add_op(self, op: Operation, path: tuple[str, ...]) -> None:
        kind = op.kind.data if isinstance(op, OpaqueOp) else op.name.removeprefix("braid.")
        names = names_of(op)
        modules = self._paths.get(names[0], ()) if names else ()
        types = ", ".join(str(result.type) for result in op.results)
        number = self._add(GraphNode(", ".join(names) or kind, kind, types, (*path, *modules)))
        for value in _reads(op):
            self._read(value, number)
        self._makers.update((result, frozenset([number])) for result in op.results)

    def _add_regions(self, op: Operation, path: tuple[str, ...]) -> bool:
        """Add the ops of control flow; return whether there are any."""
        before = len(self.nodes)
        kind = op.name.partition(".")[2]
        # Each op without a name is a separate group.
        own = ", ".join(names_of(op)) or f"{kind} {before}"
        carried = [value for value in op.operands if _is_tensor(value)]
        results: list[frozenset[int]] = [frozenset()] * len(op.results)
        for region in op.regions:
            if not region.blocks:
                continue
            block = region.block
            tensors = [arg for arg in block.args if _is_tensor(arg)]
            # A loop carries its last operands; the values of its condition are in the same order.
            for argument, value in zip(reversed(tensors), reversed(carried), strict=False):
                self._makers[argument] = self._made_by(value)
            self.add_block(block, (*path, own, region_name(op, region)))
            yielded = () if block.last_op is None else block.last_op.operands
            for index, value in enumerate(reversed(yielded)):
                if index < len(results):
                    results[-1 - index] |= self._made_by(value)
        self._makers.update(zip(op.results, results, strict=True))
        return len(self.nodes) > before

    def _add(self, node: GraphNode) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _read(self, value: SSAValue, reader: int) -> None:
        self.edges.update(((maker, reader), None) for maker in sorted(self._made_by(value)))

    def _made_by(self, value: SSAValue) -> frozenset[int]:
        return self._makers.get(value, frozenset())

    def _is_constant(self, op: Operation) -> bool:
        return bool(op.results) and self._known.is_known(op.results[0])


def _is_tensor(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)


def _text(type: Attribute) -> str:
    return str(type)


def _is_drawn(op: Operation) -> bool:
    """Return whether an op has tensors, or regions with some; weights are not drawn."""
    if is_leaf(op) or not (op.operands or op.regions):
        return False
    return bool(op.regions) or any(map(_is_tensor, op.operands))


def _reads(op: Operation) -> Iterator[SSAValue]:
    """Yield the operands of `op` and what its regions read from outside."""
    yield from op.operands
    if not isinstance(op, GroupOp):
        for region in op.regions:
            for inner in region.walk():
                yield from inner.operands
