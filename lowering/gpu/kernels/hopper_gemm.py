"""Matrix products on sm_90a by `wgmma`, with tensor maps and warps that only copy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.gpu_kernel import BlockWork
from braid.lowering.gpu.kernels.contraction.candidate import (
    ProductCandidate,
    ProductEntry,
    bufferized_product,
    product_kernel,
)
from braid.lowering.gpu.kernels.contraction.kernel import Product
from braid.lowering.gpu.kernels.contraction.problem import Number
from braid.lowering.gpu.kernels.contraction.schedules import shared_limit
from braid.lowering.gpu.kernels.contraction.tiles import Tiles
from braid.lowering.gpu.kernels.gemm import GemmFamily
from braid.lowering.gpu.kernels.hopper.product import HopperProduct
from braid.lowering.gpu.kernels.hopper.tiles import LINE, HopperTiles
from braid.targets.kernels.kernel_family import Kernel, Schedule
from braid.targets.machines.machine import Machine

_ARCHITECTURE = "sm_90a"
_WITHOUT = (Number.F32, Number.TF32)
_LEAST = 33
"""Rows, columns and depth of products that fill tiles of 64 more than half."""
_SHAPES = {
    (128, 256, 2): 1.0,
    (256, 128, 2): 1.0,
    (128, 128, 2): 0.85,
    (128, 192, 2): 0.95,
    (64, 256, 1): 0.7,
    (128, 64, 2): 0.6,
    (64, 128, 1): 0.6,
    (64, 64, 1): 0.4,
}
"""Rows, columns and groups of tiles, and which part of the peak rate is assumed."""
_OTHER_SHAPES = 0.4
"""The part of tiles that a schedule has beside these."""
_MOST_STAGES = 8
_PLAIN_TILES = Tiles(64, 64, 64, 3, 32, 32)
"""For what is asked of a product before its own tiles are known."""


@dataclass(frozen=True)
class HopperGemmFamily:
    """`braid.matmul` of 16-bit floats or bytes, with an elementwise epilogue, batched or not.

    For `sm_90a`, where rows of operands begin at multiples of 16 bytes.
    """

    machine: Machine
    name: str = "gpu-hopper-gemm"
    version: int = 2

    def match(self, group: FusedOp) -> "_HopperGemm | None":
        """As `GemmFamily`, without f32 and what is too small."""
        plain = GemmFamily(self.machine).match(group)
        if self.machine.cpu != _ARCHITECTURE or plain is None:
            return None
        _, rows, columns, depth = plain.extents()
        if plain.found.number in _WITHOUT or min(rows, columns, depth) < _LEAST:
            return None
        element = 1 if plain.found.number is Number.S8 else 2
        if depth * element % 16 or columns * element % 16:
            return None
        return _HopperGemm(group, self.machine, plain.found, plain)


@dataclass(frozen=True, eq=False)
class _HopperGemm(ProductCandidate):
    plain: ProductCandidate

    @property
    def layouts(self) -> Sequence[LayoutChoice]:
        """As without `wgmma`, of bytes only those that can be read."""
        return self.plain.layouts[: 1 if self.found.number is Number.S8 else None]

    def copied(self, layouts: Sequence[Layout]) -> tuple[int, int]:
        """As of the plain product."""
        return self.plain.copied(layouts)

    def extents(self) -> tuple[int, int, int, int]:
        """Of the product."""
        return self.plain.extents()

    def seconds(self, choice: LayoutChoice) -> float:
        """Of the default tiles."""
        slow = 1.0 if choice == self.layouts[0] else 1.01
        return slow * self._seconds(next(self._tiles()))

    def space(self, level: int) -> Iterator[Schedule]:
        """Tiles by predicted time: the best two at level 0, the others at level 1."""
        found = list(self._tiles())
        for tiles in {0: found[:2], 1: found[2:]}.get(level, []):
            yield tiles.schedule

    def _tiles(self) -> Iterator[HopperTiles]:
        limit = shared_limit(self.machine)
        found: list[HopperTiles] = []
        for rows, columns, groups in _SHAPES:
            most = HopperTiles(rows, columns, groups, _MOST_STAGES)
            while most.shared_bytes > limit:
                most = HopperTiles(rows, columns, groups, most.stages - 1)
            found.append(most)
        yield from sorted(found, key=self._seconds)

    def _seconds(self, tiles: HopperTiles) -> float:
        """Of whole waves of tiles at a part of the machine's rate, or of its memory."""
        size, machine = self.size, self.machine
        processors = machine.fact("multiprocessors", 132)
        count = size.batches * -(-size.rows // tiles.rows) * -(-size.columns // tiles.columns)
        work = 2 * tiles.rows * tiles.columns * size.depth * -(-count // processors) * processors
        time = work / (self._rate * _share_of(tiles))
        return max(time, size.bytes / machine.fact("memory_bandwidth", 3.35e12))

    @property
    def _rate(self) -> float:
        if self.size.number is Number.S8:
            return self.machine.fact("tensor_int8_ops", 1979e12)
        return self.machine.fact("tensor_bf16_flops", 989e12)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """One entry whose blocks stay; where operands have no tensor maps, that of `mma.sync`."""
        tiles = HopperTiles.of({**next(self.space(0)), **schedule})
        function = bufferized_product(self.group, symbol)
        plain = Product.of(function, len(self.group.inputs), _PLAIN_TILES)
        blocks = int(self.machine.fact("multiprocessors", 132))
        product = None if plain is None else HopperProduct.of(plain, tiles, blocks)
        if plain is None or product is None:
            return self.plain.emit(symbol, {})
        entry = ProductEntry(
            product.order.blocks,
            tiles.threads,
            tiles.shared_bytes,
            plain.constants,
            lambda code, values, name, maps: product.emit(code, values, maps, name),
            product.tensor_maps(function.body.block.args[:-2]),
        )
        # Blocks stay: each has so many tiles, one after the other.
        size = self.size
        count = size.batches * -(-size.rows // tiles.rows) * -(-size.columns // tiles.columns)
        each = -(-count // product.order.blocks)
        stages = -(-size.depth * size.element // LINE)
        work = BlockWork(
            2.0 * tiles.rows * tiles.columns * size.depth * each,
            self._rate,
            _share_of(tiles),
            tiles.stage_bytes * stages * each,
            tiles.stage_bytes * (tiles.stages - 1),
        )
        kernel = product_kernel([entry], function, symbol, self.group, self.machine)
        return replace(kernel, work=(work,))


def _share_of(tiles: HopperTiles) -> float:
    return _SHAPES.get((tiles.rows, tiles.columns, tiles.groups), _OTHER_SHAPES)
