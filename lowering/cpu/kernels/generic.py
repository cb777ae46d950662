"""Kernels for any group by `linalg` and upstream's passes, offered beside those of families.

The generic lowering supports each group that a family supports, mostly in more layouts and more
slowly. Who makes the kernel, and in which layouts, is decided by seconds alone.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import boxes_of, overlap_of
from braid.analysis.storage.tensor_storage import logical_bytes
from braid.analysis.structure.operation_counts import stage_flops
from braid.dialects.braid.base import AnyTensor, IndirectOp, StructuredOp, shape_of
from braid.dialects.braid.box_selection import NonMaxSuppressionOp
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.folding import FoldOp
from braid.dialects.braid.fourier import FftOp
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.movement import ConcatOp, PadOp, ReshapeOp
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.scan import ScanOp
from braid.dialects.braid.sorting import TopKOp
from braid.dialects.braid.structure import Stage, StageSource
from braid.lowering.cpu.fallback.emit_fallback import VERSION, emit_fallback
from braid.lowering.cpu.kernels.groups.traffic import moving_seconds
from braid.lowering.cpu.kernels.groups.vector_family import VectorCandidate, VectorFamily
from braid.targets.kernels.flexible_layouts import as_typed, flexible_choices
from braid.targets.kernels.kernel_family import GENERIC, Kernel
from braid.targets.kernels.schedules import Schedule

# The fractions of the machine's rate that these kernels reach, and the slowdown of moves other than
# copies. Measured on 50 groups of SqueezeNet, MobileNetV2 and ShuffleNet, one Zen 4 core:
# reductions 0.5 to 50 GFLOP/s, mostly 3 to 6; elementwise chains move 6 to 25 GB/s within caches,
# paddings and concatenations 60 to 80.
_POINTWISE_FLOPS = 1 / 8
_REDUCTION_FLOPS = 1 / 32
_MOVING = 3.0
_BLOCKED_FACTOR = 1.1
"""The factor on the time of moving data with channels in blocks, measured on paddings."""

_STEP_PLACES = 128
"""Multiply-adds for each number that is transformed: two steps of 32 points, of two parts."""

_FOLD_PASSES = 4
"""Passes of a fold over memory."""


@dataclass(frozen=True)
class GenericFamily(VectorFamily):
    """Any group with static shapes that has code, in row-major and what its ops allow besides."""

    name: str = GENERIC
    version: int = VERSION

    def match(self, group: FusedOp) -> "_Generic | None":
        """Match any group, unless it needs more memory inside than outside, or has tensors in other
        memories.

        Intermediate values of a group get buffers here, which fusion was to avoid.
        """
        values = (*group.operands, *group.results)
        if any(not isinstance(v.type, TensorType) or DYNAMIC in shape_of(v) for v in values):
            return None
        if boxes_of(group) or overlap_of(group) is not None:
            return None
        members = tuple(_members(group))
        if any(isinstance(op, OpaqueOp | NonMaxSuppressionOp) for op in members):
            return None
        outside = sum(logical_bytes(cast(AnyTensor, value.type)) for value in values)
        stages = tuple(_stages(op) for op in members)
        inside = sum(_buffers(group, members, stages))
        return _Generic(group, self.unit, members, stages, inside) if inside <= outside else None


@dataclass(frozen=True, eq=False)
class _Generic(VectorCandidate):
    """The ops of a group that compute, the stages of each, and the bytes of all buffers inside."""

    members: tuple[Operation, ...]
    stages: tuple[tuple[Stage, ...], ...]
    inside_bytes: int

    def choices(self) -> Sequence[LayoutChoice]:
        """Return row-major layouts first; for a reorder, its own."""
        if any(isinstance(op, ReorderOp) for op in self.members):
            return [as_typed(self.group)]
        return flexible_choices(self.group)

    def supports_strides(self, choice: LayoutChoice) -> bool:
        """Take strides, unless the group reshapes."""
        return not any(isinstance(op, ReshapeOp) for op in self.members)

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the larger of arithmetic and memory traffic, including the traffic of the buffers
        inside.
        """
        moved = self.moved_bytes(choice) + 2 * self.inside_bytes
        blocked = any(not x.is_permutation for x in (*choice.operands, *choice.results))
        copies = all(isinstance(op, PadOp | ConcatOp) for op in self.members)
        factor = (1.0 if copies else _MOVING) * (_BLOCKED_FACTOR if blocked else 1.0) * self._passes
        return max(self._arithmetic, factor * moving_seconds(moved, self.unit))

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit one loop nest a stage; see `fallback`."""
        return emit_fallback(self.group, symbol)

    @cached_property
    def _passes(self) -> int:
        """Times that memory is gone through."""
        return max(map(_passes, self.members), default=1)

    @cached_property
    def _arithmetic(self) -> float:
        stages = sum(
            stage_flops(stage) / _share(stage) for stages in self.stages for stage in stages
        )
        compared = sum(map(_compared, self.members)) / _REDUCTION_FLOPS
        return (stages + compared) / self.unit.flops


def _passes(op: Operation) -> int:
    """Return the passes of an op over memory: a scan becomes log2 n elementwise ops, a fold two
    transposes, zeros and a scatter.
    """
    if isinstance(op, FoldOp):
        return _FOLD_PASSES
    extent = shape_of(op.input)[op.dim.value.data] if isinstance(op, ScanOp) else 1
    return max(1, extent.bit_length())


def _compared(op: Operation) -> int:
    """Return the elements that a selection compares: all of them for each that it finds.

    Reads of a transform count once for each position of its few steps.
    """
    if isinstance(op, FftOp):
        return math.prod(shape_of(op.input)) * _STEP_PLACES
    return math.prod(shape_of(op.input)) * op.k.value.data if isinstance(op, TopKOp) else 0


def _members(group: FusedOp) -> list[Operation]:
    ops = group.body.block.ops
    return [op for op in ops if op is not group.terminator and not isinstance(op, ConstantOp)]


def _stages(op: Operation) -> tuple[Stage, ...]:
    return op.structure().stages if isinstance(op, StructuredOp | IndirectOp) else ()


def _share(stage: Stage) -> float:
    return _REDUCTION_FLOPS if stage.reduction_dims else _POINTWISE_FLOPS


def _buffers(
    group: FusedOp, members: Sequence[Operation], stages_of: Sequence[Sequence[Stage]]
) -> Iterator[int]:
    """Return the bytes of each buffer inside of `group`, without its results and values that
    upstream fuses.

    A loop nest without reductions goes into the one that reads it, if that is the only one.
    """
    results = set(group.terminator.arguments)
    for op, stages in zip(members, stages_of, strict=True):
        inner = [
            r.source.index for s in stages for r in s.reads if isinstance(r.source, StageSource)
        ]
        readers = Counter(inner)
        last = len(stages) - 1
        for index, stage in enumerate(stages[:-1]):
            if stage.reduction_dims or readers[index] > 1:
                yield math.prod(stage.result_shape) * bytes_of(stage.result_type)
        fused = bool(stages) and not stages[last].reduction_dims
        for result in op.results:
            is_tensor = isinstance(result.type, TensorType)  # Upstream ops have scalars, too.
            if is_tensor and result not in results and not (fused and result.has_one_use()):
                yield logical_bytes(cast(AnyTensor, result.type))
