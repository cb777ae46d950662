"""Attention: softmax of scores, scaled and masked, times values; scores are never stored.

If masks leave out keys, another entry first finds the tiles of keys that each block needs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from xdsl.ir import BlockArgument, SSAValue

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.contraction.code import Code
from braid.lowering.gpu.contraction.problem import ElementKind
from braid.lowering.gpu.contraction.schedules import mma_rate, shared_limit
from braid.lowering.gpu.contraction.tiles import Tiles
from braid.lowering.gpu.kernels.attention_tiles.kernel import Attention
from braid.lowering.gpu.kernels.attention_tiles.problem import (
    AttentionMatch,
    AttentionPlaces,
    match_attention,
    without_roundings,
)
from braid.lowering.gpu.kernels.attention_tiles.single_rows import emit_single_rows
from braid.lowering.gpu.kernels.contraction_candidate import (
    ProductEntry,
    kernel_of_entries,
)
from braid.lowering.gpu.launch.aligned_entries import is_aligned
from braid.lowering.gpu.launch.gpu_kernel import BlockWork
from braid.lowering.gpu.launch.launches import THREADS
from braid.lowering.gpu.nests.placement import Placement
from braid.targets.kernels.kernel_family import Candidate, Kernel, KernelFamily, S
from braid.targets.kernels.schedules import Schedule
from braid.targets.machines.machine import Machine

_WIDTHS = (64, 128, 256)
"""Elements of a head that tiles have."""
_SHAPES = ((128, 64, 2), (64, 64, 2), (64, 32, 2), (64, 64, 1), (64, 32, 1))
"""Queries of a block, keys of a tile, and tiles that are in shared memory; the preferred first."""
_WARP_ROWS = 16
_IN_FLIGHT = 4096
"""Bytes of masks that a block reads at once."""
_PROCESSORS = 108
"""The multiprocessors of a GPU, where no fact gives their number."""
_RATE = 0.5
"""The fraction of the peak rate that is assumed to be reached."""


@dataclass(frozen=True)
class AttentionFamily(KernelFamily):
    """Two `braid.matmul` of bf16 or f16 with a softmax between, and anything elementwise around.

    Scales and masks of any form are elementwise on scores. Keys that several heads share are
    operands with fewer heads. Heads have up to 256 elements.
    """

    machine: Machine
    name: str = "gpu-attention"
    version: int = 4

    def match(self, group: FusedOp) -> "BlockAttention | None":
        """See `match_attention`."""
        found = match_attention(group)
        if found is None:
            return None
        widths = shape_of(found.scores.operands[0])[-1], shape_of(found.values.output)[-1]
        if max(widths) > _WIDTHS[-1] or shape_of(found.scores.output)[-1] < 2:
            return None
        return BlockAttention(group, self.machine, found)


@dataclass(frozen=True, eq=False)
class AttentionCandidate(Candidate[S]):
    """A candidate whose kernel is an `Attention`, by schedules of class `S`."""

    group: FusedOp
    machine: Machine
    found: AttentionMatch

    @property
    def layouts(self) -> Sequence[LayoutChoice]:
        """Row-major, keys also transposed, as they mostly are made, or all with heads in tokens."""
        keys = self.found.scores.operands[1]
        assert isinstance(keys, BlockArgument)
        plain = [Layout.row_major(len(shape_of(value))) for value in self.group.inputs]
        results = tuple(Layout.row_major(len(shape_of(v))) for v in self.group.outputs)
        letters = plain[keys.index].tag
        turned = list(plain)
        turned[keys.index] = Layout.parse(letters[:-2] + letters[-1] + letters[-2])
        choices = [LayoutChoice(tuple(plain), results)]
        if keys.uses.get_length() == 1:
            choices.append(LayoutChoice(tuple(turned), results))
        return [*choices, *self._with_heads_inside(choices[0])]

    def _with_heads_inside(self, plain: LayoutChoice) -> Iterator[LayoutChoice]:
        """Return layouts with heads inside, as products with weights make and read them."""
        queries, keys = self.found.scores.operands
        values = self.found.values.operands[1]
        arguments: dict[SSAValue, int] = {
            v: v.index for v in (queries, keys, values) if isinstance(v, BlockArgument)
        }
        letters = plain.results[0].tag
        if len(arguments) < 3 or len(letters) < 3:
            return
        *batch, heads, tokens, width = letters
        inside = Layout.parse("".join((*batch, tokens, heads, width)))
        turned = Layout.parse("".join((*batch, width, heads, tokens)))
        operands = list(plain.operands)
        for value, layout in ((queries, inside), (keys, turned), (values, inside)):
            operands[arguments[value]] = layout
        yield LayoutChoice(tuple(operands), tuple(inside for _ in plain.results))

    def predicted(self, rows: int, rate: float) -> float:
        """Return the seconds of whole waves of blocks of `queries` queries, at a rate, or of the
        memory.
        """
        *batches, queries, keys = shape_of(self.found.scores.output)
        widths = (
            shape_of(self.found.scores.operands[0])[-1] + shape_of(self.found.values.output)[-1]
        )
        processors = int(self.machine.fact("multiprocessors", _PROCESSORS))
        waves = -(-prod(batches) * -(-queries // rows) // processors)
        values = (*self.group.inputs, *self.group.outputs)
        moved = sum(storage_bytes(value.type) for value in values)
        return max(
            2 * waves * processors * rows * keys * widths / rate,
            moved / self.machine.fact("memory_bandwidth", 2e12),
        )

    @property
    def widths(self) -> tuple[int, int]:
        """Elements of a key and of a value, as tiles have them."""
        own = shape_of(self.found.scores.operands[0])[-1], shape_of(self.found.values.output)[-1]
        first, second = (next(w for w in _WIDTHS if w >= width) for width in own)
        return first, second

    def kernel(
        self, symbol: str, attention: Attention, entry: ProductEntry, work: BlockWork
    ) -> Kernel:
        """Return the kernel of an entry, after one that reads the masks if they leave out keys."""
        placement, scores, weighted = self.placement, attention.scores, attention.weighted
        read = [leaf.buffer for leaf in scores.epilogue.leaves]
        read += [scores.problem.a.value, scores.problem.b.value]
        entries, looking, scratch = [entry], (), 0
        if (ranges := attention.ranges) is not None:
            before = ProductEntry(
                ranges.blocks,
                THREADS,
                ranges.shared_bytes,
                scores.constants,
                lambda code, values, name, rest: ranges.emit(code, values, name, *rest),
            )
            entries.insert(0, before)
            looking = (BlockWork(0.0, work.rate, 1.0, ranges.read_bytes, _IN_FLIGHT),)
            scratch = ranges.bytes
        made = kernel_of_entries(
            entries,
            placement.buffers,
            symbol,
            self.group,
            self.machine,
            scratch,
            weighted.in_place(placement.buffers, read),
        )
        without_roundings(made.module)
        return replace(made, work=(*looking, work))

    def attention(self, rows: int, keys: int, stages: int) -> Attention:
        """Return both products by tiles of this many rows and keys."""
        key, value = self.widths
        tiles = (
            Tiles(rows, keys, 2 * key, 1, _WARP_ROWS, keys),
            Tiles(rows, value, 2 * keys, 1, _WARP_ROWS, value),
        )
        places = AttentionPlaces(self.found, self.placement)
        return Attention(*places.products(tiles), stages)

    @cached_property
    def placement(self) -> Placement:
        """Where the tensors of the group lie."""
        return Placement.of(self.group)


@dataclass(frozen=True)
class AttentionSchedule(Schedule):
    """A block of `rows` queries takes `keys` keys at a time, with `stages` such tiles in memory."""

    rows: int
    keys: int
    stages: int


@dataclass(frozen=True, eq=False)
class BlockAttention(AttentionCandidate[AttentionSchedule]):
    """An attention by tiles of `mma.sync`."""

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds of the default tiles."""
        slow = 1.0 if choice == self.layouts[0] else 1.001
        rows = next(self.space(0)).rows
        return slow * self.predicted(rows, mma_rate(ElementKind.BF16, self.machine) * _RATE)

    def space(self, level: int) -> Iterator[AttentionSchedule]:
        """Return the shapes of tiles that fit shared memory: the preferred at level 0, the others
        at 1.
        """
        fitting = [
            AttentionSchedule(rows, keys, stages)
            for rows, keys, stages in _SHAPES
            if self._bytes(rows, keys, stages) <= shared_limit(self.machine)
            and (rows == _SHAPES[-1][0] or max(self.widths) < _WIDTHS[-1])
        ]
        yield from {0: fitting[:1], 1: fitting[1:]}.get(level, [])

    def emit(self, symbol: str, schedule: AttentionSchedule) -> Kernel:
        """Emit one entry, whose blocks take some queries of a head; with masks, a preceding entry
        finds their ranges.
        """
        attention = self.attention(schedule.rows, schedule.keys, schedule.stages)
        work = self._work(schedule, attention.scores.columns)
        return self.kernel(symbol, attention, _entry(attention), work)

    def _bytes(self, rows: int, keys: int, stages: int) -> int:
        """Return the bytes of shared memory of a block."""
        key, value = self.widths
        staged = rows * Tiles(rows, value, 0, 0, _WARP_ROWS, value).staged_pitch
        return max(2 * (rows * key + stages * keys * (key + value)), staged)

    def _work(self, schedule: AttentionSchedule, columns: int) -> BlockWork:
        """Return the work of a block, over this many keys."""
        rows, keys = schedule.rows, schedule.keys
        key, value = self.widths
        tiles, tile = -(-columns // keys), 2 * keys * (key + value)
        return BlockWork(
            2.0 * rows * tiles * keys * (key + value),
            mma_rate(ElementKind.BF16, self.machine),
            _RATE,
            2 * rows * key + tiles * tile,
            max(1, schedule.stages - 1) * tile,
        )


def _entry(attention: Attention) -> ProductEntry:
    """Emit all tiles of a block, or rows one by one where operands are not aligned."""

    def emit(
        code: Code, values: Mapping[SSAValue, SSAValue], name: str, rest: Sequence[SSAValue]
    ) -> None:
        code.choose(
            is_aligned(code.builder),
            lambda own: attention.emit(own, values, name, *rest),
            lambda own: emit_single_rows(own, attention, values, name, attention.place(own)),
        )

    return ProductEntry(
        attention.blocks,
        attention.threads,
        attention.shared_bytes,
        (*attention.scores.constants, *attention.weighted.constants),
        emit,
    )
