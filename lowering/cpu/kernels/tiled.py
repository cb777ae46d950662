"""Groups of several products, reductions and movements, computed tile by tile.

A tile of the result is computed by all members before the next one, as in FlashAttention (Dao et
al., NeurIPS 2022) or with TVM's `compute_at`, so that what is inside of the group exists only as
tiles in the scratch memory. How a member computes its tile is left to the other families.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.ir import BlockArgument, Operation

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.tiles.boxes import whole
from braid.analysis.tiles.tile_classes import Tiling
from braid.analysis.tiles.tile_sizes import candidates, tile_sizes
from braid.analysis.tiles.tiles import is_splat, work
from braid.dialects.braid.base import TensorOp, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.groups.layout_choices import row_major_choice
from braid.lowering.cpu.kernels.groups.traffic import moving_seconds, stored_bytes
from braid.lowering.cpu.kernels.groups.vector_family import VectorFamily
from braid.lowering.cpu.kernels.tiles.code import TileCode
from braid.lowering.cpu.kernels.tiles.function import tiled_kernel
from braid.lowering.cpu.kernels.tiles.members import compile_members
from braid.lowering.cpu.kernels.tiles.program import tile_program
from braid.passes.kernels.outline_kernels import kernel_key
from braid.targets.backends import kernel_families
from braid.targets.kernels.kernel_family import Kernel, KernelFamily, KernelRequest, Schedule
from braid.targets.machines.load import load_target


@dataclass(frozen=True)
class TiledFamily(VectorFamily):
    """Groups in which an op that is not elementwise reads what another member computed.

    One result, static shapes, row-major layouts.
    """

    target: str = "host"
    name: str = "tiled"
    _sizes: dict[str, tuple[int, ...] | None] = field(
        default_factory=dict[str, tuple[int, ...] | None], compare=False, repr=False
    )

    def accepts(self, group: FusedOp) -> bool:
        """Whether the result can be cut into tiles that are small inside."""
        return needs_tiles(group) and self._tiles(group) is not None

    def layouts(self, group: FusedOp) -> Sequence[LayoutChoice]:
        """The one choice."""
        if not self.accepts(group):
            return ()
        return [row_major_choice(group)]

    def schedules(self, group: FusedOp) -> Iterator[Schedule]:
        """The default tiles, then smaller ones, one dim at a time."""
        default = self._tiles(group)
        assert default is not None
        yield _schedule(default)
        for dim, extent in enumerate(default):
            for size in candidates(extent):
                extents = tuple(size if d == dim else n for d, n in enumerate(default))
                if _tiling(group, extents).classes() is not None:
                    yield _schedule(extents)

    def default_schedule(self, group: FusedOp) -> Schedule:
        """Tiles whose values fit a second-level cache, where the members stay efficient so."""
        return next(self.schedules(group))

    def seconds(self, group: FusedOp, choice: LayoutChoice) -> float:
        """The larger of arithmetic and memory traffic; what is inside stays in the cache."""
        operations = sum(
            2 * work(op, whole(shape_of(op.results[0])))
            for op in _members(group)
            if isinstance(op, TensorOp) and not is_view(op)
        )
        moved = moving_seconds(stored_bytes(group, choice), self.unit)
        return max(operations / (self.unit.flops / 2), moved)

    def emit(self, request: KernelRequest) -> Kernel:
        """One tile per grid iteration."""
        group = request.group
        schedule = self.schedule_of(request)
        extents = [schedule[f"tile{dim}"] for dim in range(len(schedule))]
        classes = _tiling(group, extents).classes()
        assert classes is not None, "the schedule is not one of those offered"
        families = self._inner_families()
        codes: list[TileCode] = []
        for number, tiles in enumerate(classes):
            program = tile_program(tiles.tile)
            prefix = f"tile{number}_"
            members = compile_members(program.module, families, self.target, prefix)
            codes.append(TileCode(tiles, program.inputs, program.output, members))
        return tiled_kernel(request, self.unit, codes)

    def _inner_families(self) -> list[KernelFamily]:
        families = kernel_families(load_target(self.target).host_device.backend)
        return [family for family in families if not isinstance(family, TiledFamily)]

    def _tiles(self, group: FusedOp) -> tuple[int, ...] | None:
        """The default extents of tiles, searched once for equal groups."""
        key = kernel_key(group)
        if key not in self._sizes:
            found = tile_sizes(_members(group), group.terminator.arguments[0])
            possible = found is not None and _tiling(group, found).classes() is not None
            self._sizes[key] = found if possible else None
        return self._sizes[key]


def needs_tiles(group: FusedOp) -> bool:
    """Whether more than elementwise ops read what is computed inside of the group."""
    if len(group.outputs) != 1 or isinstance(group.terminator.arguments[0], BlockArgument):
        return False
    return any(
        isinstance(operand.owner, Operation)
        and not isinstance(operand.owner, ConstantOp)
        and not isinstance(op, ElementwiseOp)
        and not is_view(op)
        for op in _members(group)
        for operand in op.operands
    ) and all(
        isinstance(operand, BlockArgument)
        or not isinstance(operand.owner, ConstantOp)
        or is_splat(operand)
        for op in _members(group)
        for operand in op.operands
    )


def _members(group: FusedOp) -> list[Operation]:
    """The ops that compute: constants are part of those that read them."""
    ops = group.body.block.ops
    return [op for op in ops if op is not group.terminator and not isinstance(op, ConstantOp)]


def _tiling(group: FusedOp, extents: Sequence[int]) -> Tiling:
    return Tiling(tuple(_members(group)), group.terminator.arguments[0], tuple(extents))


def _schedule(extents: Sequence[int]) -> Schedule:
    return {f"tile{dim}": extent for dim, extent in enumerate(extents)}
