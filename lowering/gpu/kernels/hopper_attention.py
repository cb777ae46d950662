"""Attention on sm_90a by `wgmma`, with tensor maps and warps that only copy."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import SSAValue

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.contraction.code import Code
from braid.lowering.gpu.contraction.schedules import shared_limit
from braid.lowering.gpu.kernels.attention import (
    AttentionCandidate,
    AttentionFamily,
)
from braid.lowering.gpu.kernels.attention_tiles.problem import AttentionPlaces
from braid.lowering.gpu.kernels.contraction_candidate import ProductEntry
from braid.lowering.gpu.kernels.hopper.attention import HopperAttention
from braid.lowering.gpu.kernels.hopper.attention_ring import AttentionBoxes
from braid.lowering.gpu.kernels.hopper.attention_tiles import LINE_ELEMENTS, AttentionTiles
from braid.lowering.gpu.launch.gpu_kernel import BlockWork
from braid.lowering.gpu.nests.placement import Placement
from braid.targets.kernels.kernel_family import Kernel, KernelFamily
from braid.targets.kernels.schedules import Schedule
from braid.targets.machines.machine import Machine

_ARCHITECTURE = "sm_90a"
_LEAST = 33
"""Queries and keys that fill tiles of 64 more than half."""
_WIDEST = 256
_CHUNK = 8
"""Elements of 16 bytes, which strides of tensor maps are multiples of."""
_SHAPES = {(128, 3): 0.8, (128, 2): 0.7, (64, 2): 0.6, (128, 1): 0.5, (64, 1): 0.4}
"""Keys and groups of tiles, and which part of the peak rate is assumed."""
_OTHER_SHAPES = 0.4
"""The share of the peak rate that is assumed for all other shapes of tiles."""
_STAGES = (4, 3, 2)
_MOST_REGISTERS = {1: 200, 2: 200, 3: 130}
"""The most registers of a thread, for scores, weights and weighted values, by groups."""


@dataclass(frozen=True)
class HopperAttentionFamily(KernelFamily):
    """`AttentionFamily` for `sm_90a`, where rows of operands begin at multiples of 16 bytes."""

    machine: Machine
    name: str = "gpu-hopper-attention"
    version: int = 2

    def match(self, group: FusedOp) -> "_HopperAttention | None":
        """Match as `AttentionFamily` does, without groups that are too small or have no tensor
        maps."""
        plain = AttentionFamily(self.machine).match(group)
        if self.machine.cpu != _ARCHITECTURE or plain is None:
            return None
        queries, keys = shape_of(plain.found.scores.output)[-2:]
        widths = (
            shape_of(plain.found.scores.operands[0])[-1],
            shape_of(plain.found.values.output)[-1],
        )
        if min(queries, keys, *widths) < _LEAST or any(width % _CHUNK for width in widths):
            return None
        made = _HopperAttention(group, self.machine, plain.found)
        return made if made.layouts and any(True for _ in made.space(0)) else None


@dataclass(frozen=True)
class HopperAttentionSchedule(Schedule):
    """A block of `groups` groups of threads takes `keys` keys at a time.

    It has `stages` tiles of keys in shared memory. With `turns`, groups alternate in multiplying.
    """

    keys: int
    groups: int
    stages: int
    turns: bool


@dataclass(frozen=True, eq=False)
class _HopperAttention(AttentionCandidate[HopperAttentionSchedule]):
    @property
    def layouts(self) -> Sequence[LayoutChoice]:
        """Layouts of the family without `wgmma` that tensor maps can read."""
        return self._readable

    @cached_property
    def _readable(self) -> list[LayoutChoice]:
        return [choice for choice in super().layouts if self._has_maps(choice)]

    def _has_maps(self, choice: LayoutChoice) -> bool:
        places = AttentionPlaces(self.found, Placement.at(self.group, choice))
        return AttentionBoxes.of(*places.contractions) is not None

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds of the default tiles."""
        slow = 1.0 if choice == self.layouts[0] else 1.001
        return slow * self._predicted(self._tiles(next(self.space(0))))

    @property
    def _rate(self) -> float:
        return self.machine.fact("tensor_bf16_flops", 989e12)

    def space(self, level: int) -> Iterator[HopperAttentionSchedule]:
        """Return the tiles that fit, by predicted time: the best two at level 0, the others at
        level 1.
        """
        found: list[HopperAttentionSchedule] = []
        for keys, groups in _SHAPES:
            own = [HopperAttentionSchedule(keys, groups, stages, False) for stages in _STAGES]
            found += [one for one in own if self._fits(self._tiles(one))][:1]
        found.sort(key=lambda own: self._predicted(self._tiles(own)))
        yield from {0: found[:2], 1: found[2:]}.get(level, [])

    def _predicted(self, tiles: AttentionTiles) -> float:
        return self.predicted(tiles.rows, self._rate * _share_of(tiles))

    def _fits(self, tiles: AttentionTiles) -> bool:
        most = _MOST_REGISTERS.get(tiles.groups, 0)
        registers = tiles.keys // 2 + tiles.keys // 4 + tiles.sums
        return tiles.shared_bytes <= shared_limit(self.machine) and registers <= most

    def _tiles(self, schedule: HopperAttentionSchedule) -> AttentionTiles:
        own = shape_of(self.found.scores.operands[0])[-1], shape_of(self.found.values.output)[-1]
        key, value = (-(-width // LINE_ELEMENTS) * LINE_ELEMENTS for width in own)
        sizes = (schedule.keys, schedule.groups, schedule.stages)
        return AttentionTiles(*sizes, turns=schedule.turns, key_width=key, value_width=value)

    def emit(self, symbol: str, schedule: HopperAttentionSchedule) -> Kernel:
        """Emit one persistent entry; with masks, another before that finds ranges of keys."""
        tiles = self._tiles(schedule)
        attention = self.attention(tiles.rows, tiles.keys, tiles.stages)
        processors = int(self.machine.fact("multiprocessors", 132))
        made = HopperAttention.of(attention, tiles, processors)
        columns = attention.scores.columns
        each = -(-attention.blocks // made.order.blocks)
        tile, turns = tiles.key_bytes + tiles.value_bytes, -(-columns // tiles.keys)
        work = BlockWork(
            2.0 * each * tiles.rows * turns * tiles.keys * (tiles.key_width + tiles.value_width),
            self._rate,
            _share_of(tiles),
            each * (tiles.query_bytes + turns * tile),
            (tiles.stages - 1) * tile,
        )
        return self.kernel(symbol, attention, self._entry(made), work)

    def _entry(self, made: HopperAttention) -> ProductEntry:
        def emit(
            code: Code, values: Mapping[SSAValue, SSAValue], name: str, rest: Sequence[SSAValue]
        ) -> None:
            scratch = rest[0] if made.plain.ranges is not None else None
            maps = rest[0 if scratch is None else 1 :]
            made.emit(code, values, name, maps, scratch)

        constants = (
            *made.plain.scores.constants,
            *made.plain.weighted.constants,
        )
        maps = made.tensor_maps(self.placement.buffers)
        tiles = made.tiles
        return ProductEntry(
            made.order.blocks, tiles.threads, tiles.shared_bytes, constants, emit, maps
        )


def _share_of(tiles: AttentionTiles) -> float:
    return _SHAPES.get((tiles.keys, tiles.groups), _OTHER_SHAPES)
