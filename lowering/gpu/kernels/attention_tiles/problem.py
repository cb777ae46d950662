"""Attention as two products: scores of queries and keys, and values weighted by their softmax."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.lowering.gpu.contraction.kernel import Product
from braid.lowering.gpu.contraction.problem import bufferized_product
from braid.lowering.gpu.contraction.tiles import Tiles


@dataclass(frozen=True)
class AttentionMatch:
    """The ops of a group: a product, elementwise ops on it, softmax, a product, and elementwise
    ops."""

    scores: MatmulOp
    softmax: SoftmaxOp
    values: MatmulOp
    before: tuple[Operation, ...]
    after: tuple[Operation, ...]


def match_attention(group: FusedOp) -> AttentionMatch | None:
    """Match two products of block arguments with a softmax of the last dim between, all else
    elementwise.

    None for other groups, and for tensors that are empty or have open dims.
    """
    members = [op for op in group.body.block.ops if op is not group.terminator]
    products = [op for op in members if isinstance(op, MatmulOp)]
    softmaxes = [op for op in members if isinstance(op, SoftmaxOp)]
    if len(products) != 2 or len(softmaxes) != 1:
        return None
    (scores, values), (softmax,) = products, softmaxes
    arguments = (*scores.operands, values.operands[1])
    if not all(isinstance(value, BlockArgument) for value in arguments):
        return None
    every = (*group.inputs, *group.outputs, scores.output)
    if any(DYNAMIC in shape_of(v) or 0 in shape_of(v) for v in every):
        return None
    last = len(shape_of(softmax.input)) - 1
    if values.operands[0] is not softmax.output or softmax.dim.value.data != last:
        return None
    place = members.index(softmax)
    before, after = members[:place], members[place + 1 :]
    if not _elementwise(before, scores) or not _elementwise(after, values):
        return None
    made = {scores.output, *(result for op in before for result in op.results)}
    later = {result for op in after for result in op.results}
    if softmax.input not in made or not later >= set(group.terminator.arguments):
        return None
    if softmax.output.uses.get_length() != 1 or any(
        value in made for op in after for value in op.operands if not _is_constant(value)
    ):
        return None
    constants = [op for op in before if isinstance(op, ConstantOp)]
    return AttentionMatch(scores, softmax, values, tuple(before), (*constants, *after))


def _elementwise(ops: Sequence[Operation], product: MatmulOp) -> bool:
    """Return whether the ops are the product and what is elementwise at its points, or constant."""
    shape = shape_of(product.output)
    return all(
        op is product
        or isinstance(op, ConstantOp)
        or (isinstance(op, ElementwiseOp) and shape_of(op.results[0]) == shape)
        for op in ops
    )


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, ConstantOp)


@dataclass(frozen=True)
class Half:
    """One of the products as a kernel of its own, and the group's values of its arguments."""

    product: Product
    function: FuncOp
    outside: tuple[SSAValue, ...]

    def values(self, known: Mapping[SSAValue, SSAValue]) -> dict[SSAValue, SSAValue]:
        """Return the entry's values for the arguments of this half, those that it has."""
        arguments = self.function.body.block.args[: len(self.outside)]
        pairs = zip(arguments, self.outside, strict=True)
        return {argument: known[value] for argument, value in pairs if value in known}

    def outside_of(self, argument: SSAValue) -> SSAValue:
        """Return the group's value of an argument."""
        arguments: list[SSAValue] = list(self.function.body.block.args)
        return self.outside[arguments.index(argument)]


def half(
    ops: Sequence[Operation], results: Sequence[SSAValue], symbol: str, tiles: Tiles
) -> Half | None:
    """Return the product of a group's ops; None if it cannot be made by tiles."""
    inside = {result for op in ops for result in op.results}
    inputs = list(dict.fromkeys(v for op in ops for v in op.operands if v not in inside))
    block = Block(arg_types=[value.type for value in inputs])
    known: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    for op in ops:
        block.add_op(op.clone(known))
    block.add_op(YieldOp(*(known[value] for value in results)))
    outside = Block(arg_types=[value.type for value in inputs])
    group = FusedOp(outside.args, [value.type for value in results], block)
    function = bufferized_product(group, symbol)
    product = Product.of(function, len(inputs), tiles)
    if product is None:
        return None
    return Half(product, function, (*inputs, *results))


def fits(scores: Product, weighted: Product) -> bool:
    """Return whether the rows and batches of one product are those of the other."""
    first, second = scores.problem, weighted.problem
    kinds = ((first.batches, second.batches), (first.rows, second.rows))
    same = all([p.extent for p in a] == [p.extent for p in b] for a, b in kinds)
    return same and scores.columns == weighted.depth


def element_bits(match: AttentionMatch) -> int | None:
    """Return the bits of all operands of the products, if they have the same 16-bit type."""
    values = (*match.scores.operands, *match.values.operands)
    types = {str(element_type_of(value)) for value in values}
    return 16 if types in ({"bf16"}, {"f16"}) else None


def without_roundings(module: ModuleOp) -> None:
    """Keep in f32 what is rounded to 16 bits between ops of the group and widened at once."""
    for op in list(module.walk()):
        if isinstance(op, arith.ExtFOp) and isinstance(op.input.owner, arith.TruncFOp):
            wide = op.input.owner.input
            if wide.type == op.result.type:
                Rewriter.replace_op(op, [], [wide])
