"""The code of a `RowProgram` whose rows are too long for registers: loops of a block over its row.

Each reduction is a loop of its own, in which what it reduces is computed from the operands, and a
last loop computes and writes the results that are as long as a row: a softmax reads its operand
three times, from the cache where rows fit there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint

from braid.lowering.common.element_types import constant
from braid.lowering.common.tensor_loops import index_constant
from braid.lowering.gpu.nests.emit_rows import Held, RowEmitter
from braid.lowering.gpu.nests.row_access import Access, RowNest, Term
from braid.lowering.gpu.nests.row_program import combiner, neutral

Scalars: TypeAlias = dict[SSAValue, SSAValue]


@dataclass
class LongRowEmitter(RowEmitter):
    """One variant of the code, with accesses of `width` elements: a row is read again and again."""

    makers: dict[SSAValue, tuple[RowNest, Scalars]] = field(default_factory=dict[Any, Any])
    """The nest that makes each buffer's elements, and the contents of buffers of rows, which are
    reused."""
    before: Builder | None = None
    """The builder in front of the loop that is being written, if one is."""

    def _emit_row(self) -> None:
        self._compute_nests()
        results = self.program.arguments[self.program.operands :]
        long = [result for result in results if result in self.makers]
        for result in results:
            if result not in long:
                self._write(result)
        if long:
            self._over_row([], lambda _: self._write_all(long))

    def _write_all(self, results: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Write all results after all are computed: one may lie where an operand does."""
        for result in results:
            self._held(result, Access.ELEMENT)
        for result in results:
            self._write(result)
        return []

    def _over_row(
        self,
        carried: Sequence[SSAValue],
        chunk: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> Sequence[SSAValue]:
        """Return a loop over the thread's chunks of the row, which carries values through
        `chunk`.
        """
        b, columns = self.builder, self.program.rows.columns
        first = b.insert(arith.MuliOp(self.thread, index_constant(b, self.width))).result
        base = b.insert(arith.MuliOp(self.row, index_constant(b, columns))).result
        step = index_constant(b, self.program.threads_of_row * self.width)
        block = Block(arg_types=[IndexType(), *(value.type for value in carried)])
        loop = b.insert(scf.ForOp(first, index_constant(b, columns), step, carried, block))
        self.before = Builder(InsertPoint.before(loop))
        self.builder = Builder(InsertPoint.at_end(block))
        self.elements, placed = {}, self.placed
        self.placed = {}
        self.columns, self.inside = [block.args[0]], [None]
        self.places = [self.builder.insert(arith.AddiOp(base, block.args[0])).result]
        self.builder.insert(scf.YieldOp(*chunk(block.args[1:])))
        self.before, self.builder, self.elements, self.placed = None, b, {}, placed
        return loop.results

    def _fill(self, nest: RowNest, op: linalg.FillOp) -> None:
        if nest.accesses[0] is Access.ROW:
            super()._fill(nest, op)
        else:
            self.makers[op.outputs[0]] = nest, {}

    def _map(self, nest: RowNest, op: linalg.GenericOp) -> None:
        self.makers.update(dict.fromkeys(op.outputs, (nest, dict(self.scalars))))

    def _reduce(self, nest: RowNest, op: linalg.GenericOp) -> None:
        combine = combiner(op)
        assert combine is not None
        none = constant(self.builder, neutral(combine), op.body.block.args[-1].type)

        def chunk(totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return [
                self._combined(combine, total, self._reduced_value(nest, op, combine, 0, lane))
                for lane, total in enumerate(totals)
            ]

        total, *others = self._over_row([none] * self.width, chunk)
        for other in others:
            total = self._combined(combine, total, other)
        before = self._scalar(op.outputs[0], Access.ROW)
        total = self._across_row(combine, total)
        self.scalars[op.outputs[0]] = self._combined(combine, before, total)

    def _held(self, buffer: SSAValue, access: Access) -> Held:
        """Return the elements of the chunk, computed where the kernel itself makes them."""
        if buffer not in self.elements and (maker := self.makers.get(buffer)) is not None:
            nest, op = maker[0], maker[0].nest.nest
            now, self.scalars = self.scalars, maker[1]
            if isinstance(op, linalg.FillOp):
                super()._fill(nest, op)
            else:
                super()._map(nest, op)
            self.scalars = now
        return super()._held(buffer, access)

    def _scalar(self, buffer: SSAValue, access: Access, terms: tuple[Term, ...] = ()) -> SSAValue:
        """Return the element of the row, which is read before the loop that first asks for it."""
        if self.before is None:
            return super()._scalar(buffer, access, terms)
        inside, self.builder = self.builder, self.before
        value = super()._scalar(buffer, access, terms)
        self.builder = inside
        return value
