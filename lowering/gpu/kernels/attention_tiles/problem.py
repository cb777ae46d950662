"""Attention as two products: scores of queries and keys, and values weighted by their softmax."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.pointwise_body import has_one_value
from braid.lowering.gpu.contraction.kernel import Product
from braid.lowering.gpu.contraction.problem import (
    Contraction,
    ElementKind,
    ProductMatch,
    element_kinds,
)
from braid.lowering.gpu.contraction.tiles import Tiles
from braid.lowering.gpu.nests.placement import Placed, Placement, stored_type

_KINDS = (ElementKind.BF16, ElementKind.F16)


@dataclass(frozen=True)
class AttentionMatch:
    """The ops of a group: a product, what is elementwise on it, softmax, a product, and so on.

    All that is multiplied is of one `kind`, of 16 bits.
    """

    kind: ElementKind
    scores: MatmulOp
    softmax: SoftmaxOp
    values: MatmulOp
    before: tuple[Operation, ...]
    after: tuple[Operation, ...]
    results: tuple[SSAValue, ...]


def match_attention(group: FusedOp) -> AttentionMatch | None:
    """Match two products of block arguments with a softmax of the last dim between, all else
    elementwise.

    None for other groups, for products that do not have the same batches, and for tensors that
    are empty or have open dims.
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
    results = tuple(group.terminator.arguments)
    if softmax.input not in made or not later >= set(results):
        return None
    if softmax.output.uses.get_length() != 1 or any(
        value in made for op in after for value in op.operands if not _is_constant(value)
    ):
        return None
    kinds = [*(element_kinds(scores) or ()), *(element_kinds(values) or ())]
    if len(kinds) < 4 or not _share_batches(scores, values):
        return None
    if any(kind is not kinds[0] or kind not in _KINDS for kind in kinds):
        return None
    constants = [op for op in before if isinstance(op, ConstantOp)]
    before.remove(scores)
    after.remove(values)
    later_ops = (*constants, *after)
    return AttentionMatch(kinds[0], scores, softmax, values, tuple(before), later_ops, results)


def _share_batches(scores: MatmulOp, values: MatmulOp) -> bool:
    """Return whether dims of batches are those of rows, or of batches, in both products.

    Queries have all of them; keys and values have the same ones.
    """
    batches = shape_of(scores.output)[:-2]
    queries, keys = (shape_of(operand)[:-2] for operand in scores.operands)
    return (
        batches == shape_of(values.output)[:-2] == queries
        and keys == (shape_of(values.operands[1])[:-2])
    )


def _elementwise(ops: Sequence[Operation], product: MatmulOp) -> bool:
    """Return whether the ops are the product, and elementwise ops at its points, or constants."""
    shape = shape_of(product.output)
    return all(
        op is product
        or has_one_value(op)
        or (isinstance(op, ElementwiseOp) and shape_of(op.results[0]) == shape)
        for op in ops
    )


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, ConstantOp)


@dataclass(frozen=True)
class AttentionPlaces:
    """Where both products have their operands and results.

    Scores, which are never stored, are numbered as results are: both have the same rows and
    batches.
    """

    match: AttentionMatch
    placement: Placement

    @cached_property
    def operands(self) -> Mapping[SSAValue, Placed]:
        """The places of the group's operands, and of weights."""
        return {**self.placement.operands, self.match.softmax.output: self._scores}

    @cached_property
    def _scores(self) -> Placed:
        layout = self.placement.results[0].layout
        type = stored_type(self.match.softmax.input, layout)
        return Placed(Block(arg_types=[type]).args[0], layout)

    @property
    def contractions(self) -> tuple[Contraction, Contraction]:
        """The products of scores and of weighted values, without what is elementwise on them."""
        match, order = self.match, self._scores.layout
        return (
            Contraction.of(match.scores, self.operands, order),
            Contraction.of(match.values, self.operands, order),
        )

    def products(self, tiles: tuple[Tiles, Tiles]) -> tuple[Product, Product]:
        """Return the products by these tiles. Raises UnsupportedError for an op without code."""
        match = self.match
        scores, results = match.softmax.input, self.placement.results
        first = ProductMatch(match.scores, match.kind, match.before, (scores,))
        second = ProductMatch(match.values, match.kind, match.after, match.results)
        stored = list(zip(match.results, results, strict=True))
        return (
            Product.at(first, self.operands, [(scores, self._scores)], tiles[0]),
            Product.at(second, self.operands, stored, tiles[1]),
        )


def without_roundings(module: ModuleOp) -> None:
    """Keep values in f32 that are rounded to 16 bits between ops of the group and widened at
    once."""
    for op in list(module.walk()):
        if isinstance(op, arith.ExtFOp) and isinstance(op.input.owner, arith.TruncFOp):
            wide = op.input.owner.input
            if wide.type == op.result.type:
                Rewriter.replace_op(op, [], [wide])
