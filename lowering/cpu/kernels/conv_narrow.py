"""Convolution of bytes and bf16 with an elementwise epilogue: tiles as of f32."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.attribute_names import PAIRABLE
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.byte_pairs import columns_of_chunk
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction import tiling
from braid.lowering.cpu.kernels.contraction.arithmetic import (
    BytePairArithmetic,
    NarrowArithmetic,
    PairArithmetic,
    has_masks,
    narrow_arithmetic,
)
from braid.lowering.cpu.kernels.contraction.microkernel import VECTORS
from braid.lowering.cpu.kernels.contraction.narrow_kernel import narrow_kernel, takes_problem
from braid.lowering.cpu.kernels.contraction.problem import Contraction
from braid.lowering.cpu.kernels.contraction.shuffled import Positions
from braid.lowering.cpu.kernels.contraction.tiling import TileSchedule
from braid.lowering.cpu.kernels.conv.contraction import ConvContraction
from braid.lowering.cpu.kernels.conv.match import ConvMatch, match_convolution, stepped_choice
from braid.lowering.cpu.kernels.groups.layout_choices import results_alike
from braid.lowering.cpu.kernels.groups.vector_family import ScheduledCandidate, VectorFamily
from braid.targets.kernels.kernel_family import Kernel


@dataclass(frozen=True)
class ConvNarrowFamily(VectorFamily):
    """`braid.conv` of unsigned and signed bytes into i32, or bf16 into f32, in one to three dims.

    Not depthwise; with an elementwise epilogue. Layouts: channels last, padded to whole steps
    where they are not; the weight in blocks of output channels and of a step's input channels
    (`AcdB32a4b`), in pairs (`AcdB16a4b:pairs`) where that is faster and it can be. Groups have
    whole steps, and whole vectors of output channels, or several in one block where the machine has
    masks for such numbers.
    """

    name: str = "conv-narrow"
    version: int = 20
    anchors: ClassVar = (ConvOp,)

    def match(self, group: FusedOp) -> "_Convolution | None":
        """One convolution of block arguments, the rest elementwise on its result."""
        found = match_convolution(group, narrow=True)
        if found is None or found.is_depthwise:
            return None
        lanes = self.unit.lanes
        arithmetic = narrow_arithmetic(found.input, found.weight, self.machine, lanes)
        if arithmetic is None:
            return None
        whole = found.columns % lanes == 0
        whole = whole or (found.columns > 1 and has_masks(self.machine, lanes))
        if found.groups > 1 and (found.depth % arithmetic.group or not whole):
            return None
        in_pairs = None
        if found.groups == 1 and PAIRABLE in found.op.attributes:
            in_pairs = BytePairArithmetic.on(self.machine, lanes)
        return _Convolution(group, self.unit, found, arithmetic, in_pairs)


@dataclass(frozen=True, eq=False)
class _Convolution(ScheduledCandidate[TileSchedule]):
    found: ConvMatch
    arithmetic: NarrowArithmetic
    in_pairs: BytePairArithmetic | None

    def choices(self) -> Sequence[LayoutChoice]:
        """Channels last, with blocks of output channels from best to worst; pairs come first."""
        known = [each for each in (self.in_pairs, self.arithmetic) if each is not None]
        choices = [
            self._choice(arithmetic, block)
            for arithmetic in known
            for block in self._blocks(arithmetic)
        ]
        return [choice for choice in choices if self._takes(choice)]

    def takes_strides(self, choice: LayoutChoice) -> bool:
        """Unless vectors would not be contiguous; the weight is on its own."""
        if choice.operands[self.found.weight.index].strides is not None:
            return False
        return results_alike(choice) and self._takes(choice)

    def space(self, level: int) -> Iterator[TileSchedule]:
        """Tiles that fit the block of output channels, by predicted time."""
        problem = self._problem(stored_choice(self.group))
        b_bytes = math.prod(shape_of(self.found.weight))
        vectors = self._vectors(problem.choice)
        yield from tiling.schedules(self._size(problem), vectors, self.unit, b_bytes, level)

    def seconds(self, choice: LayoutChoice) -> float:
        """Time of the best tile, or of memory where that is slower."""
        return self._best_tile(self._problem(choice), self.moved_bytes(choice))

    def emit(self, symbol: str, schedule: TileSchedule) -> Kernel:
        """See `narrow_kernel`."""
        choice = stored_choice(self.group)
        stored = self._problem(choice)
        problem = _contraction(stored.contraction(schedule.vectors * self.unit.lanes))
        fixed = (self.group, symbol, self.unit, problem, schedule)
        return narrow_kernel(*fixed, self._of(choice), _positions(stored))

    def _of(self, choice: LayoutChoice) -> NarrowArithmetic:
        """What the products are made by."""
        in_pairs = self.in_pairs if choice.operands[self.found.weight.index].pairs else None
        return in_pairs or self.arithmetic

    def _blocks(self, arithmetic: NarrowArithmetic) -> list[int]:
        """Output channels in a block, the fastest first."""
        found, lanes = self.found, self.unit.lanes
        if found.groups > 1 and found.columns % lanes:
            return [found.columns]
        size = self._size(self._problem(self._choice(arithmetic, lanes)))
        blocks = [lanes * count for count in tiling.ranked_vectors(size, self.unit)]
        return [block for block in blocks if found.groups == 1 or found.columns % block == 0]

    def _takes(self, choice: LayoutChoice) -> bool:
        problem, block = self._problem(choice), self._block(choice)
        return takes_problem(problem.narrow, self._of(choice), _positions(problem), block)

    def _choice(self, arithmetic: NarrowArithmetic, block: int) -> LayoutChoice:
        """With so many output channels in a block."""
        in_pairs = arithmetic is self.in_pairs
        return stepped_choice(self.group, self.found, block, arithmetic.group, in_pairs)

    def _block(self, choice: LayoutChoice) -> int:
        """Output channels in a block, by the weight's layout."""
        return choice.operands[self.found.weight.index].block(0)

    def _vectors(self, choice: LayoutChoice) -> Sequence[int]:
        """Vectors per tile: those of a block; any where it is of all of a group."""
        count, rest = divmod(self._block(choice), self.unit.lanes)
        return VECTORS if rest else (count,)

    def _problem(self, choice: LayoutChoice) -> ConvContraction:
        arithmetic = self._of(choice)
        problem = ConvContraction(self.found, choice, self.unit.lanes, arithmetic.group)
        if isinstance(arithmetic, BytePairArithmetic | PairArithmetic):
            return problem  # blocks of rows are staged whole
        return problem.with_best_frame(lambda problem: self._best_tile(problem, 0))

    def _best_tile(self, problem: ConvContraction, moved_bytes: int) -> float:
        """Seconds of the best tile, or of memory where that is slower."""
        size, vectors = self._size(problem), self._vectors(problem.choice)
        return min(tiling.seconds(size, count, self.unit, moved_bytes) for count in vectors)

    def _size(self, problem: ConvContraction) -> tiling.ContractionSize:
        contraction, arithmetic = _contraction(problem.narrow), self._of(problem.choice)
        rows = contraction.row.extent
        return tiling.ContractionSize(
            batches=contraction.rows // rows,
            rows=rows,
            columns=contraction.columns,
            depth=contraction.depth,
            row_bytes=contraction.row.strides[0],
            packed=True,
            constants=arithmetic.constants,
            slowdown=arithmetic.slowdown,
            share=contraction.share,
            window=contraction.row_window,
        )


def _positions(problem: ConvContraction) -> Positions:
    """Of the input, as stored."""
    depth = -(-problem.match.depth // problem.step) * problem.step
    taps = math.prod(problem.match.op.windows.size)
    return Positions(depth, problem.pitch, columns_of_chunk(taps))


def _contraction(found: Contraction | None) -> Contraction:
    assert found is not None, "the family was asked for layouts it did not offer"
    return found
