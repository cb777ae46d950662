"""The entry of a product on sm_90a: a thread that copies, and groups of 128 that multiply.

Blocks stay and compute a tile after another, so that copies for the next one run while results of
this one are stored: as CUTLASS's persistent kernels for warp-specialized groups.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import Float32Type, i32
from xdsl.ir import SSAValue

from braid.lowering.gpu.contraction.code import SHARED, Code, Value
from braid.lowering.gpu.contraction.kernel import Product
from braid.lowering.gpu.contraction.single_points import emit_single_points
from braid.lowering.gpu.kernels.hopper.instructions import WARPGROUP, set_registers
from braid.lowering.gpu.kernels.hopper.maps import Boxes, operand_boxes
from braid.lowering.gpu.kernels.hopper.order import Order, Tile
from braid.lowering.gpu.kernels.hopper.pipeline import Ring
from braid.lowering.gpu.kernels.hopper.results import Results, result_boxes
from braid.lowering.gpu.kernels.hopper.roles import emit_roles
from braid.lowering.gpu.kernels.hopper.tiles import STORE_ROWS, HopperTiles
from braid.lowering.gpu.launch.aligned_entries import is_aligned
from braid.lowering.gpu.launch.launches import TensorMap, dynamic_shared

_COPYING_REGISTERS = 40
_MULTIPLYING_REGISTERS = {1: 240, 2: 232}
"""The registers of a multiplying thread, by groups; with those of the copying ones they fill the
register file."""


@dataclass(frozen=True)
class HopperProduct:
    """A contraction with its epilogue, by copies of tensors and `wgmma`."""

    plain: Product
    tiles: HopperTiles
    boxes: tuple[Boxes, Boxes, bool]
    results: Results
    most_blocks: int

    @staticmethod
    def of(plain: Product, tiles: HopperTiles, most_blocks: int) -> "HopperProduct":
        """Return the kernel of a product whose operands have tensor maps."""
        assert not tiles.filled or plain.rows <= tiles.filled, "rows that are not copied"
        boxes = operand_boxes(plain.problem, tiles.b_line)
        assert boxes is not None, "layouts and tiles that tensor maps can read"
        stored = None
        if tiles.copies_results:
            stored = result_boxes(plain.problem, plain.epilogue, tiles.columns)
        results = Results(plain.problem, plain.epilogue, tiles, stored, plain.partial)
        return HopperProduct(plain, tiles, boxes, results, most_blocks)

    @property
    def order(self) -> Order:
        """Order of tiles."""
        rows, columns = self.tiles.rows, self.tiles.columns
        return Order(
            self.plain.problem.count(self.plain.problem.batches),
            -(-self.plain.rows // rows),
            -(-self.plain.columns // columns),
            rows,
            columns,
            self.most_blocks,
            self.tiles.splits,
        )

    def tensor_maps(self, buffers: Sequence[SSAValue]) -> tuple[TensorMap, ...]:
        """Return the tensor maps of A, B, and the result if it has one, in the entry's order."""
        a, b, along_depth = self.boxes
        problem = self.plain.problem
        b_lines = self.tiles.b_columns if along_depth else a.elements
        found = [(problem.a.value, a, self.tiles.a_rows), (problem.b.value, b, b_lines)]
        if self.results.boxes is not None:
            found.append((self.plain.epilogue.results[0].buffer, self.results.boxes, STORE_ROWS))
        return tuple(own.map(list(buffers).index(value), n) for value, own, n in found)

    def emit(
        self,
        code: Code,
        values: Mapping[SSAValue, SSAValue],
        maps: Sequence[Value],
        entry: str,
        scratch: Value | None = None,
    ) -> None:
        """Emit the code of a thread; `values` are the entry's arguments for the kernel's.

        Blocks that have a part of K (split-K) leave their sums in `scratch`.
        """
        code.choose(
            is_aligned(code.builder),
            lambda own: self._emit_tiles(own, values, maps, entry, scratch),
            None if scratch is not None else lambda own: self._emit_points(own, values),
        )

    def _emit_tiles(
        self,
        code: Code,
        values: Mapping[SSAValue, SSAValue],
        maps: Sequence[Value],
        entry: str,
        scratch: Value | None,
    ) -> None:
        shared = code.insert(llvm.AddressOfOp(dynamic_shared(entry), SHARED))
        problem = self.plain.problem
        numbers = (problem.a.kind, problem.b.kind)
        turns = -(-self.plain.depth // (self.boxes[0].elements * self.tiles.splits))
        ring = Ring(shared, self.tiles, *self.boxes, numbers, turns)
        emit_roles(
            code,
            self.tiles.groups,
            maps,
            ring.initialize,
            lambda own, thread: self._emit_copies(own, ring, thread, maps),
            lambda own, thread, group: self._emit_products(
                own, ring, thread, group, maps, values, scratch
            ),
        )

    def _emit_copies(self, code: Code, ring: Ring, thread: Value, maps: Sequence[Value]) -> None:
        set_registers(code, _COPYING_REGISTERS, more=False)

        def copy(own: Code) -> None:
            def tile(at: Code, place: Tile, carried: Sequence[Value]) -> Sequence[Value]:
                return ring.fill(at, place, maps, carried)

            self.order.loop(own, [own.number(0), own.number(0)], tile)

        code.choose(code.equal(thread, WARPGROUP * self.tiles.groups), copy)

    def _emit_products(
        self,
        code: Code,
        ring: Ring,
        thread: Value,
        group: Value,
        maps: Sequence[Value],
        values: Mapping[SSAValue, SSAValue],
        scratch: Value | None,
    ) -> None:
        set_registers(code, _MULTIPLYING_REGISTERS[self.tiles.groups], more=True)
        lane, warp = code.rem(thread, 32), code.uniform(code.div(thread, 32))
        zero = code.number(0, i32 if self.plain.problem.is_integer else Float32Type())
        map = maps[2] if len(maps) > 2 else None

        def tile(own: Code, place: Tile, carried: Sequence[Value]) -> Sequence[Value]:
            stage, parity, *sums = ring.add_up(own, group, lane, zero, carried)
            self.results.finish(own, ring.shared, map, values, place, warp, lane, sums, scratch)
            return [stage, parity]

        self.order.loop(code, [code.number(0), code.number(0)], tile)
        self.results.last(code, lane)

    def _emit_points(self, code: Code, values: Mapping[SSAValue, SSAValue]) -> None:
        """Emit the kernel for buffers that may begin anywhere, point by point."""
        thread = code.thread()

        def tile(own: Code, place: Tile, carried: Sequence[Value]) -> Sequence[Value]:
            where = (thread, *place[:3])
            write = self.results.store
            emit_single_points(own, self.plain.problem, self.tiles, write, values, where)
            return carried

        self.order.loop(code, [], tile)
