"""Softmax and layer normalization along contiguous rows, and softmax down columns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import f32, f64

from braid.analysis.nests.normalization import (
    LayerNormNest,
    NormalizationNest,
    SoftmaxNest,
    normalization_nest,
)
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.groups.layout_choices import row_major_choice
from braid.lowering.cpu.kernels.groups.vector_family import SizedFamily, VectorCandidate
from braid.lowering.cpu.kernels.rows.layer_norm import LayerNormLoops
from braid.lowering.cpu.kernels.rows.softmax import SoftmaxLoops
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule

_FLOPS = {SoftmaxNest: 16, LayerNormNest: 8}
"""Vector operations per element, to rank against other families."""


@dataclass(frozen=True)
class NormalizationFamily(SizedFamily):
    """`braid.softmax` and `braid.layer_norm`, of f32 or f64, alone in their group.

    Scale and bias of a normalization have a number for every element of a row, for sections of it,
    or for rows. Layout: row-major.
    """

    name: str = "normalization"
    version: int = 9
    anchors: ClassVar = (SoftmaxOp, LayerNormOp)

    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> "Normalization | None":
        """Match one op along contiguous rows, or down columns, of any extents."""
        nest = normalization_nest(group, extents_of)
        if nest is None or element_type_of(group.inputs[nest.argument]) not in (f32, f64):
            return None
        return Normalization(group, self.unit_of(group.inputs[nest.argument]), nest)


@dataclass(frozen=True, eq=False)
class Normalization(VectorCandidate):
    """The rows of a group."""

    nest: NormalizationNest

    def choices(self) -> Sequence[LayoutChoice]:
        """Return the one choice."""
        return [row_major_choice(self.group)]

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the larger of arithmetic and memory traffic; passes after the first hit
        the cache.
        """
        elements = math.prod(shape_of(self.group.results[0]))
        arithmetic = elements * _FLOPS[type(self.nest)] / (self.unit.flops / 2)
        return max(arithmetic, self.moving_seconds(choice))

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit rows, or blocks of columns, in the grid."""
        nest, unit = self.nest, self.unit
        is_softmax = isinstance(nest, SoftmaxNest)
        loops = SoftmaxLoops(nest, unit) if is_softmax else LayerNormLoops(nest, unit)
        # Every element of the row is read for the last time right before it is written.
        in_place = ((self.nest.argument, 0),)
        return grid_kernel(self.group, symbol, unit, loops.grid, loops.iteration, in_place)
