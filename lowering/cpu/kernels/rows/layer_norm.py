"""The loops of a layer normalization: one row in each grid iteration.

Rows are also a channel of an image (instance normalization), or several (group normalization),
whose scale is one number for each.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import Attribute

from braid.analysis.nests.normalization import LayerNormNest, RowFactors
from braid.lowering.common.emitted_dialects import math as math_ops
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.compare import choose
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.rows import added, each, fold
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of

At = Callable[[Index, Value | None], Value]
"""A vector at a position; a mask may disable lanes."""


@dataclass(frozen=True)
class LayerNormLoops:
    """Emits the mean, then the mean square of the differences, then the result."""

    nest: LayerNormNest
    unit: VectorUnit

    @property
    def grid(self) -> Extent:
        """Return iterations of the grid."""
        return product_of(self.nest.outer)

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], row: Index) -> None:
        """Emit one row."""
        nest, x, y = self.nest, buffers[self.nest.argument], buffers[-1]
        length, kind = nest.length, x.element_type
        base = e.mul(row, length)
        share = _share(e, length, kind)

        def add(position: Index, mask: Value | None, sum: Value) -> Value:
            return added(e, sum, x.load(e, e.add(base, position), mask))

        mean = e.apply(arith.MulfOp, fold(e, length, 0.0, add, added, kind), share)

        def add_square(position: Index, mask: Value | None, sum: Value) -> Value:
            value = x.load(e, e.add(base, position), mask)
            difference = e.apply(arith.SubfOp, value, mean)
            if mask is not None:
                difference = choose(e, mask, difference, e.constant(0.0, difference.type))
            return e.fma(difference, difference, sum)

        squares = fold(e, length, 0.0, add_square, added, kind)
        variance = e.apply(arith.MulfOp, squares, share)
        shifted = added(e, variance, e.constant(nest.epsilon, variance.type))
        root = e.insert(math_ops.SqrtOp(shifted))
        factor = e.apply(arith.DivfOp, e.constant(1.0, root.type), root)

        def normalize(section: Index) -> None:
            begin = e.add(base, e.mul(section, nest.section_length))
            scale, bias = (
                self._factors(e, buffers, factors, row, section)
                for factors in (nest.scale, nest.bias)
            )

            def at(position: Index, mask: Value | None) -> None:
                offset = e.add(begin, position)
                difference = e.apply(arith.SubfOp, x.load(e, offset, mask), mean)
                product = e.apply(arith.MulfOp, scale(position, mask), factor)
                y.store(e, e.fma(difference, product, bias(position, mask)), offset, mask)

            each(e, nest.section_length, at)

        e.loop(0, nest.sections, 1, normalize)

    def _factors(
        self, e: Emitter, buffers: Sequence[Buffer], factors: RowFactors, row: Index, section: Index
    ) -> At:
        """Return scale or bias at the positions of a section."""
        if factors.number is not None:
            constant = e.constant(
                factors.number, e.vector_type(buffers[self.nest.argument].element_type)
            )
            return lambda position, mask: constant
        first: Index = 0
        if any(step != 0 for step in factors.steps):
            first = e.dot(e.coordinates(row, self.nest.outer), factors.steps)
        buffer = buffers[factors.argument]
        if factors.count == self.nest.length:
            begin = e.add(first, e.mul(section, self.nest.section_length))
            return lambda position, mask: buffer.load(e, e.add(begin, position), mask)
        repeated = buffer.splat(e, first if factors.count == 1 else e.add(first, section))
        return lambda position, mask: repeated


def _share(e: Emitter, length: Extent, kind: Attribute) -> Value:
    """Return 1 / length in every lane, the same number whether the length is known or not."""
    if isinstance(length, int):
        return e.constant(1.0 / length, e.vector_type(kind))
    number = e.make(arith.IndexCastOp, [e.index(length)], i64)
    share = e.apply(arith.DivfOp, e.constant(1.0, f64), e.make(arith.SIToFPOp, [number], f64))
    return e.broadcast(share if kind == f64 else e.make(arith.TruncFOp, [share], kind))
