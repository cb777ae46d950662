"""Convolution of bytes with an elementwise epilogue, which requantizes: tiles as of f32."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction import tiling
from braid.lowering.cpu.kernels.contraction.arithmetic import ByteArithmetic, takes_signs
from braid.lowering.cpu.kernels.contraction.byte_kernel import byte_kernel, takes_problem
from braid.lowering.cpu.kernels.contraction.problem import Contraction
from braid.lowering.cpu.kernels.conv.contraction import ConvContraction
from braid.lowering.cpu.kernels.conv.match import ConvMatch, match_convolution
from braid.lowering.cpu.kernels.groups.layout_choices import (
    packed_weight,
    results_alike,
    uniform_choice,
)
from braid.lowering.cpu.kernels.groups.traffic import stored_bytes
from braid.lowering.cpu.kernels.groups.vector_family import VectorCandidate, VectorFamily
from braid.targets.kernels.kernel_family import Kernel, Schedule


@dataclass(frozen=True)
class ConvBytesFamily(VectorFamily):
    """`braid.conv` of unsigned and signed bytes into i32, in one to three dims, unpadded.

    Not depthwise; with an elementwise epilogue. Layouts: channels last, padded to whole steps
    where they are not; the weight in blocks of output channels and of a step's input channels
    (`AcdB32a4b`). Groups have whole vectors of output channels and whole steps.
    """

    name: str = "conv-bytes"
    version: int = 4

    def match(self, group: FusedOp) -> "_Convolution | None":
        """One convolution of block arguments, the rest elementwise on its result."""
        found = match_convolution(group, integers=True)
        if found is None or found.is_depthwise or not takes_signs(*found.op.operands):
            return None
        arithmetic = ByteArithmetic.of(self.machine, self.unit.lanes)
        if found.groups > 1 and (found.depth % arithmetic.group or found.columns % self.unit.lanes):
            return None
        return _Convolution(group, self.unit, found, arithmetic)


@dataclass(frozen=True, eq=False)
class _Convolution(VectorCandidate):
    found: ConvMatch
    arithmetic: ByteArithmetic

    def choices(self) -> Sequence[LayoutChoice]:
        """Channels last, with blocks of output channels from best to worst."""
        last = Layout.channels_last(self.found.rank)
        step = self.arithmetic.group
        source = last if self.found.depth % step == 0 else _in_steps(last, step)
        weights = [self._packed(count * self.unit.lanes) for count in self._ranked()]
        fixed = [{self.found.input.index: source, self.found.weight.index: w} for w in weights]
        choices = [uniform_choice(self.group, last, own) for own in fixed]
        return [choice for choice in choices if self._takes(choice)]

    def takes_strides(self, choice: LayoutChoice) -> bool:
        """Unless vectors would not be contiguous; the weight is on its own."""
        if choice.operands[self.found.weight.index].strides is not None:
            return False
        return results_alike(choice) and self._takes(choice)

    def space(self, level: int) -> Iterator[Schedule]:
        """Tiles that fit the block of output channels, by predicted time."""
        problem = self._problem(stored_choice(self.group))
        b_bytes = math.prod(shape_of(self.found.weight))
        vectors = [self._vectors(problem.choice)]
        yield from tiling.schedules(self._size(problem), vectors, self.unit, b_bytes, level)

    def seconds(self, choice: LayoutChoice) -> float:
        """Time of the best tile, or of memory where that is slower."""
        moved = stored_bytes(self.group, choice)
        size, vectors = self._size(self._problem(choice)), self._vectors(choice)
        return self.arithmetic.slowdown * tiling.seconds(size, vectors, self.unit, moved)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """See `byte_kernel`."""
        chosen = self.completed(schedule)
        stored = self._problem(stored_choice(self.group))
        problem = _contraction(stored.contraction(chosen["vectors"] * self.unit.lanes))
        return byte_kernel(self.group, symbol, self.unit, problem, chosen, self.arithmetic)

    def _ranked(self) -> list[int]:
        """Vectors of output channels in a block, the fastest first."""
        found, lanes = self.found, self.unit.lanes
        last = Layout.channels_last(found.rank)
        fixed = {found.input.index: last, found.weight.index: self._packed(lanes)}
        size = self._size(self._problem(uniform_choice(self.group, last, fixed)))
        ranked = tiling.ranked_vectors(size, self.unit)
        return [n for n in ranked if found.groups == 1 or found.columns % (n * lanes) == 0]

    def _takes(self, choice: LayoutChoice) -> bool:
        return takes_problem(self._problem(choice).narrow, self.arithmetic)

    def _packed(self, block: int) -> Layout:
        return packed_weight(self.found.rank, block, self.arithmetic.group)

    def _vectors(self, choice: LayoutChoice) -> int:
        """Vectors per tile, by the weight's layout."""
        return choice.operands[self.found.weight.index].block(0) // self.unit.lanes

    def _problem(self, choice: LayoutChoice) -> ConvContraction:
        return ConvContraction(self.found, choice, self.unit.lanes, self.arithmetic.group)

    def _size(self, problem: ConvContraction) -> tiling.ContractionSize:
        contraction = _contraction(problem.narrow)
        rows = contraction.row.extent
        return tiling.ContractionSize(
            batches=contraction.rows // rows,
            rows=rows,
            columns=contraction.columns,
            depth=contraction.depth,
            row_bytes=contraction.row.strides[0],
            packed=True,
            constants=problem.match.points.constants,
        )


def _in_steps(channels_last: Layout, step: int) -> Layout:
    """With channels padded to whole steps."""
    return Layout.parse(f"{channels_last.tag[:-1]}B{step}b")


def _contraction(found: Contraction | None) -> Contraction:
    assert found is not None, "the family was asked for layouts it did not offer"
    return found
