"""Make functions of buffers of what a block's instructions compute; list the tensors outside."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from braid.analysis.storage.memory_graph import value_bytes
from braid.analysis.storage.tensor_storage import is_addressing
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.constants import ParameterOp
from braid.passes.order.block_graph import BlockGraph
from braid.solvers.ordering import Traffic
from braid.targets.simulator.instructions import Tensor


class TileKernels:
    """The kernels and outside tensors of a block, named and numbered as they are asked for.

    `values` are the buffers on the chip by their numbers in `traffic`. A kernel is a function
    `@k0`, … in `module`, from tensors of buffers to tensors of buffers; equal kernels share one
    function. Ops that only address its operands (slices, concatenations, views) are part of their
    readers.
    """

    def __init__(self, graph: BlockGraph, traffic: Traffic, values: Sequence[SSAValue]) -> None:
        self.graph, self.traffic, self.values = graph, traffic, values
        self.module = ModuleOp([])
        self.outside: dict[SSAValue, int] = {}
        """The number of each tensor outside of the chip."""
        self._names: dict[str, str] = {}

    def of_op(self, op: int) -> str:
        """Return the kernel of an op of the graph, from its operands to its results."""
        values = [self.values[number] for number in self.traffic.reads.get(op, ())]
        return self._kernel(values, self.graph.ops[op].results)

    def of_load(self, value: int) -> tuple[str, tuple[int, ...]]:
        """Return the kernel with which a value is loaded, "" for a copy; and what it reads."""
        loaded = self.values[value]
        sources = [self.values[number] for number in self.traffic.values[value].sources]
        return self._gathered(loaded, sources)

    def of_store(self, value: int) -> int:
        """Return the tensor that a value is stored to."""
        return self._tensor(self.values[value])

    def of_result(self, result: SSAValue) -> tuple[str, tuple[int, ...]]:
        """Return the kernel that makes a result of the block of tensors outside, and these."""
        return self._gathered(result, [v for v in self.values if v in self.outside])

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors outside by their numbers."""
        return tuple(Tensor(value_bytes(value), self._name(value)) for value in self.outside)

    @cached_property
    def _spills(self) -> dict[SSAValue, int]:
        return {value: number for number, value in enumerate(self.values)}

    def _name(self, value: SSAValue) -> str:
        if isinstance(value, BlockArgument):
            return f"argument {value.index}"
        op = value.owner
        if isinstance(op, ParameterOp):
            return f"parameter {op.key.data}"
        return f"value {self._spills[value]}" if value in self._spills else "value"

    def _tensor(self, value: SSAValue) -> int:
        return self.outside.setdefault(value, len(self.outside))

    def _gathered(
        self, value: SSAValue, sources: Iterable[SSAValue]
    ) -> tuple[str, tuple[int, ...]]:
        stops = set(sources)
        owner = value.owner
        if value in stops or not isinstance(owner, Operation) or not _is_addressed(owner):
            return "", (self._tensor(value),)
        read = list(dict.fromkeys(_sources(value, stops)))
        tensors = tuple(self._tensor(source) for source in read)
        return self._kernel(read, [value]), tensors

    def _kernel(self, reads: Sequence[SSAValue], makes: Sequence[SSAValue]) -> str:
        """Return the name of the function from `reads` to `makes`."""
        block = Block(arg_types=[value.type for value in reads])
        copies: dict[SSAValue, SSAValue] = dict(zip(reads, block.args, strict=True))
        made = [_copied(value, block, copies) for value in makes]
        block.add_op(func.ReturnOp(*made))
        types = [value.type for value in reads], [value.type for value in makes]
        function = func.FuncOp("k", types, Region(block), visibility="private")
        _forget_names(function)
        text = str(function)
        if (name := self._names.get(text)) is None:
            name = self._names[text] = f"k{len(self._names)}"
            function.properties["sym_name"] = type(function.sym_name)(name)
            self.module.body.block.add_op(function)
        return name


def _sources(value: SSAValue, stops: set[SSAValue]) -> Iterator[SSAValue]:
    """Yield the tensors that `value` is addressed in."""
    owner = value.owner
    if value in stops or not isinstance(owner, Operation) or not _is_addressed(owner):
        yield value
    else:
        for operand in owner.operands:
            yield from _sources(operand, stops)


def _is_addressed(op: Operation) -> bool:
    return is_addressing(op) and not is_leaf(op)


def _copied(value: SSAValue, block: Block, copies: dict[SSAValue, SSAValue]) -> SSAValue:
    """Return `value` in `block`, with all that it is made of there."""
    if value not in copies:
        op = value.owner
        assert isinstance(op, Operation), "a buffer of the op is not among its operands"
        for inner in op.walk():
            for operand in inner.operands:
                if operand not in copies and not _is_inside(operand, op):
                    _copied(operand, block, copies)
        copy = op.clone(copies)
        block.add_op(copy)
        copies.update(zip(op.results, copy.results, strict=True))
    return copies[value]


def _is_inside(value: SSAValue, op: Operation) -> bool:
    owner = value.owner
    around = owner if isinstance(owner, Operation) else owner.parent_op()
    while around is not None and around is not op:
        around = around.parent_op()
    return around is op


def _forget_names(function: func.FuncOp) -> None:
    """Leave out what distinguishes equal kernels."""
    for op in function.walk():
        for value in op.results:
            value.name_hint = None
        if op is not function:
            op.attributes.pop("braid.name", None)
