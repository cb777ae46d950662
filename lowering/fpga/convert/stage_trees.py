"""Decide which values become streams, and by which expression over streams each is computed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from braid.analysis.diagnostics.locations import located_at
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.movement import ConcatOp, PadOp, ReshapeOp, TransposeOp
from braid.dialects.braid.quantization import DequantizeOp, QuantizeOp
from braid.lowering.fpga.convert.moves import MOVES, root_of, source_of
from braid.lowering.fpga.convert.products import HEADS
from braid.lowering.fpga.convert.scalars import type_limits
from braid.lowering.fpga.convert.values import Array
from braid.support.errors import UnsupportedError


@dataclass
class Trees:
    """`streams` are the values that become streams, in order; the rest is computed within stages.

    Each is an expression of elementwise ops over known numbers and either other streams, or one op
    with windows over one stream.
    """

    known: Mapping[SSAValue, Array]
    streams: list[SSAValue] = field(default_factory=list[SSAValue])

    def inputs(self, value: SSAValue) -> list[SSAValue]:
        """Return the streams that the expression of a stream reads, each once."""
        return list(dict.fromkeys(self._leaves(value, is_root=True)))

    def head(self, value: SSAValue) -> Operation | None:
        """Return the op with windows in the expression of a stream."""
        return next(self._heads(value, is_root=True), None)

    def _leaves(self, value: SSAValue, *, is_root: bool = False) -> Iterator[SSAValue]:
        if value in self.known:
            return
        if value in self.streams and not is_root:
            yield value
            return
        for operand in operands_of(value):
            yield from self._leaves(operand)

    def _heads(self, value: SSAValue, *, is_root: bool = False) -> Iterator[Operation]:
        if value in self.known or (value in self.streams and not is_root):
            return
        if isinstance(value.owner, HEADS):
            yield value.owner
            return
        for operand in operands_of(value):
            yield from self._heads(operand)

    def cut(self, value: SSAValue) -> None:
        """Make a stream of the narrowest value between an op with windows and `value`."""
        if next(self._heads(value), None) is None:
            return
        path = [value]
        while not isinstance(path[-1].owner, HEADS):
            path += [
                operand
                for operand in operands_of(path[-1])
                if next(self._heads(operand), None) is not None
            ][:1]
        self.streams.append(min(path, key=_bits))


def _bits(value: SSAValue) -> int:
    least, most = type_limits(element_type_of(value))
    return (most - least).bit_length()


def operands_of(value: SSAValue) -> list[SSAValue]:
    """Return the operands of a value's op, before any padding and ops that move nothing."""
    owner = value.owner
    assert isinstance(owner, Operation), "arguments are streams"
    if isinstance(owner, MOVES):
        return [root_of(value)]
    if isinstance(owner, HEADS):
        source = source_of(owner.operands[0], owner)
        if isinstance(source.owner, PadOp):
            source = source_of(source.owner.operands[0], owner)
        return [source]
    return [source_of(operand, owner) for operand in owner.operands]


@dataclass(frozen=True)
class Ports:
    """Values that come into a design and leave it.

    An argument in f32 that is only quantized comes in as what it is quantized to, a result that is
    only dequantized leaves before that: both are left to the caller.
    """

    inputs: list[SSAValue]
    outputs: list[SSAValue]


def ports_of(function: FuncOp) -> Ports:
    """Return the operands and results of a design for the function."""
    inputs: list[SSAValue] = []
    for argument in function.body.block.args:
        readers = [use.operation for use in argument.uses]
        quantized = [op.output for op in readers if isinstance(op, QuantizeOp)]
        only_quantized = len(quantized) == len(readers) > 0
        inputs += quantized if only_quantized else [argument]
    end = function.body.block.last_op
    assert isinstance(end, ReturnOp)
    outputs: list[SSAValue] = []
    for value in end.operands:
        source = source_of(value, end)
        if isinstance(source.owner, DequantizeOp):
            source = source_of(source.owner.operands[0], end)
        outputs.append(source)
    return Ports(inputs, outputs)


def stage_trees(function: FuncOp, known: Mapping[SSAValue, Array], ports: Ports) -> Trees:
    """Decide which ops become which stages; raises UnsupportedError naming the first op that stages
    do not have.
    """
    block = function.body.block
    trees = Trees(known, list(ports.inputs))
    for op in block.ops:
        if all(result in known or result in ports.inputs for result in op.results) and op.results:
            continue
        if isinstance(op, DequantizeOp) and _leaves(op):
            continue
        with located_at(op):
            _visit(trees, op)
    trees.streams += ports.outputs
    order: dict[SSAValue, int] = {
        result: n for n, op in enumerate(block.ops) for result in op.results
    }
    made = {value for value in trees.streams if value not in ports.inputs}
    trees.streams = [*ports.inputs, *sorted(made, key=lambda value: order[value])]
    return trees


def _leaves(op: DequantizeOp) -> bool:
    """Return whether nothing but the end of the function reads it."""
    readers = [use.operation for use in op.output.uses]
    while readers and all(isinstance(reader, ReshapeOp) for reader in readers):
        readers = [use.operation for reader in readers for use in reader.results[0].uses]
    return all(isinstance(reader, ReturnOp) for reader in readers)


def _visit(trees: Trees, op: Operation) -> None:
    match op:
        case ReturnOp():
            pass
        case PadOp():
            if not all(isinstance(use.operation, HEADS) for use in op.results[0].uses):
                raise UnsupportedError(
                    "a padding on an FPGA that no convolution or pooling reads",
                    hint="stages pad windows, not streams",
                )
        case ReshapeOp() | TransposeOp():
            readers = [use.operation for use in op.output.uses]
            readers = [reader for reader in readers if not isinstance(reader, MOVES)]
            if any(source_of(op.output, reader) == op.output for reader in readers):
                trees.streams += [root_of(op.output), op.output]
        case ElementwiseOp():
            values = dict.fromkeys(operands_of(op.output))
            unknown = [value for value in values if value not in trees.known]
            if len(unknown) > 1:
                for value in unknown:
                    trees.cut(value)
            _materialize_shared(trees, op)
        case ConcatOp():
            _join(trees, op)
        case _ if isinstance(op, HEADS):
            (source,) = operands_of(op.results[0])
            trees.streams.append(source)
            _materialize_shared(trees, op)
        case _:
            raise UnsupportedError(
                f"'{op.name}' on an FPGA",
                hint="stages have convolutions, matmul, pooling, sums over pixels, and elementwise "
                "ops on integers",
            )


def _join(trees: Trees, op: ConcatOp) -> None:
    """Make the operands of a concatenation streams, so that their windows become one."""
    sources = operands_of(op.output)
    if op.dim.value.data != 1 or any(source in trees.known for source in sources):
        raise UnsupportedError(
            f"'{op.name}' along dim {op.dim.value.data} on an FPGA"
            if op.dim.value.data != 1
            else f"'{op.name}' with known numbers on an FPGA",
            hint="stages join the channels of streams, dim 1",
        )
    trees.streams += [*sources, op.output]


def _materialize_shared(trees: Trees, op: Operation) -> None:
    readers = {use.operation for use in op.results[0].uses}
    if len(readers) > 1:
        trees.streams.append(op.results[0])
