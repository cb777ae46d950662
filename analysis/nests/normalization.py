"""Nests of normalizations: the rows that they go through, and where scales and biases lie."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import BlockArgument, SSAValue

from braid.analysis.nests.dims import has_elements, is_repeated
from braid.analysis.nests.lines import Lines
from braid.analysis.nests.pointwise import ExtentsOf
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.constants import ConstantOp, splat_value
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of


@dataclass(frozen=True)
class SoftmaxNest:
    """The softmax of each of the `lines` of a row-major argument of the group."""

    argument: int
    lines: Lines[Extent]

    @property
    def length(self) -> Extent:
        """Return the elements of a row."""
        return self.lines.extent


@dataclass(frozen=True)
class RowFactors:
    """The scale or the bias of rows: It is `number` everywhere, or the elements of an argument of
    the group.

    `count` numbers of it belong to each row, each to `neighbours` elements. The start of a row's
    elements moves by `steps` along the dims outside of rows.
    """

    number: float | None
    argument: int
    count: Extent
    neighbours: Extent
    steps: tuple[Extent, ...]


@dataclass(frozen=True)
class LayerNormNest:
    """The normalization of each row of a row-major argument; `outer` are the dims around rows.

    A row has `sections` of `section_length` elements: scale and bias have one number for each
    section, one for all sections, or one for each element.
    """

    argument: int
    outer: tuple[Extent, ...]
    length: Extent
    sections: Extent
    section_length: Extent
    scale: RowFactors
    bias: RowFactors
    epsilon: float


NormalizationNest = SoftmaxNest | LayerNormNest


def normalization_nest(
    group: FusedOp, extents_of: ExtentsOf = shape_of
) -> NormalizationNest | None:
    """Return the only op of the group beside constants; None if the group is not a
    normalization, or has no elements.

    There is no nest either if scale and bias are cut into sections of another size.
    """
    ops = [op for op in group.body.block.ops if not isinstance(op, ConstantOp | YieldOp)]
    if len(ops) != 1 or tuple(group.terminator.arguments) != tuple(ops[0].results):
        return None
    op = ops[0]
    if not isinstance(op, SoftmaxOp | LayerNormOp) or not isinstance(op.input, BlockArgument):
        return None
    shape, argument = extents_of(op.input), op.input.index
    if not has_elements(shape):
        return None
    if isinstance(op, SoftmaxOp):
        return SoftmaxNest(argument, Lines.along(shape, op.dim.value.data))
    scale, bias = (_row_factors(op, value, shape, extents_of) for value in (op.scale, op.bias))
    if scale is None or bias is None:
        return None
    first = op.first_dim.value.data
    length = product_of(shape[first:])
    cuts = {(f.count, f.neighbours) for f in (scale, bias) if f.count not in (1, length)}
    if len(cuts) > 1:
        return None
    cut = cuts.pop() if cuts else (1, length)
    return LayerNormNest(argument, shape[:first], length, *cut, scale, bias, op.epsilon.value.data)


def _row_factors(
    op: LayerNormOp, value: SSAValue, shape: Sequence[Extent], extents_of: ExtentsOf
) -> RowFactors | None:
    """Return the factors of rows; None where numbers belong to others than neighbours, or are in no
    argument.
    """
    extents, first = extents_of(value), op.first_dim.value.data
    if not is_repeated(extents, shape):
        return None
    last = max((dim + 1 for dim, e in enumerate(extents) if e != 1 and dim >= first), default=first)
    if tuple(extents[first:last]) != tuple(shape[first:last]):
        return None
    number = splat_value(value.owner) if isinstance(value.owner, ConstantOp) else None
    if number is None and not isinstance(value, BlockArgument):
        return None
    return RowFactors(
        None if number is None else float(number),
        value.index if isinstance(value, BlockArgument) else 0,
        product_of(extents[first:]),
        product_of(shape[last:]),
        tuple(
            0 if extent == 1 else product_of(extents[dim + 1 :])
            for dim, extent in enumerate(extents[:first])
        ),
    )
