"""Groups of several products, reductions and movements, computed tile by tile.

A tile of the result is computed by all members before the next one, as in FlashAttention (Dao et
al., NeurIPS 2022) or with TVM's `compute_at`, so intermediate values of the group exist only as
tiles in the scratch memory. How a member computes its tile is left to the other families.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import TypeGuard

from xdsl.ir import BlockArgument, Operation, SSAValue

from braid.analysis.nests.matmul import matrix_product
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import Strides, stored_choice
from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.tiles.tile_classes import Tiling
from braid.analysis.tiles.tile_sizes import candidates, tile_sizes
from braid.analysis.tiles.tiles import is_splat, work
from braid.dialects.braid.base import TensorOp, element_type_of, shape_of
from braid.dialects.braid.boxes import whole
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.indexing import GatherBase, slab_rank
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.groups.layout_choices import row_major_choice
from braid.lowering.cpu.kernels.groups.vector_family import ScheduledCandidate, VectorFamily
from braid.lowering.emit.math.points import has_code
from braid.targets.kernels.kernel_family import Kernel, KernelFamily
from braid.targets.kernels.keys import stored_text
from braid.targets.kernels.schedules import Schedule
from braid.targets.machines.machine import Machine

_MOST_SCORES_APART = 4.0
"""Scores of an attention for each number of its values up to which three kernels take less time …

On Zen 5, 8 heads of 64, 2,048 keys and 1, 16, 64, 256, and as many queries: 0.30, 0.53, 0.86, 1.04
and 1.15 of the time of one kernel.
"""

_FIRST_CACHE = 48 * 1024
"""… where the values of a head leave the first cache: up to 128 keys, one kernel takes 0.92 to 0.95
of the time of three, with 197 keys and queries 1.03 to 1.08."""

_MOST_BYTES_APART = 2 * 1024 * 1024
"""Scores of an attention from which on one kernel takes less time, unless queries are few: they
go through the last cache or memory three times. On Zen 5, 197 of both, heads of 64, 1.9, 3.7, 7.5
and 15 MB: 0.99, 0.95, 0.90 to 0.96 and 0.83 of the time of three; 128 of both, 128 wide, 12 MB:
0.72, where 64 to 128 queries of 577 to 1,024 keys take 1.03 to 1.13."""

_FEW = 4
"""Keys for each query from which on queries are few, whatever their scores take."""


@dataclass(frozen=True)
class TiledFamily(VectorFamily):
    """Groups in which an op that is not elementwise reads what another member computed.

    One result, static shapes, row-major layouts. The members' kernels are those of `inner`.
    """

    inner: tuple[KernelFamily, ...] = ()
    name: str = "tiled"
    own_version: int = 2
    version: int = field(init=False)
    _sizes: dict[str, tuple[int, ...] | None] = field(
        default_factory=dict[str, tuple[int, ...] | None], compare=False, repr=False
    )

    def __post_init__(self) -> None:
        """Raise the version with that of any inner family, whose code is in the kernels."""
        version = self.own_version + sum(family.version for family in self.inner)
        object.__setattr__(self, "version", version)

    def match(self, group: FusedOp) -> "_Tiles | None":
        """Return a result that can be cut into tiles that are small inside."""
        members = tuple(_members(group))
        if not _needs_tiles(group, members) or any(map(_reads_slabs, members)):
            return None
        alone = matrix_product(group)  # It converts its operand.
        if alone is not None and has_code(alone.points):
            return None
        extents = self._extents(group, members)
        if extents is None:
            return None
        return _Tiles(group, self.unit, members, extents, self.inner, self.machine)

    def rejects_fusion(self, group: FusedOp) -> bool:
        """Return whether all attentions have few queries, few keys or one head.

        Separate kernels then read keys and values, or queries, faster than tiles do.
        """
        last = [op for op in group.body.block.ops if _is_weighted_sum(op)]
        return bool(last) and all(
            _has_few_queries(op) or _has_few_keys(op) or _is_one_matrix(op) for op in last
        )

    def _extents(self, group: FusedOp, members: tuple[Operation, ...]) -> tuple[int, ...] | None:
        """Return the default extents of tiles, searched once for equal groups."""
        key = stored_text(group)
        if key not in self._sizes:
            result = group.terminator.arguments[0]
            found = tile_sizes(members, result, cache=self.unit.cache_bytes)
            possible = found is not None and Tiling(members, result, found).classes() is not None
            self._sizes[key] = found if possible else None
        return self._sizes[key]


@dataclass(frozen=True)
class TiledSchedule(Schedule):
    """The elements of a `tile` of the result along each of its dims."""

    tile: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Tiles(ScheduledCandidate[TiledSchedule]):
    """`members` are the ops that compute, `extents` those of the default tiles."""

    members: tuple[Operation, ...]
    extents: tuple[int, ...]
    inner: tuple[KernelFamily, ...]
    machine: Machine

    def choices(self) -> Sequence[LayoutChoice]:
        """Return the one choice."""
        return [row_major_choice(self.group)]

    def space(self, level: int) -> Iterator[TiledSchedule]:
        """Return tiles whose values fit an L2 cache, where the members stay efficient; then smaller
        ones, first along one dim, and then along two.
        """
        if level == 0:
            yield TiledSchedule(self.extents)
        dims = range(len(self.extents))
        for chosen in combinations(dims, level) if level in (1, 2) else ():
            for sizes in product(*(candidates(self.extents[dim]) for dim in chosen)):
                smaller = dict(zip(chosen, sizes, strict=True))
                if any(smaller[dim] >= self.extents[dim] for dim in chosen):
                    continue
                extents = tuple(smaller.get(dim, self.extents[dim]) for dim in dims)
                if self._tiling(extents).classes() is not None:
                    yield TiledSchedule(extents)

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the larger of arithmetic and memory traffic; intermediate values stay in the
        cache."""
        operations = sum(
            2 * work(op, whole(shape_of(op.results[0])))
            for op in self.members
            if isinstance(op, TensorOp) and not is_view(op)
        )
        moved = self.moving_seconds(choice)
        return max(operations / (self.unit.flops / 2), moved)

    def emit(self, symbol: str, schedule: TiledSchedule) -> Kernel:
        """Emit one tile per grid iteration."""
        # Imported where kernels are emitted: families are asked in every compilation.
        from braid.lowering.cpu.kernels.tiles.code import TileCode
        from braid.lowering.cpu.kernels.tiles.function import tiled_kernel
        from braid.lowering.cpu.kernels.tiles.members import compile_members
        from braid.lowering.cpu.kernels.tiles.program import tile_program

        classes = self._tiling(schedule.tile).classes()
        assert classes is not None, "the schedule is not one of those offered"
        strides = self._strides()
        codes: list[TileCode] = []
        for number, tiles in enumerate(classes):
            program = tile_program(tiles.tile, strides)
            members = compile_members(program.module, self.inner, self.machine, f"tile{number}_")
            codes.append(TileCode(tiles, program.inputs, program.output, members))
        return tiled_kernel(self.group, symbol, self.unit, codes)

    def supports_strides(self, choice: LayoutChoice) -> bool:
        """Return True: tiles whose elements are not contiguous are copied."""
        return True

    def _strides(self) -> dict[SSAValue, Strides]:
        """Return the strides of what the group's body reads from outside, and of its result."""
        block, stored = self.group.body.block, stored_choice(self.group)
        values = (*block.args, *self.group.terminator.arguments)
        layouts = zip(values, (*stored.operands, *stored.results), strict=True)
        return {v: layout.storage_strides(shape_of(v)) for v, layout in layouts}

    def _tiling(self, extents: Sequence[int]) -> Tiling:
        return Tiling(self.members, self.group.terminator.arguments[0], tuple(extents))


def _is_weighted_sum(op: Operation) -> TypeGuard[MatmulOp]:
    """Return whether `op` is the last product of an attention."""
    if not isinstance(op, MatmulOp):
        return False
    weights = op.lhs
    while isinstance(weights.owner, Operation) and is_view(weights.owner):
        weights = weights.owner.operands[0]
    return isinstance(weights.owner, SoftmaxOp)


def _has_few_queries(op: MatmulOp) -> bool:
    scores, values = shape_of(op.lhs), shape_of(op.rhs)
    head = math.prod(values[-2:]) * bytes_of(element_type_of(op.rhs))
    if head <= _FIRST_CACHE or math.prod(scores) > _MOST_SCORES_APART * math.prod(values):
        return False
    bytes = math.prod(scores) * bytes_of(element_type_of(op.lhs))
    return bytes <= _MOST_BYTES_APART or scores[-1] >= _FEW * scores[-2]


def _has_few_keys(op: MatmulOp) -> bool:
    """Return whether there are no more scores than elements of the result.

    On Zen 3 one kernel takes 1.17 to 1.3 times as long as several for 577 queries of 16 keys, 48
    wide, and 1.01 to 1.18 times as long for 33 queries of 33 keys, 40 to 80 wide.
    """
    scores, values = shape_of(op.lhs), shape_of(op.rhs)
    bytes = math.prod(scores) * bytes_of(element_type_of(op.lhs))
    return scores[-1] <= values[-1] and bytes <= _MOST_BYTES_APART


def _is_one_matrix(op: MatmulOp) -> bool:
    """Return whether there is one head with few scores.

    One kernel takes 1.02 to 1.13 times as long as three on Zen 3, for 100 to 1,024 queries of 100
    to 512 keys; with several heads as large it takes 0.93 to 1.1.
    """
    scores = shape_of(op.lhs)
    bytes = math.prod(scores) * bytes_of(element_type_of(op.lhs))
    return math.prod(scores[:-2]) == 1 and bytes <= _MOST_BYTES_APART


def _reads_slabs(op: Operation) -> bool:
    """Return whether `op` gathers matrices from outside: every tile would copy all of the table."""
    if not isinstance(op, GatherBase) or not isinstance(op.data, BlockArgument):
        return False
    return (slab_rank(op.output) or 0) > 1


def _needs_tiles(group: FusedOp, members: Sequence[Operation]) -> bool:
    """Return whether more than elementwise ops read intermediate values of the group."""
    if len(group.outputs) != 1 or isinstance(group.terminator.arguments[0], BlockArgument):
        return False
    return any(
        isinstance(operand.owner, Operation)
        and not isinstance(operand.owner, ConstantOp)
        and not isinstance(op, ElementwiseOp)
        and not is_view(op)
        for op in members
        for operand in op.operands
    ) and all(
        isinstance(operand, BlockArgument)
        or not isinstance(operand.owner, ConstantOp)
        or is_splat(operand)
        for op in members
        for operand in op.operands
    )


def _members(group: FusedOp) -> list[Operation]:
    """Return the ops that compute: constants are part of those that read them."""
    ops = group.body.block.ops
    return [op for op in ops if op is not group.terminator and not isinstance(op, ConstantOp)]
