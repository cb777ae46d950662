"""Choices of layouts for groups on feature maps."""

from collections.abc import Mapping, Sequence

from braid.analysis.kernel_family import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp

CHANNELS_FIRST = Layout.row_major(4)
CHANNELS_LAST = Layout.parse("acdb")


def channel_blocks(lanes: int) -> Layout:
    """Blocks of as many channels as a vector has lanes: NCHW16c with 512 bits."""
    return Layout.parse(f"aBcd{lanes}b")


def results_alike(choice: LayoutChoice) -> bool:
    """Whether all results have the strides of the first."""
    return len({result.strides for result in choice.results}) == 1


def feature_choice(group: FusedOp, fixed: Mapping[int, Layout], other: Layout) -> LayoutChoice:
    """Results in `other`, operands in `fixed` by their number, or else as the results.

    Operands of an epilogue that extend along one dim at most stay row-major.
    """

    def layout(index: int) -> Layout:
        if index in fixed:
            return fixed[index]
        vector = is_vector(shape_of(group.inputs[index]))
        return Layout.row_major(other.rank) if vector else other

    operands = tuple(layout(index) for index in range(len(group.inputs)))
    return LayoutChoice(operands, (other,) * len(group.outputs))


def is_vector(shape: Sequence[int]) -> bool:
    """Whether a shape extends along one dim at most."""
    return sum(extent != 1 for extent in shape) <= 1
