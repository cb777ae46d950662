"""Hold a thread's elements of its row in registers, and read and write them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.rewriter import InsertPoint

from braid.lowering.common.element_types import constant
from braid.lowering.common.tensor_loops import index_constant
from braid.lowering.gpu.nests.linear_access import flat_view
from braid.lowering.gpu.nests.row_access import Access, Term
from braid.lowering.gpu.nests.row_program import RowProgram
from braid.lowering.gpu.nests.wide_access import element_of, load_vector, store_vector

Held = list[list[SSAValue]]
"""Elements that a thread holds: chunks of as many as it reads at once."""


@dataclass
class RowElements:
    """The elements of a row in the registers of its threads, `width` at a time."""

    builder: Builder
    program: RowProgram
    values: dict[SSAValue, SSAValue]
    shared: Sequence[memref.GlobalOp]
    width: int
    thread: SSAValue = field(init=False)
    row: SSAValue = field(init=False)
    elements: dict[SSAValue, Held] = field(default_factory=dict[SSAValue, Held])
    scalars: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    placed: dict[tuple[SSAValue, tuple[Term, ...]], Held] = field(
        default_factory=dict[tuple[SSAValue, tuple[Term, ...]], Held]
    )

    def _place_chunks(self) -> None:
        """Find the columns of each chunk of the thread, and whether it lies in the row: None for
        always.
        """
        b, columns = self.builder, self.program.rows.columns
        stride = self.program.threads_of_row * self.width
        first = b.insert(arith.MuliOp(self.thread, index_constant(b, self.width))).result
        base = b.insert(arith.MuliOp(self.row, index_constant(b, columns))).result
        self.columns: list[SSAValue] = []
        self.places: list[SSAValue] = []
        self.inside: list[SSAValue | None] = []
        for start in range(0, columns, stride):
            column = b.insert(arith.AddiOp(first, index_constant(b, start))).result
            self.columns.append(column)
            self.places.append(b.insert(arith.AddiOp(base, column)).result)
            whole = start + stride <= columns
            limit = index_constant(b, columns)
            self.inside.append(
                None if whole else b.insert(arith.CmpiOp(column, limit, "ult")).result
            )

    def _column(self, chunk: int, lane: int) -> SSAValue:
        column = self.columns[chunk]
        if lane == 0:
            return column
        return self.builder.insert(arith.AddiOp(column, index_constant(self.builder, lane))).result

    def _place(self, terms: Sequence[Term], column: SSAValue | None) -> SSAValue:
        """Return the sum of terms of the row, and of a column."""
        b = self.builder
        total = index_constant(b, 0)
        for term in terms:
            number = column if term.of_column else self.row
            assert number is not None
            if term.divisor > 1:
                number = b.insert(arith.DivUIOp(number, index_constant(b, term.divisor))).result
            if not self._is_outermost(term):
                number = b.insert(arith.RemUIOp(number, index_constant(b, term.extent))).result
            part = b.insert(arith.MuliOp(number, index_constant(b, term.step))).result
            total = b.insert(arith.AddiOp(total, part)).result
        return total

    def _is_outermost(self, term: Term) -> bool:
        rows = self.program.rows
        return term.divisor * term.extent == (rows.columns if term.of_column else rows.count)

    def _placed(self, buffer: SSAValue, terms: tuple[Term, ...]) -> Held:
        """Return the elements of a buffer that is read one by one; neighbours may share one."""
        if (buffer, terms) not in self.placed:
            source = flat_view(self.builder, self._outside(buffer))
            shared = all(t.divisor % self.width == 0 for t in terms if t.of_column)
            held: Held = []
            for chunk, inside in enumerate(self.inside):
                lanes = [
                    self._load_one(source, self._place(terms, self._column(chunk, lane)), inside)
                    for lane in range(1 if shared else self.width)
                ]
                held.append(lanes * self.width if shared else lanes)
            self.placed[buffer, terms] = held
        return self.placed[buffer, terms]

    def _load_one(self, source: SSAValue, place: SSAValue, inside: SSAValue | None) -> SSAValue:
        """Return an element; the first one where the chunk lies after the row."""
        b = self.builder
        if inside is not None:
            place = b.insert(arith.SelectOp(inside, place, index_constant(b, 0))).result
        return b.insert(memref.LoadOp.get(source, [place])).res

    def _held(self, buffer: SSAValue, access: Access) -> Held:
        """Return the thread's elements of a buffer, which is read when they are first asked for."""
        if buffer not in self.elements:
            places = self.places if access is Access.ELEMENT else self.columns
            source = flat_view(self.builder, self._outside(buffer))
            self.elements[buffer] = [
                self._load(source, place, inside)
                for place, inside in zip(places, self.inside, strict=True)
            ]
        return self.elements[buffer]

    def _load(self, source: SSAValue, place: SSAValue, inside: SSAValue | None) -> list[SSAValue]:
        """Return a chunk; zeros where it lies after the row."""

        def read(b: Builder) -> list[SSAValue]:
            if self.width == 1:
                return [b.insert(memref.LoadOp.get(source, [place])).res]
            loaded = load_vector(b, source, place, self.width)
            return [element_of(b, loaded, n) for n in range(self.width)]

        if inside is None:
            return read(self.builder)
        type = cast(MemRefType[Any], source.type).element_type
        return self._either(inside, read, lambda b: [_zero(b, type)] * self.width, type)

    def _either(
        self,
        condition: SSAValue,
        then: Callable[[Builder], list[SSAValue]],
        otherwise: Callable[[Builder], list[SSAValue]],
        type: Attribute,
    ) -> list[SSAValue]:
        blocks: list[Block] = []
        for make in (then, otherwise):
            block = Block()
            inside = Builder(InsertPoint.at_end(block))
            inside.insert(scf.YieldOp(*make(inside)))
            blocks.append(block)
        choice = scf.IfOp(condition, [type] * self.width, [blocks[0]], [blocks[1]])
        return list(self.builder.insert(choice).results)

    def _scalar(self, buffer: SSAValue, access: Access, terms: tuple[Term, ...] = ()) -> SSAValue:
        """Return the element of the row, or the only one."""
        if access is Access.ROW_PLACE:
            if (buffer, terms) not in self.placed:
                source = flat_view(self.builder, self._outside(buffer))
                load = memref.LoadOp.get(source, [self._place(terms, None)])
                self.placed[buffer, terms] = [[self.builder.insert(load).res]]
            return self.placed[buffer, terms][0][0]
        if buffer not in self.scalars:
            source = self._outside(buffer)
            outside: Attribute = source.type
            if not isinstance(outside, MemRefType):
                return source
            place = [self.row] if access is Access.ROW else [index_constant(self.builder, 0)]
            rank = len(cast(MemRefType[Any], outside).get_shape())
            load = memref.LoadOp.get(
                flat_view(self.builder, source) if rank else source, place if rank else []
            )
            self.scalars[buffer] = self.builder.insert(load).res
        return self.scalars[buffer]

    def _outside(self, value: SSAValue) -> SSAValue:
        return self.values.get(value, value)

    def _write(self, result: SSAValue) -> None:
        b, target = self.builder, flat_view(self.builder, self._outside(result))
        if result in self.scalars:
            leads = b.insert(arith.CmpiOp(self.thread, index_constant(b, 0), "eq")).result
            store = memref.StoreOp.get(self.scalars[result], target, [self.row])
            self._only_if(leads, lambda inside: inside.insert(store))
            return
        for held, place, inside in zip(
            self.elements[result], self.places, self.inside, strict=True
        ):

            def write(b: Builder, held: list[SSAValue] = held, place: SSAValue = place) -> None:
                if self.width == 1:
                    b.insert(memref.StoreOp.get(held[0], target, [place]))
                else:
                    store_vector(b, held, target, place)

            if inside is None:
                write(b)
            else:
                self._only_if(inside, write)

    def _only_if(self, condition: SSAValue, write: Callable[[Builder], object]) -> None:
        end = scf.YieldOp()
        self.builder.insert(scf.IfOp(condition, (), [Block([end])]))
        write(Builder(InsertPoint.before(end)))


def _zero(builder: Builder, type: Attribute) -> SSAValue:
    return index_constant(builder, 0) if isinstance(type, IndexType) else constant(builder, 0, type)
