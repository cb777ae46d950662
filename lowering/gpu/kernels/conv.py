"""Convolutions channels last as products by tiles: implicit GEMM, with any stride and dilation.

Rows are points of the result, columns its channels, depths the points of a window and the channels
of the input. The computation of a group of channels is a batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.ir import BlockArgument, SSAValue

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.contraction.problem import ElementKind
from braid.lowering.gpu.contraction.schedules import copied_together
from braid.lowering.gpu.kernels.contraction_candidate import TiledProduct, match_product
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.machine import Machine

CHANNELS_LAST = {3: "acb", 4: "acdb", 5: "acdeb"}
"""Layouts by rank."""
_FILTERS_LAST = {3: "cba", 4: "cdba", 5: "cdeba"}
"""Layouts of weights by rank, whose columns are neighbours, as multiply-adds of f32 read them."""
_FEWEST_COLUMNS = 8
"""Channels of a group: with fewer, most of a tile would be thrown away."""


def channels_last(value: SSAValue) -> Layout:
    """Return the layout of a tensor with channels last; vectors stay as they are."""
    shape = shape_of(value)
    if sum(extent != 1 for extent in shape) <= 1:
        return Layout.row_major(len(shape))
    return Layout.parse(CHANNELS_LAST[len(shape)])


@dataclass(frozen=True)
class ConvFamily(KernelFamily):
    """`braid.conv` without padding, channels last, with an elementwise epilogue.

    Weights of f32 rather have their filters last: otherwise each element is copied by itself. Not
    where groups have few channels; depthwise convolutions have a family of their own.
    """

    machine: Machine
    name: str = "gpu-conv"
    version: int = 4

    def match(self, group: FusedOp) -> "_Convolution | None":
        """Match one convolution of block arguments, the rest elementwise on its result."""
        found = match_product(group, ConvOp, self.machine)
        if found is None or not isinstance(found.op, ConvOp):
            return None
        op = found.op
        rank = len(shape_of(op.output))
        if rank not in CHANNELS_LAST or op.windows.is_padded or op.input is op.weight:
            return None
        columns = shape_of(op.output)[1] // op.groups.value.data
        if columns < min(_FEWEST_COLUMNS, shape_of(op.output)[1]):
            return None
        if any(len(shape_of(value)) != rank for value in (*group.inputs, *group.outputs)):
            return None
        return _Convolution(group, self.machine, found)


@dataclass(frozen=True, eq=False)
class _Convolution(TiledProduct):
    @property
    def layouts(self) -> Sequence[LayoutChoice]:
        """Channels last for maps and weights, or filters last for weights of f32; vectors stay as
        they are.
        """
        operands = tuple(map(channels_last, self.group.inputs))
        choice = LayoutChoice(operands, tuple(map(channels_last, self.group.outputs)))
        weight = self.found.op.operands[1]
        assert isinstance(weight, BlockArgument)
        if self.found.kind is not ElementKind.F32 or weight.uses.get_length() > 1:
            return [choice]
        filters_last = Layout.parse(_FILTERS_LAST[len(shape_of(weight))])
        turned = tuple(
            filters_last if own is weight else layout
            for own, layout in zip(self.group.body.block.args, operands, strict=True)
        )
        return [replace(choice, operands=turned), choice]

    def copied(self, layouts: Sequence[Layout]) -> tuple[int, int]:
        """Return contiguous bytes: those of a point's channels, and of weights those of a window.

        Weights of f32 are copied along filters, if these are neighbours.
        """
        op = self.found.op
        filters, *weight = shape_of(op.operands[1])
        element = bytes_of(element_type_of(op.operands[1]))
        channels, window = weight[0] * element, prod(weight) * element
        if self.found.kind is ElementKind.F32:
            assert isinstance(op, ConvOp)
            is_last = layouts[1].tag[-1] == "a"
            own = filters // op.groups.value.data * element
            return copied_together(channels), copied_together(own) if is_last else element
        return copied_together(channels), copied_together(window)

    def extents(self) -> tuple[int, int, int, int]:
        """Return the groups, points of the result, channels of a group, and elements of a
        window.
        """
        op = self.found.op
        assert isinstance(op, ConvOp)
        count, channels, *points = shape_of(op.output)
        groups = op.groups.value.data
        return groups, count * prod(points), channels // groups, prod(shape_of(op.weight)[1:])
