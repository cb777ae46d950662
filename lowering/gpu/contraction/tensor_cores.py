"""Products of tiles by `mma.sync`, of fragments that `ldmatrix` reads from shared memory.

Fragments and their lanes: PTX ISA, "Matrix Fragments for mma.m16n8k16" and "… .m16n8k32", and
"ldmatrix". A warp's fragments of the next step are read while this one is multiplied.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import Float16Type, Float32Type, VectorType, i32
from xdsl.ir import Attribute

from braid.lowering.gpu.contraction.code import Code, Value
from braid.lowering.gpu.contraction.problem import Contraction, ElementKind
from braid.lowering.gpu.contraction.tiles import CHUNK, Place, Tiles

STEP_BYTES = 32
"""The bytes of a row of A that an instruction multiplies."""
_M, _N = 16, 8


def multiply_name(a: ElementKind, b: ElementKind) -> str:
    """Return LLVM's name of the instruction."""
    if a is ElementKind.BF16:
        return "llvm.nvvm.mma.m16n8k16.row.col.bf16"
    if a is ElementKind.TF32:
        return "llvm.nvvm.mma.m16n8k8.row.col.tf32"
    if a is ElementKind.F16:
        return "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
    types = a.value if a is b else f"{a.value}.{b.value}"
    return f"llvm.nvvm.mma.m16n8k32.row.col.{types}"


@dataclass
class TensorCores:
    """Multiplies what `a` and `b` hold; B has lines along K, or of columns if 16 bits wide."""

    problem: Contraction
    tiles: Tiles
    a: Place
    b: Place
    b_along_depth: bool
    tail = 1

    @property
    def steps(self) -> int:
        """Steps of a stage."""
        return self.tiles.depth // STEP_BYTES

    @property
    def sums(self) -> int:
        """Return the number of sums of a thread."""
        return self.tiles.warp_rows * self.tiles.warp_columns // 32

    def zero(self, code: Code) -> Value:
        """Return zero in the type of sums."""
        return code.number(0, self._sum)

    def prepare(self, code: Code, thread: Value) -> None:
        """Compute where the lane's rows are in a stage."""
        t = self.tiles
        self.lane = code.rem(thread, 32)
        warp = code.div(thread, 32)
        across = t.rows // t.warp_rows
        self.row = code.mul(code.rem(warp, across), t.warp_rows)
        self.column = code.mul(code.div(warp, across), t.warp_columns)
        low, half = code.rem(self.lane, 16), code.div(self.lane, 16)
        line = code.add(self.row, low)
        self._a = [self._address(code, self.a, line, half, step) for step in range(self.steps)]
        if self.b_along_depth:
            # Matrices of (columns, depths): (0, 0), (0, 1), (1, 0), (1, 1), so that both registers
            # of an instruction are neighbours.
            eighth = code.rem(self.lane, 8)
            line = code.add(code.add(self.column, eighth), code.mul(half, 8))
            second = code.rem(code.div(self.lane, 8), 2)
            self._b = [self._address(code, self.b, line, second, s) for s in range(self.steps)]
        elif self._is_tf32:
            own = code.add(self.column, code.div(self.lane, 4))
            start = code.add(code.mul(code.rem(self.lane, 4), self.b.pitch), code.mul(own, 4))
            self._b = [code.add(start, self.b.start)]
        else:
            chunk = code.add(code.div(self.column, 8), half)
            self._b = [
                self.b.address(code, low, code.add(chunk, 2 * pair)) for pair in range(self._pairs)
            ]

    def _address(self, code: Code, place: Place, line: Value, chunk: Value, step: int) -> Value:
        return place.address(code, line, code.add(chunk, step * STEP_BYTES // CHUNK))

    def load(
        self, code: Code, shared: Value, step: int, before: Sequence[Value] = ()
    ) -> list[Value]:
        """Return the warp's fragments of A, and then of B."""
        return [*self.load_a(code, shared, step), *self.load_b(code, shared, step)]

    def load_a(self, code: Code, shared: Value, step: int) -> list[Value]:
        """Return the warp's fragments of A."""
        values: list[Value] = []
        for block in range(self._blocks):
            place = code.at(shared, self._a[step])
            values += self._read(code, code.at(place, block * _M * self.a.pitch), "")
        return self._rounded(code, values)

    def load_b(self, code: Code, shared: Value, step: int) -> list[Value]:
        """Return the warp's fragments of B."""
        values: list[Value] = []
        if self._is_tf32 and not self.b_along_depth:
            return self._rounded(code, self._read_columns(code, shared, step))
        for pair in range(self._pairs):
            if self.b_along_depth:
                place = code.at(shared, self._b[step])
                values += self._read(code, code.at(place, pair * _M * self.b.pitch), "")
            else:
                place = code.at(shared, self._b[pair])
                values += self._read(code, code.at(place, step * _M * self.b.pitch), ".trans")
        return self._rounded(code, values)

    def _read_columns(self, code: Code, shared: Value, step: int) -> list[Value]:
        """Return the fragments of 32 bits of column-major rows, which `ldmatrix` does not
        transpose.
        """
        place, half = code.at(shared, self._b[0]), STEP_BYTES // 4 // 2
        return [
            code.load(
                code.at(place, (2 * step + which) * half * self.b.pitch + 4 * _N * column), i32, 4
            )
            for column in range(self.tiles.warp_columns // _N)
            for which in range(2)
        ]

    def _rounded(self, code: Code, values: list[Value]) -> list[Value]:
        """Round to the nearest tf32: `mma.sync` truncates."""
        if not self._is_tf32:
            return values
        floats = [code.insert(llvm.BitcastOp(value, Float32Type())) for value in values]
        return [code.intrinsic("llvm.nvvm.f2tf32.rna", [value], [i32])[0] for value in floats]

    @property
    def _is_tf32(self) -> bool:
        return self.problem.a.kind is ElementKind.TF32

    def _read(self, code: Code, place: Value, kind: str) -> list[Value]:
        name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{kind}.b16.p3"
        return code.intrinsic(name, [place], [i32] * 4)

    def multiply(
        self, code: Code, sums: Sequence[Value], fragments: Sequence[Value], step: int = 0
    ) -> list[Value]:
        """Return the sums and the products of a step."""
        values = list(sums)
        if self.problem.a.kind is ElementKind.F16:
            fragments = [
                code.insert(llvm.BitcastOp(value, VectorType(Float16Type(), [2])))
                for value in fragments
            ]
        name = multiply_name(self.problem.a.kind, self.problem.b.kind)
        columns = self.tiles.warp_columns // _N
        for block in range(self._blocks):
            a = fragments[4 * block : 4 * block + 4]
            # Back and forth, so that neighbouring instructions share a fragment.
            order = range(columns) if block % 2 == 0 else reversed(range(columns))
            for column in order:
                first = 4 * self._blocks + 2 * column
                b = fragments[first : first + 2]
                at = 4 * (block * columns + column)
                operands = [*a, *b, *values[at : at + 4]]
                values[at : at + 4] = code.intrinsic(name, operands, [self._sum] * 4)
        return values

    def stage(self, code: Code, shared: Value, sums: Sequence[Value]) -> None:
        """Write the thread's sums to the rows of the tile."""
        pitch, columns = self.tiles.staged_pitch, self.tiles.warp_columns // _N
        row = code.add(self.row, code.div(self.lane, 4))
        column = code.add(self.column, code.mul(code.rem(self.lane, 4), 2))
        start = code.add(code.mul(row, pitch), code.mul(column, 4))
        for block in range(self._blocks):
            for number in range(columns):
                for half in range(2):
                    at = 4 * (block * columns + number) + 2 * half
                    place = (_M * block + 8 * half) * pitch + 4 * _N * number
                    pair = code.vector(sums[at : at + 2])
                    code.store(pair, code.at(code.at(shared, start), place), 8)

    @property
    def _sum(self) -> Attribute:
        return i32 if self.problem.is_integer else Float32Type()

    @property
    def _blocks(self) -> int:
        return self.tiles.warp_rows // _M

    @property
    def _pairs(self) -> int:
        return self.tiles.warp_columns // (2 * _N)
