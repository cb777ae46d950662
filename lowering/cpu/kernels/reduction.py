"""Reductions along any dims, with elementwise ops before and after them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat

from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.nests.rows import Reduction, ReductionNest, reduction, reduction_nest
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.groups.layout_choices import results_alike
from braid.lowering.cpu.kernels.groups.vector_family import SizedFamily, VectorCandidate
from braid.lowering.cpu.kernels.rows.reduction_loops import ReductionLoops
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.math.elementwise_table import emitter_of
from braid.lowering.emit.math.points import has_code
from braid.targets.kernels.flexible_layouts import flexible_choices
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule

_WORD = 4
"""Bytes of numbers that fill vectors: LLVM makes more of loops over narrower ones."""

_EXTREMUM_FLOPS = 3
"""Operations of a maximum of floats, which NaN goes through."""


@dataclass(frozen=True)
class ReductionFamily(SizedFamily):
    """One `braid.reduce` along any dims, with elementwise ops on its operand and on its result.

    Its elements are f32, f64, i32, i64, or converted from other types as they are read. Layouts:
    those of the generic lowering in which the innermost dim of the operand is contiguous.
    """

    name: str = "reduction"
    version: int = 4
    anchors: ClassVar = (ReduceOp,)

    def match(
        self, group: FusedOp, extents_of: ExtentsOf = shape_of
    ) -> "ReductionCandidate | None":
        """Match a reduction from which all results are computed, with any extents."""
        found = reduction(group, extents_of)
        if found is None:
            return None
        kind = element_type_of(found.op.output)
        if bytes_of(kind) < _WORD or not (has_code(found.reads) and has_code(found.points)):
            return None
        if emitter_of(found.op.kind.data, [kind] * 2, kind) is None:
            return None
        if emitter_of("cast", [element_type_of(found.op.input)], kind) is None:
            return None
        candidate = ReductionCandidate(group, self.unit, found, extents_of)
        return candidate if candidate.layouts else None


@dataclass(frozen=True, eq=False)
class ReductionCandidate(VectorCandidate):
    """The reduction of a group, and the function that gives the extents of its tensors."""

    found: Reduction
    extents_of: ExtentsOf

    def choices(self) -> Sequence[LayoutChoice]:
        """Return row-major layouts first."""
        return [choice for choice in flexible_choices(self.group) if self._nest(choice)]

    def _nest(self, choice: LayoutChoice) -> ReductionNest | None:
        return reduction_nest(self.found, choice, self.extents_of)

    def supports_open_layout(self, choice: LayoutChoice) -> bool:
        """Return whether the innermost dim of the operand is contiguous."""
        return self._nest(choice) is not None

    def supports_strides(self, choice: LayoutChoice) -> bool:
        """Return whether vectors are contiguous."""
        return results_alike(choice) and self._nest(choice) is not None

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the larger of arithmetic and memory traffic."""
        op, reads = self.found.op, self.found.reads
        kind = element_type_of(op.output)
        is_extremum = isinstance(kind, AnyFloat) and op.kind.data in ("maximum", "minimum")
        steps = reads.flops + (_EXTREMUM_FLOPS if is_extremum else 1)
        nest = self._nest(choice)
        assert nest is not None
        elements = math.prod(reads.shape) / nest.used_lanes(self.unit.lanes)
        arithmetic = steps * elements * (bytes_of(kind) / _WORD) / (self.unit.flops / 2)
        return max(arithmetic, self.moving_seconds(choice))

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit a block of neighbouring results per grid iteration."""
        nest = self._nest(stored_choice(self.group))
        assert nest is not None, "the family was asked for layouts it did not offer"
        loops = ReductionLoops(self.found, nest, self.unit)
        return grid_kernel(self.group, symbol, self.unit, loops.grid, loops.iteration)
