"""The family of OpenBLAS' products of matrices."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects import arith, func, llvm
from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr, IntegerAttr, i32, i64
from xdsl.ir import Attribute, BlockArgument, SSAValue

from braid.analysis.nests.pointwise import Pointwise, pointwise
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.emitted_dialects import memref
from braid.lowering.cpu.kernels.groups.layout_choices import row_major_choice
from braid.lowering.cpu.kernels.groups.vector_family import VectorCandidate, VectorFamily
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.math.points import evaluate, has_code
from braid.lowering.emit.rows import each
from braid.support.shared_objects import OPENBLAS, loaded_library
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule
from braid.targets.machines.cpus import NATIVE, cpu_machine

_PART_OF_PEAK = 0.5
"""Assumed where nothing was measured, as of oneDNN."""
_FUNCTIONS: Mapping[Attribute, str] = {
    Float32Type(): "scipy_cblas_sgemm",
    Float64Type(): "scipy_cblas_dgemm",
}
_SET_THREADS = "scipy_openblas_set_num_threads"
_ROW_MAJOR, _AS_IT_IS, _TRANSPOSED = 101, 111, 112
"""Numbers of `cblas.h`."""
_MOST = 2**31 - 1
"""The library counts in 32 bits."""
_POINTER = llvm.LLVMPointerType()


@dataclass(frozen=True)
class OpenBlasFamily(VectorFamily):
    """`braid.matmul` of f32 or f64 by OpenBLAS, and elementwise ops on its result by generated
    code.

    Layouts: row-major, each operand also with its last two dims exchanged. It matches nothing if
    the library is not installed, or for a CPU other than this one.
    """

    name: str = "openblas"
    version: int = 1

    def match(self, group: FusedOp) -> "_LibraryProduct | None":
        """Match one product of block arguments, the rest elementwise on its result."""
        return _match(group, self) if self._is_here else None

    @cached_property
    def _is_here(self) -> bool:
        here = cpu_machine(NATIVE)
        same = (self.machine.triple, self.machine.cpu) == (here.triple, here.cpu)
        return same and loaded_library(OPENBLAS) is not None


def _match(group: FusedOp, family: OpenBlasFamily) -> "_LibraryProduct | None":
    products = [op for op in group.body.block.ops if isinstance(op, MatmulOp)]
    if len(products) != 1 or len(group.outputs) != 1 or products[0].accumulator is not None:
        return None
    (product,) = products
    lhs, rhs = product.operands
    if not isinstance(lhs, BlockArgument) or not isinstance(rhs, BlockArgument):
        return None
    types = {element_type_of(value) for value in (lhs, rhs, product.output, group.outputs[0])}
    shapes = (shape_of(lhs), shape_of(rhs))
    if len(types) != 1 or not types <= _FUNCTIONS.keys():
        return None
    if not all(0 < extent <= _MOST for shape in shapes for extent in shape):
        return None
    points = pointwise(group, product)
    if points is None or not has_code(points):
        return None
    return _LibraryProduct(group, family.unit, product, points)


@dataclass(frozen=True, eq=False)
class _LibraryProduct(VectorCandidate):
    """One call for each matrix of a batch; one for all if they share the right operand."""

    product: MatmulOp
    points: Pointwise

    def choices(self) -> Sequence[LayoutChoice]:
        """Return both operands as they are, and transposed."""
        plain = row_major_choice(self.group)
        found: list[LayoutChoice] = []
        for left in (False, True):
            for right in (False, True):
                operands = list(plain.operands)
                for value, is_transposed in zip(self._arguments, (left, right), strict=True):
                    if is_transposed:
                        operands[value.index] = _transposed(len(self.points.shape))
                found.append(replace(plain, operands=tuple(operands)))
        # One value on both sides cannot be stored in two ways.
        return list(dict.fromkeys(found))

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the larger of arithmetic, at a part of the peak, and memory traffic."""
        flops = 2.0 * math.prod(self.points.shape) * shape_of(self.product.lhs)[-1]
        if element_type_of(self.product.output) == Float64Type():
            flops *= 2
        arithmetic = flops / (self.unit.flops * _PART_OF_PEAK)
        return max(arithmetic, self.moving_seconds(choice))

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit a call of the library; the products of a batch are the iterations of the grid."""
        grid = math.prod(self.points.shape[:-1]) // self._rows
        kernel = grid_kernel(self.group, symbol, self.unit, grid, self._iteration)
        for name, types in self._declared.items():
            kernel.module.body.block.add_op(func.FuncOp.external(name, types, []))
        return replace(kernel, libraries=(OPENBLAS,))

    @property
    def _arguments(self) -> tuple[BlockArgument, BlockArgument]:
        lhs, rhs = self.product.operands
        assert isinstance(lhs, BlockArgument) and isinstance(rhs, BlockArgument)
        return lhs, rhs

    @cached_property
    def _is_transposed(self) -> tuple[bool, bool]:
        layouts = stored_choice(self.group).operands
        left, right = (not layouts[value.index].is_row_major for value in self._arguments)
        return left, right

    @cached_property
    def _rows(self) -> int:
        """Rows of the result, counted through the batch, that one call computes."""
        lhs, rhs = (shape_of(value) for value in self._arguments)
        shape = self.points.shape
        is_shared = math.prod(rhs[:-2]) == 1 and tuple(lhs[:-2]) == tuple(shape[:-2])
        rows = math.prod(shape[:-1])
        return rows if is_shared and not self._is_transposed[0] and rows <= _MOST else shape[-2]

    @property
    def _declared(self) -> dict[str, list[Attribute]]:
        number = element_type_of(self.product.output)
        matrix: list[Attribute] = [_POINTER, i32]
        types: list[Attribute] = [*[i32] * 6, number, *matrix, *matrix, number, *matrix]
        return {_FUNCTIONS[number]: types, _SET_THREADS: [i32]}

    def _iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        first = e.mul(index, self._rows)
        *batch, _ = e.coordinates(first, self.points.shape[:-1])
        self._call(e, buffers, batch, first)
        if self.points.ops:
            end = e.add(first, self._rows)
            e.loop(first, end, 1, lambda row: self._finish(e, buffers, row))

    def _call(
        self, e: Emitter, buffers: Sequence[Buffer], batch: Sequence[Index], first: Index
    ) -> None:
        """Call the library for the product of the rows from `first` on, into the result."""
        columns, depth = self.points.shape[-1], shape_of(self.product.lhs)[-1]
        number = _number(self.product)
        left, right = self._is_transposed
        matrices: list[list[Value]] = []
        leading = (self._rows if left else depth, depth if right else columns)
        for value, stride in zip(self._arguments, leading, strict=True):
            strides = _batch_strides(shape_of(value))
            offset = e.dot(batch, strides) if batch else 0
            matrices.append([_address(e, buffers[value.index], offset), _int(e, stride)])
        result = [_address(e, buffers[-1], e.mul(first, columns)), _int(e, columns)]
        kinds = (_TRANSPOSED if each else _AS_IT_IS for each in (left, right))
        sizes = (_ROW_MAJOR, *kinds, self._rows, columns, depth)
        one, zero = (e.insert(arith.ConstantOp(FloatAttr(x, number))) for x in (1.0, 0.0))
        # Kernels run on the threads of braid.
        e.effect(func.CallOp(_SET_THREADS, [_int(e, 1)], []))
        arguments = [*(_int(e, x) for x in sizes), one, *matrices[0], *matrices[1], zero, *result]
        e.effect(func.CallOp(_FUNCTIONS[number], arguments, []))

    def _finish(self, e: Emitter, buffers: Sequence[Buffer], row: Index) -> None:
        """Apply the elementwise ops to one row of the product."""
        points, out = self.points, buffers[-1]
        shape = points.shape
        coordinates = e.coordinates(row, shape[:-1])
        base = e.mul(row, shape[-1])
        bases = {leaf: e.dot(coordinates, _strides(leaf)[:-1]) for leaf in points.leaves}

        def vector(position: Index, mask: Value | None) -> None:
            def read(leaf: BlockArgument) -> Value:
                buffer = buffers[leaf.index]
                if _strides(leaf)[-1] == 0:
                    return buffer.splat(e, bases[leaf])
                return buffer.load(e, e.add(bases[leaf], position), mask)

            offset = e.add(base, position)
            known: dict[SSAValue, Value] = {self.product.output: out.load(e, offset, mask)}
            (value,) = evaluate(e, points, read, known)
            out.store(e, value, offset, mask)

        each(e, shape[-1], vector)


def _number(product: MatmulOp) -> Float32Type | Float64Type:
    number = element_type_of(product.output)
    assert isinstance(number, Float32Type | Float64Type)
    return number


def _transposed(rank: int) -> Layout:
    """Return the last two dims exchanged."""
    letters = Layout.row_major(rank).tag
    return Layout.parse(f"{letters[:-2]}{letters[-1]}{letters[-2]}")


def _strides(value: SSAValue) -> list[int]:
    """Return the elements between neighbours along each dim; 0 along dims of extent 1, which are
    broadcast.
    """
    shape = shape_of(value)
    return [0 if extent == 1 else math.prod(shape[dim + 1 :]) for dim, extent in enumerate(shape)]


def _batch_strides(shape: Sequence[int]) -> list[int]:
    return [
        0 if extent == 1 else math.prod(shape[dim + 1 :]) for dim, extent in enumerate(shape[:-2])
    ]


def _int(e: Emitter, value: int) -> Value:
    return e.insert(arith.ConstantOp(IntegerAttr(value, i32)))


def _address(e: Emitter, buffer: Buffer, offset: Index) -> Value:
    """Return the address of the element at an offset."""
    width = 8 if buffer.element_type == Float64Type() else 4
    index = e.insert(memref.ExtractAlignedPointerAsIndexOp.get(buffer.ref))
    moved = e.index(e.add(index, e.mul(offset, width)))
    return e.insert(llvm.IntToPtrOp(e.insert(arith.IndexCastOp(moved, i64))))
