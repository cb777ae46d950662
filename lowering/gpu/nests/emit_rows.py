"""The code of a `RowProgram`: what a thread holds of its row, nest by nest."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import (
    IntegerAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from braid.lowering.common.element_types import constant
from braid.lowering.common.tensor_loops import index_constant
from braid.lowering.gpu.launch.aligned_entries import is_aligned
from braid.lowering.gpu.nests.row_access import Access, RowNest
from braid.lowering.gpu.nests.row_elements import Held, RowElements
from braid.lowering.gpu.nests.row_program import WARP, RowProgram, combiner, nest_buffers, neutral
from braid.lowering.gpu.nests.shuffles import XOR, shuffled
from braid.lowering.gpu.nests.wide_access import (
    compute,
)


def shared_memory(program: RowProgram, symbol: str) -> list[memref.GlobalOp]:
    """Return the exchange buffers of the warps of a row: a slot per warp for every reduction, by
    types.
    """
    warps = program.threads_of_row // WARP
    types = Counter(
        cast(MemRefType[Any], nest.nest.nest.outputs[0].type).element_type
        for nest in program.nests
        if nest.reduces
    )
    if warps == 1:
        return []
    return [
        memref.GlobalOp.get(
            StringAttr(f"{symbol}_{type}"),
            MemRefType(type, [warps * count], memory_space=IntegerAttr(3, i64)),
            UnitAttr(),
            sym_visibility=StringAttr("private"),
        )
        for type, count in types.items()
    ]


def emit_rows(
    builder: Builder,
    program: RowProgram,
    values: dict[SSAValue, SSAValue],
    shared: Sequence[memref.GlobalOp],
    emitter: "type[RowEmitter]",
) -> None:
    """Emit the code of a thread; `values` are the entry's arguments for the kernel's."""
    if program.width == 1:
        emitter(builder, program, values, shared, 1).emit()
        return
    wide, narrow = scf.YieldOp(), scf.YieldOp()
    builder.insert(scf.IfOp(is_aligned(builder), (), [Block([wide])], [Block([narrow])]))
    for end, width in ((wide, program.width), (narrow, 1)):
        inside = Builder(InsertPoint.before(end))
        emitter(inside, program, values, shared, width).emit()


@dataclass
class RowEmitter(RowElements):
    """One variant of the code, with accesses of `width` elements: a row is held in registers."""

    reductions: Counter[Attribute] = field(default_factory=Counter[Attribute])

    def emit(self) -> None:
        """Emit all nests, and the results."""
        program, b = self.program, self.builder
        thread = b.insert(gpu.ThreadIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X))).result
        block = b.insert(gpu.BlockIdOp(gpu.DimensionAttr(gpu.DimensionEnum.X))).result
        if program.rows_of_block == 1:
            self.thread, self.row = thread, block
            self._emit_row()
            return
        size = index_constant(b, program.threads_of_row)
        self.thread = b.insert(arith.RemUIOp(thread, size)).result
        own = b.insert(arith.DivUIOp(thread, size)).result
        first = b.insert(arith.MuliOp(block, index_constant(b, program.rows_of_block))).result
        self.row = b.insert(arith.AddiOp(first, own)).result
        # All threads of a warp have the same row.
        count = index_constant(b, program.rows.count)
        there = b.insert(arith.CmpiOp(self.row, count, "ult")).result
        end = scf.YieldOp()
        b.insert(scf.IfOp(there, (), [Block([end])]))
        self.builder = Builder(InsertPoint.before(end))
        self._emit_row()

    def _emit_row(self) -> None:
        self._place_chunks()
        self._compute_nests()
        for result in self.program.arguments[self.program.operands :]:
            self._write(result)

    def _compute_nests(self) -> None:
        for nest in self.program.nests:
            op = nest.nest.nest
            if isinstance(op, linalg.FillOp):
                self._fill(nest, op)
            elif nest.reduces:
                self._reduce(nest, op)
            elif nest.over_columns:
                self._map(nest, op)
            else:
                own = {a: self._scalar(v, k, nest.terms[n]) for n, a, v, k in _inputs(nest, op)}
                values = self.values | own | self._indices(nest, op, None, 0)
                for output, result in zip(
                    op.outputs, compute(self.builder, op.body.block, values), strict=True
                ):
                    self.scalars[output] = result

    def _fill(self, nest: RowNest, op: linalg.FillOp) -> None:
        value = self._outside(op.inputs[0])
        if nest.accesses[0] is Access.ROW:
            self.scalars[op.outputs[0]] = value
        else:
            self.elements[op.outputs[0]] = [[value] * self.width for _ in self.columns]

    def _map(self, nest: RowNest, op: linalg.GenericOp) -> None:
        made: list[Held] = [[] for _ in op.outputs]
        for chunk in range(len(self.columns)):
            lanes = [self._lane(nest, op, chunk, lane) for lane in range(self.width)]
            results = [compute(self.builder, op.body.block, values) for values in lanes]
            for number, held in enumerate(made):
                held.append([result[number] for result in results])
        for output, held in zip(op.outputs, made, strict=True):
            self.elements[output] = held

    def _reduce(self, nest: RowNest, op: linalg.GenericOp) -> None:
        combine = combiner(op)
        assert combine is not None
        total_argument = op.body.block.args[-1]
        b, total = self.builder, None
        type = total_argument.type
        for chunk, inside in enumerate(self.inside):
            for lane in range(self.width):
                value = self._reduced_value(nest, op, combine, chunk, lane)
                if inside is not None:
                    none = constant(b, neutral(combine), type)
                    value = b.insert(arith.SelectOp(inside, value, none)).result
                total = value if total is None else self._combined(combine, total, value)
        assert total is not None
        total = self._across_row(combine, total)
        before = self._scalar(op.outputs[0], Access.ROW)
        self.scalars[op.outputs[0]] = self._combined(combine, before, total)

    def _reduced_value(
        self, nest: RowNest, op: linalg.GenericOp, combine: Operation, chunk: int, lane: int
    ) -> SSAValue:
        """Return the contribution of an element: the operand of the combining op."""
        values = self._lane(nest, op, chunk, lane)
        for inner in op.body.block.ops:
            if inner is combine:
                break
            if not isinstance(inner, linalg.IndexOp):
                self.builder.insert(inner.clone(values))
        (given,) = (v for v in combine.operands if v is not op.body.block.args[-1])
        return values.get(given, given)

    def _combined(self, combine: Operation, a: SSAValue, b: SSAValue) -> SSAValue:
        values = dict(zip(combine.operands, (a, b), strict=True))
        return self.builder.insert(combine.clone(values)).results[0]

    def _across_row(self, combine: Operation, value: SSAValue) -> SSAValue:
        """Return the total of all threads of the row, which each of them gets."""
        b = self.builder
        value = self._across(combine, value, WARP)
        if not self.shared:
            return value
        warps = self.program.threads_of_row // WARP
        types = [cast(MemRefType[Any], own.properties["type"]) for own in self.shared]
        number = [type.element_type for type in types].index(value.type)
        name, type = self.shared[number].sym_name.data, types[number]
        buffer = b.insert(memref.GetGlobalOp(name, type)).memref
        first = index_constant(b, warps * self.reductions[value.type])
        self.reductions[value.type] += 1
        size = index_constant(b, WARP)
        warp = b.insert(arith.DivUIOp(self.thread, size)).result
        lane = b.insert(arith.RemUIOp(self.thread, size)).result
        leads = b.insert(arith.CmpiOp(lane, index_constant(b, 0), "eq")).result
        slot = b.insert(arith.AddiOp(first, warp)).result
        end = scf.YieldOp()
        b.insert(scf.IfOp(leads, (), [Block([end])]))
        Builder(InsertPoint.before(end)).insert(memref.StoreOp.get(value, buffer, [slot]))
        b.insert(gpu.BarrierOp())
        total = None
        for number in range(warps):
            place = b.insert(arith.AddiOp(first, index_constant(b, number))).result
            part = b.insert(memref.LoadOp.get(buffer, [place])).res
            total = part if total is None else self._combined(combine, total, part)
        assert total is not None
        return total

    def _across(self, combine: Operation, value: SSAValue, lanes: int) -> SSAValue:
        """Combine a row over lanes by exchanges over distances of 16, 8, 4, 2 and 1."""
        distance = lanes // 2
        while distance > 0:
            value = self._combined(
                combine, value, shuffled(self.builder, value, distance, lanes, XOR)
            )
            distance //= 2
        return value

    def _lane(
        self, nest: RowNest, op: linalg.GenericOp, chunk: int, lane: int
    ) -> dict[SSAValue, SSAValue]:
        """Return the values of a nest's arguments, and of its indices, at one element."""
        found = self.values | self._indices(nest, op, chunk, lane)
        for number, argument, buffer, access in _inputs(nest, op):
            if access is Access.PLACE:
                found[argument] = self._placed(buffer, nest.terms[number])[chunk][lane]
            elif access in (Access.ELEMENT, Access.COLUMN):
                found[argument] = self._held(buffer, access)[chunk][lane]
            else:
                found[argument] = self._scalar(buffer, access, nest.terms[number])
        return found

    def _indices(
        self, nest: RowNest, op: linalg.GenericOp, chunk: int | None, lane: int
    ) -> dict[SSAValue, SSAValue]:
        """Return the values of the body's `linalg.index` ops."""
        found: dict[SSAValue, SSAValue] = {}
        for inner in op.body.block.ops:
            if isinstance(inner, linalg.IndexOp):
                term = nest.dims.get(inner.dim.value.data)
                terms = () if term is None else (term,)
                column = None if chunk is None else self._column(chunk, lane)
                found[inner.result] = self._place(terms, column)
        return found


def _inputs(nest: RowNest, op: linalg.GenericOp) -> list[tuple[int, SSAValue, SSAValue, Access]]:
    """Return the arguments of a nest that are used, with their numbers and buffers."""
    found = zip(op.body.block.args, nest_buffers(nest), nest.accesses, strict=True)
    first = len(op.inputs)
    return [(n, *own) for n, own in enumerate(found) if n < first and own[0].uses]
