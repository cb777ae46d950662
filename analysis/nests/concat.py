"""Nests of concatenations: pieces of operands that lie next to each other in the result."""

from dataclasses import dataclass

from xdsl.ir import BlockArgument

from braid.analysis.nests.dims import LoopDim, has_elements, merged, row_major_strides
from braid.analysis.nests.lines import single_op
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import is_number
from braid.dialects.braid.movement import ConcatOp
from braid.dialects.braid.regions import FusedOp
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of


@dataclass(frozen=True)
class ConcatNest:
    """The concatenation of `arguments` of the group along `dim`; one may be several operands.

    `shapes` are those of the operands, and of the result.
    """

    arguments: tuple[int, ...]
    shapes: tuple[tuple[Extent, ...], ...]
    dim: int

    @property
    def pieces(self) -> tuple[Extent, ...]:
        """Return the neighbouring elements of each operand."""
        return tuple(product_of(shape[self.dim :]) for shape in self.shapes[:-1])

    def outer(self, choice: LayoutChoice) -> tuple[LoopDim[Extent], ...]:
        """Return the dims around pieces, with strides of all operands and the result."""
        columns = zip(*self._strides(choice), strict=True)
        extents = self.shapes[-1][: self.dim]
        return merged([LoopDim(n, tuple(s)) for n, s in zip(extents, columns, strict=False)])

    def has_whole_pieces(self, choice: LayoutChoice) -> bool:
        """Return whether no piece is taken apart by the strides of its tensor."""
        return all(
            extent == 1 or own == dense
            for shape, strides in zip(self.shapes, self._strides(choice), strict=True)
            for extent, own, dense in list(
                zip(shape, strides, row_major_strides(shape), strict=True)
            )[self.dim :]
        )

    def _strides(self, choice: LayoutChoice) -> list[tuple[Extent, ...]]:
        layouts = [*(choice.operands[number] for number in self.arguments), choice.results[0]]
        pairs = zip(layouts, self.shapes, strict=True)
        return [layout.storage_strides(shape) for layout, shape in pairs]


def concat_nest(group: FusedOp, extents_of: ExtentsOf = shape_of) -> ConcatNest | None:
    """Return the concatenation of numbers that a group is; None if a tensor has no elements.

    The result is None, too, if operands may differ in another dim.
    """
    op = single_op(group, ConcatOp)
    if op is None or len(group.outputs) != 1 or not is_number(element_type_of(group.outputs[0])):
        return None
    dim, result = op.dim.value.data, op.results[0]
    shapes = tuple(extents_of(value) for value in (*op.operands, result))
    arguments = [value.index for value in op.operands if isinstance(value, BlockArgument)]
    if len(arguments) < len(op.operands) or not all(map(has_elements, shapes)):
        return None
    if len({(*shape[:dim], *shape[dim + 1 :]) for shape in shapes}) > 1:
        return None
    return ConcatNest(tuple(arguments), shapes, dim)
