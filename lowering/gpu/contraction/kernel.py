"""The entry of a product: a block computes a tile, by a pipeline of copies to shared memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects import arith, llvm
from xdsl.ir import BlockArgument, Operation, SSAValue

from braid.lowering.gpu.contraction.code import SHARED, Code, Value
from braid.lowering.gpu.contraction.copies import TileCopy
from braid.lowering.gpu.contraction.epilogue import Epilogue, merge_points, point_of
from braid.lowering.gpu.contraction.main_loop import Cores, MainLoop, Ring
from braid.lowering.gpu.contraction.partial_sums import PartialSums, neighbours, sum_type
from braid.lowering.gpu.contraction.plain_cores import PlainCores
from braid.lowering.gpu.contraction.problem import Contraction, ElementKind, ProductMatch
from braid.lowering.gpu.contraction.single_points import (
    emit_neighbours,
    emit_single_points,
)
from braid.lowering.gpu.contraction.tensor_cores import TensorCores
from braid.lowering.gpu.contraction.tiles import PADDING, Place, Tiles
from braid.lowering.gpu.launch.aligned_entries import is_aligned
from braid.lowering.gpu.launch.launches import THREADS, dynamic_shared
from braid.lowering.gpu.nests.placement import Placed, Placement
from braid.targets.kernels.kernel_family import InPlace


@dataclass(frozen=True)
class Tile:
    """A tile that a block computes: its position, its begin along K, and the use of its sums.

    `where` is the thread, the batch, the first row and column; `write` gets `width` neighbours.
    """

    where: tuple[Value, Value, Value, Value]
    begin: Value | None
    write: Callable[[Code, list[SSAValue], tuple[Value, Value, Value]], None]
    width: int


@dataclass(frozen=True)
class Product:
    """A contraction with what follows, made by tiles; results are stored singly if `narrow`."""

    problem: Contraction
    epilogue: Epilogue
    tiles: Tiles
    narrow: bool = False

    @staticmethod
    def of(match: ProductMatch, placement: Placement, tiles: Tiles) -> "Product":
        """Return the kernel of a group that is a product, and elementwise ops on it.

        Raises UnsupportedError for an op without code.
        """
        results = list(zip(match.results, placement.results, strict=True))
        return Product.at(match, placement.operands, results, tiles)

    @staticmethod
    def at(
        match: ProductMatch,
        places: Mapping[SSAValue, Placed],
        results: Sequence[tuple[SSAValue, Placed]],
        tiles: Tiles,
    ) -> "Product":
        """Return the kernel of a product whose operands and results lie at these places."""
        problem = Contraction.of(match.op, places, results[0][1].layout)
        if match.kind is ElementKind.TF32:
            problem = problem.as_tf32
        epilogue = Epilogue.at(match, places, results)
        return Product(problem, epilogue, tiles)

    @property
    def constants(self) -> tuple[Operation, ...]:
        """The numbers that the epilogue needs."""
        return self.epilogue.constants

    def in_place(
        self, buffers: Sequence[BlockArgument], read_elsewhere: Sequence[SSAValue] = ()
    ) -> tuple[InPlace, ...]:
        """Return the operands of the epilogue that results may overwrite: never A or B."""
        operands = (self.problem.a.value, self.problem.b.value)
        return self.epilogue.in_place(buffers, (*operands, *read_elsewhere))

    @property
    def rows(self) -> int:
        """Rows of the product."""
        return self.problem.count(self.problem.rows)

    @property
    def columns(self) -> int:
        """Columns of the product."""
        return self.problem.count(self.problem.columns)

    @property
    def depth(self) -> int:
        """Extent of K."""
        return self.problem.count(self.problem.depths)

    @property
    def row_tiles(self) -> int:
        """Return the number of tiles along rows."""
        return -(-self.rows // self.tiles.rows)

    @property
    def column_tiles(self) -> int:
        """Return the number of tiles along columns."""
        return -(-self.columns // self.tiles.columns)

    @property
    def blocks(self) -> int:
        """Return the number of blocks."""
        batches = self.problem.count(self.problem.batches)
        return batches * self.row_tiles * self.column_tiles * self.tiles.splits

    @property
    def turns(self) -> int:
        """Stages that a block adds up."""
        return -(-self.depth // (self._stage_depth * self.tiles.splits))

    @property
    def block_flops(self) -> int:
        """Multiplications and additions of a block, of its padding too."""
        return 2 * self.tiles.rows * self.tiles.columns * self._stage_depth * self.turns

    @property
    def copied_bytes(self) -> int:
        """Bytes that a block copies to shared memory."""
        return self.turns * self._stage_bytes

    @property
    def in_flight_bytes(self) -> int:
        """Bytes of shared memory that copies in flight fill while a stage is multiplied."""
        return (self.tiles.stages - 1) * self._stage_bytes

    @property
    def partial(self) -> PartialSums | None:
        """Return where blocks leave the sums of parts of K (split-K), if K is split."""
        if self.tiles.splits == 1:
            return None
        batches = self.problem.count(self.problem.batches)
        return PartialSums(
            self.tiles.splits, batches, self.rows, self.columns, self.problem.is_integer
        )

    @property
    def width(self) -> int:
        """Neighbouring results that a thread stores at once."""
        return 1 if self.narrow else self.epilogue.width(self.problem.columns)

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block."""
        staged = self.tiles.rows * self.tiles.staged_pitch
        return max(self.tiles.stages * self._stage_bytes, staged)

    @property
    def _stage_bytes(self) -> int:
        return self._a_place.bytes + self._b_place.bytes

    @property
    def _stage_depth(self) -> int:
        return self.tiles.depth // self.problem.a.bytes

    @property
    def _is_plain(self) -> bool:
        return self.problem.a.kind is ElementKind.F32

    @cached_property
    def _b_along_depth(self) -> bool:
        """Return whether B lies along K in shared memory: as in memory, if products can read it."""
        if self._is_plain:
            return False
        b = self.problem.b
        return b.bytes == 1 or b.chunk(True) >= b.chunk(False)

    @cached_property
    def _a_place(self) -> Place:
        return Place(0, self.tiles.rows, self.tiles.depth, not self._is_plain)

    @cached_property
    def _b_place(self) -> Place:
        t, start = self.tiles, self._a_place.bytes
        if self._b_along_depth:
            return Place(start, t.columns, t.depth, True)
        line = t.columns * self.problem.b.bytes
        if self.problem.b.kind is ElementKind.TF32:
            # 4 lines of which lanes read 8 neighbours each, in different banks.
            return Place(start, self._stage_depth, line, False, PADDING)
        return Place(start, self._stage_depth, line, not self._is_plain)

    def emit(
        self,
        code: Code,
        values: Mapping[SSAValue, SSAValue],
        entry: str,
        scratch: Value | None = None,
    ) -> None:
        """Emit the code of a thread; `values` are the entry's arguments for the kernel's.

        Blocks that have a part of K (split-K) leave their sums in `scratch`.
        """
        aligned = is_aligned(code.builder)
        thread, block = code.thread(), code.block()
        if (partial := self.partial) is not None and scratch is not None:
            split = code.rem(block, self.tiles.splits)
            block = code.div(block, self.tiles.splits)
            begin = code.mul(split, self.turns * self._stage_depth)
            where = self._tile_at(code, thread, block)

            def keep(at: Code, sums: list[SSAValue], place: tuple[Value, Value, Value]) -> None:
                partial.store(at, scratch, split, place, sums)

            tile = Tile(where, begin, keep, partial.width)
            code.choose(aligned, lambda own: self._emit_tile(own, values, entry, tile))
            return
        where = self._tile_at(code, thread, block)
        tile = self.whole_tile(where, values)
        code.choose(
            aligned,
            lambda own: self._emit_tile(own, values, entry, tile),
            lambda own: emit_single_points(
                own, self.problem, self.tiles, self.write, values, where
            ),
        )

    def whole_tile(
        self, where: tuple[Value, Value, Value, Value], values: Mapping[SSAValue, SSAValue]
    ) -> Tile:
        """Return a tile of which a block has all of K."""
        return Tile(where, None, lambda at, sums, p: self.write(at, sums, p, values), self.width)

    def emit_totals(self, code: Code, values: Mapping[SSAValue, SSAValue], scratch: Value) -> None:
        """Emit the code of a thread of the second split-K entry, which adds up parts and applies
        the epilogue.
        """
        partial = self.partial
        assert partial is not None
        thread = code.add(code.mul(code.block(), THREADS), code.thread())
        per_row = self.columns // self.width
        inside = code.below(thread, partial.batches * self.rows * per_row)
        column = code.mul(code.rem(thread, per_row), self.width)
        rest = code.div(thread, per_row)
        place = (code.div(rest, self.rows), code.rem(rest, self.rows), column)

        def total(at: Code) -> None:
            self.write(at, partial.total(at, scratch, place, self.width), place, values)

        def single(at: Code) -> None:
            emit_neighbours(at, self.problem, self.width, self.write, values, place)

        aligned = is_aligned(code.builder)
        code.choose(inside, lambda own: own.choose(aligned, total, single))

    @property
    def total_threads(self) -> int:
        """Threads of the entry that adds up parts."""
        batches = self.problem.count(self.problem.batches)
        return batches * self.rows * (self.columns // self.width)

    def _tile_at(
        self, code: Code, thread: Value, block: Value
    ) -> tuple[Value, Value, Value, Value]:
        """Return the thread, the batch, and the first row and column of a block's tile."""
        column_tile = code.rem(block, self.column_tiles)
        rest = code.div(block, self.column_tiles)
        row = code.mul(code.rem(rest, self.row_tiles), self.tiles.rows)
        column = code.mul(column_tile, self.tiles.columns)
        batch = code.div(rest, self.row_tiles)
        return thread, batch, row, column

    def _emit_tile(
        self,
        code: Code,
        values: Mapping[SSAValue, SSAValue],
        entry: str,
        tile: Tile,
    ) -> None:
        shared = code.insert(llvm.AddressOfOp(dynamic_shared(entry), SHARED))
        cores = self._cores()
        sums = self._multiply(code, cores, shared, values, tile)
        code.intrinsic("llvm.nvvm.cp.async.wait.all", [], [])
        code.barrier()
        cores.stage(code, shared, sums)
        code.barrier()
        self.write_staged(code, shared, tile)

    def write_staged(
        self,
        code: Code,
        shared: Value,
        tile: Tile,
    ) -> None:
        """Apply the epilogue to the tile's sums in shared memory, by all threads of the block."""
        thread, batch, row, column = tile.where
        width = tile.width
        per_row = self.tiles.columns // width
        end, step = (code.number(n) for n in (self.tiles.rows * per_row, self.tiles.threads))
        type = sum_type(self.problem.is_integer)

        def body(own: Code, place: Value, carried: Sequence[Value]) -> Sequence[Value]:
            in_row, in_column = own.div(place, per_row), own.mul(own.rem(place, per_row), width)
            m, n = own.add(row, in_row), own.add(column, in_column)
            inside = own.insert(arith.AndIOp(own.below(m, self.rows), own.below(n, self.columns)))

            def write(at: Code) -> None:
                offset = at.add(at.mul(in_row, self.tiles.staged_pitch), at.mul(in_column, 4))
                lanes = neighbours(at, at.at(shared, offset), width, type)
                tile.write(at, lanes, (batch, m, n))

            own.choose(inside, write)
            return carried

        code.loop(thread, end, step, [], body)

    def write(
        self,
        code: Code,
        sums: list[SSAValue],
        place: tuple[Value, Value, Value],
        values: Mapping[SSAValue, SSAValue],
    ) -> None:
        """Apply the epilogue to sums at a batch, a row, and neighbouring columns; store them."""
        kinds = (self.problem.batches, self.problem.rows, self.problem.columns)
        points = [point_of(code, parts, n) for parts, n in zip(kinds, place, strict=True)]
        lane = self.problem.columns[-1].dim if self.problem.columns else None
        self.epilogue.emit(code, sums, merge_points(code, *points), lane, values)

    def _cores(self) -> Cores:
        if self._is_plain:
            return PlainCores(self.tiles, self._a_place, self._b_place)
        return TensorCores(
            self.problem, self.tiles, self._a_place, self._b_place, self._b_along_depth
        )

    def _multiply(
        self,
        code: Code,
        cores: Cores,
        shared: Value,
        values: Mapping[SSAValue, SSAValue],
        tile: Tile,
    ) -> list[Value]:
        """Return the thread's sums over its block's part of K."""
        thread, batch, row, column = tile.where
        lines = (self.tiles.rows, self.tiles.columns)
        operands = (self.problem.a, self.problem.b)
        places = (self._a_place, self._b_place)
        along_depth = (True, self._b_along_depth)
        whole = self.turns * self.tiles.splits * self._stage_depth == self.depth
        copies = [
            TileCopy(
                replace(own, value=values[own.value]),
                place,
                along,
                count,
                self._stage_depth,
                self.tiles.threads,
                whole=whole,
            )
            for own, place, along, count in zip(operands, places, along_depth, lines, strict=True)
        ]
        for copy, start in zip(copies, (row, column), strict=True):
            copy.prepare(code, thread, start, batch)
        cores.prepare(code, thread)
        ring = Ring(shared, self._stage_bytes, self.tiles.stages)
        return MainLoop(cores, copies, ring, self._stage_depth, self.turns, tile.begin).emit(code)
