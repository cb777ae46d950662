"""Choices of layouts for a group, and the layouts of weights."""

from collections.abc import Mapping

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp

_SPATIAL = "cde"


def results_alike(choice: LayoutChoice) -> bool:
    """Return whether all results have the strides of the first."""
    return len({result.strides for result in choice.results}) == 1


def row_major_choice(group: FusedOp) -> LayoutChoice:
    """Return row-major layouts for all tensors."""
    operands, results = (
        tuple(Layout.row_major(len(shape_of(value))) for value in values)
        for values in (group.inputs, group.outputs)
    )
    return LayoutChoice(operands, results)


def uniform_choice(group: FusedOp, layout: Layout, fixed: Mapping[int, Layout]) -> LayoutChoice:
    """Return results in `layout`, operands in `fixed` by their number, or else as the results.

    Operands of an epilogue that extend along one dim at most stay row-major.
    """

    def operand(index: int) -> Layout:
        if index in fixed:
            return fixed[index]
        is_vector = sum(extent != 1 for extent in shape_of(group.inputs[index])) <= 1
        return Layout.row_major(layout.rank) if is_vector else layout

    operands = tuple(operand(index) for index in range(len(group.inputs)))
    return LayoutChoice(operands, (layout,) * len(group.outputs))


def outputs_innermost(rank: int) -> Layout:
    """Return a weight whose output channels are neighbours (`bcda`), as rows of a tile or in
    vectors.
    """
    return Layout.parse(f"b{_SPATIAL[: rank - 2]}a")


def packed_weight(rank: int, block: int, step: int = 1) -> Layout:
    """Return a weight in blocks of output channels, and of the input channels of a step.

    `Acdb32a`, `AcdB32a4b`.
    """
    spatial = _SPATIAL[: rank - 2]
    if step > 1:
        return Layout.parse(f"A{spatial}B{block}a{step}b")
    return Layout.parse(f"A{spatial}b{block}a" if block > 1 else f"a{spatial}b")
