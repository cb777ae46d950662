"""Convolution with windows of 3 × 3 by Winograd's algorithms, with an elementwise epilogue.

Windows of volumes, 3 × 3 in each plane, are sums over the windows of their planes.

F(4 × 4, 3 × 3) takes a quarter of the products of a direct convolution and F(2 × 2, 3 × 3) 4/9,
for sums that cancel: results differ more from the exact ones (see docs/numerics.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from xdsl.dialects.builtin import f32

from braid.analysis.nests.convolution import Convolution, convolution
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.nests.winograd import WinogradNest, winograd_nest
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.winograd import TRANSFORMS, WINDOW
from braid.lowering.cpu.kernels.contraction.microkernel import VECTORS, Tile, feasible_tiles
from braid.lowering.cpu.kernels.groups.layout_choices import (
    packed_weight,
    results_alike,
    uniform_choice,
)
from braid.lowering.cpu.kernels.groups.vector_family import ScheduledCandidate, SizedFamily
from braid.lowering.cpu.kernels.winograd.size import WinogradSize, best_seconds
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.math.points import has_code
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule

_RANKS = (4, 5)
"""Dims of images and volumes of several channels."""

_UNROLLED_PRODUCTS, _MOST_UNROLLED = 16, 128
"""Multiply-adds in the loop body of products; steps beyond which code grows and nothing else. In a
body of two steps LLVM addresses A by an index beside its base: tiles of 16 x 1 took 1.1 times as
long."""


@dataclass(frozen=True)
class ConvWinogradFamily(SizedFamily):
    """`braid.conv` of f32 images: 3 × 3, stride 1, one group, unpadded, with an epilogue.

    Or of volumes, with any number of planes and any stride from one to the next.

    Layouts: channels last; the weight transformed, in blocks of output channels
    (`Acdb16a:winograd4`), so that it has to be known at compile time.
    """

    name: str = "conv-winograd"
    version: int = 12
    anchors: ClassVar = (ConvOp,)
    is_approximate: ClassVar[bool] = True

    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> "_Convolution | None":
        """Match one convolution of block arguments, the rest elementwise on its result."""
        found = convolution(group, is_open=extents_of is not shape_of)
        if found is None or element_type_of(found.op.output) != f32 or not has_code(found.points):
            return None
        if found.rank not in _RANKS or found.groups > 1:
            return None
        windows = found.windows
        if {*windows.size[-2:]} != {WINDOW}:
            return None
        if {*windows.strides[-2:], *windows.dilations[-2:]} != {1}:
            return None
        return _Convolution(group, self.unit, found, extents_of)


@dataclass(frozen=True)
class WinogradSchedule(Schedule):
    """A block of `tiles` tiles of the result, whose products are cut into register tiles.

    These have `rows` of its rows and, of the steps of the reduction, `unroll` in the loop body.
    Output channels are in `parts` parts of the grid.
    """

    tiles: int
    rows: int
    unroll: int
    parts: int


@dataclass(frozen=True, eq=False)
class _Convolution(ScheduledCandidate[WinogradSchedule]):
    found: Convolution
    extents_of: ExtentsOf = shape_of

    def choices(self) -> Sequence[LayoutChoice]:
        """Return the layouts of both algorithms with their best blocks of output channels, the
        fastest first.
        """
        found = [self._choice(self._best_vectors(results), results) for results in TRANSFORMS]
        return sorted(found, key=self.seconds)

    def supports_strides(self, choice: LayoutChoice) -> bool:
        """Return whether vectors are contiguous; the weight is on its own."""
        if choice.operands[self.found.right.index].strides is not None:
            return False
        return results_alike(choice) and self.supports_open_layout(choice)

    def supports_open_layout(self, choice: LayoutChoice) -> bool:
        """Return where vectors are contiguous, and there is a transformed weight."""
        is_transformed = choice.operands[self.found.right.index].winograd > 0
        return is_transformed and self._found_nest(choice) is not None

    def space(self, level: int) -> Iterator[WinogradSchedule]:
        """Return the blocks of tiles and register tiles, by predicted time."""
        size, vectors = self._size, self._vectors(stored_choice(self.group))
        ranked = sorted(
            size.blocks(vectors, self.unit),
            key=lambda block: size.seconds(*block, vectors, self.unit),
        )
        for place, (tiles, rows) in enumerate(ranked):
            if level == sum(place >= count for count in (3, 10)):
                unroll = max(1, _UNROLLED_PRODUCTS // (rows * vectors))
                parts = size.parts(tiles, vectors, self.unit.lanes)
                yield WinogradSchedule(tiles, rows, unroll, parts)

    def supports_schedule(self, schedule: WinogradSchedule) -> bool:
        """Take any block of tiles, with a register tile that fits."""
        if min(schedule.parts, schedule.rows, schedule.tiles, schedule.unroll) < 1:
            return False
        size, vectors = self._size, self._vectors(stored_choice(self.group))
        blocks = -(-size.outputs // (vectors * self.unit.lanes))
        fits = (schedule.rows, vectors) in feasible_tiles(self.unit)
        fits = fits and schedule.unroll <= _MOST_UNROLLED and schedule.tiles <= size.tiles
        return fits and blocks % schedule.parts == 0

    def seconds(self, choice: LayoutChoice) -> float:
        """Time of the best block, or of memory where that is slower."""
        size, vectors = WinogradSize.of(self._nest(choice)), self._vectors(choice)
        best = best_seconds(size, vectors, self.unit)
        return max(best, self.moving_seconds(choice))

    def emit(self, symbol: str, schedule: WinogradSchedule) -> Kernel:
        """Return a block of tiles per grid iteration."""
        # Imported where kernels are emitted: families are asked in every compilation.
        from braid.lowering.cpu.kernels.winograd.kernel import WinogradKernel

        nest, vectors = self._stored, self._vectors(stored_choice(self.group))
        tile = Tile(schedule.rows, vectors, schedule.unroll)
        kernel = WinogradKernel(nest, schedule.tiles, tile, schedule.parts, self.unit.lanes)
        body, in_place = kernel.iteration, nest.in_place
        return grid_kernel(
            self.group,
            symbol,
            self.unit,
            kernel.grid,
            body,
            in_place,
            kernel.scratch_bytes,
            prepared=kernel.prepared,
        )

    @cached_property
    def _stored(self) -> WinogradNest:
        return self._nest(stored_choice(self.group))

    @cached_property
    def _size(self) -> WinogradSize:
        return WinogradSize.of(self._stored)

    def _best_vectors(self, results: int) -> int:
        return min(VECTORS, key=lambda vectors: self.seconds(self._choice(vectors, results)))

    def _choice(self, vectors: int, results: int) -> LayoutChoice:
        rank = self.found.rank
        last = Layout.channels_last(rank)
        packed = packed_weight(rank, vectors * self.unit.lanes)
        weight = Layout.parse(f"{packed.tag}:winograd{results}")
        fixed = {self.found.left.index: last, self.found.right.index: weight}
        return uniform_choice(self.group, last, fixed)

    def _vectors(self, choice: LayoutChoice) -> int:
        return choice.operands[self.found.right.index].block(0) // self.unit.lanes

    def _nest(self, choice: LayoutChoice) -> WinogradNest:
        found = self._found_nest(choice)
        assert found is not None, "the family was asked for layouts it did not offer"
        return found

    def _found_nest(self, choice: LayoutChoice) -> WinogradNest | None:
        return winograd_nest(self.found, choice, self.unit.lanes, self.extents_of)
