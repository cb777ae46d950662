"""Matrix products on sm_90a by `wgmma`, with tensor maps and warps that only copy."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.ir import SSAValue

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.contraction.code import Code
from braid.lowering.gpu.contraction.kernel import Product
from braid.lowering.gpu.contraction.problem import Contraction, ElementKind
from braid.lowering.gpu.contraction.tiles import Tiles
from braid.lowering.gpu.kernels.contraction_candidate import (
    ProductCandidate,
    ProductEntry,
    TiledProduct,
    kernel_of_entries,
    totals_entry,
)
from braid.lowering.gpu.kernels.gemm import GemmFamily
from braid.lowering.gpu.kernels.hopper.maps import operand_boxes
from braid.lowering.gpu.kernels.hopper.product import HopperProduct
from braid.lowering.gpu.kernels.hopper.schedules import HopperCost
from braid.lowering.gpu.kernels.hopper.tiles import LINE, HopperTiles
from braid.lowering.gpu.launch.gpu_kernel import BlockWork
from braid.lowering.gpu.nests.placement import Placement
from braid.targets.kernels.kernel_family import Kernel, KernelFamily
from braid.targets.machines.machine import Machine

_ARCHITECTURE = "sm_90a"
_WITHOUT = (ElementKind.F32, ElementKind.TF32)
LEAST = 33
"""Rows, columns and K of products that fill tiles of 64 more than half."""
_LEAST_ROWS = 1
"""The least rows of a product; below, reading weights takes most of the time."""
_CHUNK = 16
"""Bytes that lines of operands and results are multiples of."""
_LESS = 0.99
_PLAIN_TILES = Tiles(64, 64, 64, 3, 32, 32)
"""The tiles for questions about a product before its own tiles are known."""


@dataclass(frozen=True)
class HopperGemmFamily(KernelFamily):
    """`braid.matmul` of 16-bit floats or bytes, with an elementwise epilogue, batched or not.

    For `sm_90a`, where rows of operands begin at multiples of 16 bytes.
    """

    machine: Machine
    name: str = "gpu-hopper-gemm"
    version: int = 3

    def match(self, group: FusedOp) -> "HopperGemmCandidate | None":
        """Match as `GemmFamily` does, without f32 and groups that are too small."""
        plain = GemmFamily(self.machine).match(group)
        return None if plain is None else hopper_candidate(plain, _LEAST_ROWS)


def hopper_candidate(plain: TiledProduct, least_rows: int) -> "HopperGemmCandidate | None":
    """Return the kernel of `plain` by `wgmma`; None if that, or tensor maps, cannot read its
    operands.
    """
    kind, (_, rows, columns, depth) = plain.found.kind, plain.extents()
    if plain.machine.cpu != _ARCHITECTURE or kind in _WITHOUT:
        return None
    if rows < least_rows or min(columns, depth) < LEAST:
        return None
    element = 1 if kind is ElementKind.S8 else 2
    if depth * element % _CHUNK or columns * element % _CHUNK:
        return None
    made = HopperGemmCandidate(plain.group, plain.machine, plain.found, plain)
    return made if made.layouts else None


@dataclass(frozen=True, eq=False)
class HopperGemmCandidate(ProductCandidate[HopperTiles]):
    """A product, or the ops that `plain` recognizes as one, by tiles of `wgmma`."""

    plain: TiledProduct

    @property
    def layouts(self) -> Sequence[LayoutChoice]:
        """Layouts of the family without `wgmma` that tensor maps can read, and `wgmma` if bytes."""
        return self._readable

    @cached_property
    def _readable(self) -> list[LayoutChoice]:
        offered = self.plain.layouts[: 1 if self.found.kind is ElementKind.S8 else None]
        return [choice for choice in offered if self._has_maps(choice)]

    def _has_maps(self, choice: LayoutChoice) -> bool:
        placement = Placement.at(self.group, choice)
        order = placement.results[0].layout
        problem = Contraction.of(self.found.op, placement.operands, order)
        return operand_boxes(problem, LINE) is not None

    def supports_strides(self, choice: LayoutChoice) -> bool:
        """Take no strides: tensor maps are of whole tensors."""
        return False

    def copied(self, layouts: Sequence[Layout]) -> tuple[int, int]:
        """Return the contiguous bytes of the family without `wgmma`."""
        return self.plain.copied(layouts)

    def extents(self) -> tuple[int, int, int, int]:
        """Return the extents of the product."""
        return self.plain.extents()

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds of the default tiles, and less than by `mma.sync`, whose prediction
        has no latencies.

        Measured, it was slower wherever both take a product: 9.1 to 5.4 µs at 16 by 768 by 768.
        """
        slow = 1.0 if choice == self.layouts[0] else 1.01
        own = slow * self._cost.seconds(self._tiles[0])
        return min(own, _LESS * self.plain.seconds(choice))

    def space(self, level: int) -> Iterator[HopperTiles]:
        """Return the tiles by predicted time: the best two at level 0, the others at level 1."""
        yield from {0: self._tiles[:2], 1: self._tiles[2:]}.get(level, [])

    @cached_property
    def _cost(self) -> HopperCost:
        return HopperCost(self.size, self.machine)

    @cached_property
    def _tiles(self) -> list[HopperTiles]:
        return self._cost.tiles()

    def emit(self, symbol: str, schedule: HopperTiles) -> Kernel:
        """Emit one persistent entry, and with split-K one that adds up parts."""
        placement = Placement.of(self.group)
        split = replace(_PLAIN_TILES, splits=schedule.splits)
        plain = Product.of(self.found, placement, split)
        blocks = int(self.machine.fact("multiprocessors", 132))
        product = HopperProduct.of(plain, schedule, blocks)
        partial = plain.partial

        def emit(
            code: Code, values: Mapping[SSAValue, SSAValue], name: str, rest: Sequence[SSAValue]
        ) -> None:
            scratch = None if partial is None else rest[0]
            product.emit(code, values, rest if partial is None else rest[1:], name, scratch)

        entries = [
            ProductEntry(
                product.order.blocks,
                schedule.threads,
                schedule.shared_bytes,
                plain.constants,
                emit,
                product.tensor_maps(placement.buffers),
            )
        ]
        if partial is not None:
            entries.append(totals_entry(plain))
        # Blocks stay: each has this many tiles, one after the other.
        size = self.size
        each = -(-product.order.tiles // product.order.blocks)
        stages = -(-size.depth * size.element // (LINE * schedule.splits))
        work = BlockWork(
            2.0 * schedule.rows * schedule.columns * size.depth * each / schedule.splits,
            self._cost.rate,
            self._cost.share(schedule),
            schedule.stage_bytes * stages * each,
            schedule.stage_bytes * (schedule.stages - 1),
        )
        scratch = 0 if partial is None else partial.bytes
        buffers = placement.buffers
        kernel = kernel_of_entries(
            entries, buffers, symbol, self.group, self.machine, scratch, plain.in_place(buffers)
        )
        return replace(kernel, work=(work,))
