"""Writes `arith`, `scf` and `vector` ops one after another, with index arithmetic folded."""

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, llvm, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
    f32,
    i1,
    i64,
)
from xdsl.dialects.llvm import CallIntrinsicOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from braid.lowering.common.element_types import signless
from braid.lowering.common.emitted_dialects import memref, vector
from braid.support.sizes.expression import Extent, Size
from braid.support.sizes.operators import maximum, minimum

Index: TypeAlias = Extent | SSAValue
"""An index known now or when a kernel is called, or a value of type `index`."""

Value: TypeAlias = SSAValue

_INDEX = IndexType()
_KNOWN = int, Size


class Vectors(Protocol):
    """The vector registers of a machine, which code is emitted for."""

    @property
    def lanes(self) -> int:
        """The elements of one vector."""
        ...

    @property
    def has_fma(self) -> bool:
        """Return whether one instruction multiplies and adds with one rounding."""
        ...

    @property
    def scaling(self) -> str | None:
        """LLVM's name of the instruction that multiplies f32 by powers of two, if there is one."""
        ...


class Emitter:
    """Appends ops to a function; every vector has as many elements as `unit` has lanes.

    Arithmetic on numbers and sizes is done here and leaves no ops. Each constant is emitted once,
    at the top of the function; a size that code reads becomes an additional last argument.
    """

    def __init__(self, entry: Block, unit: Vectors) -> None:
        """Begin at the end of `entry`, whose last arguments are a range of iterations."""
        self.unit = unit
        self.iterations = entry.args[-2], entry.args[-1]
        """The first iteration of the grid that a call computes, and the one after its last."""
        self._sizes: dict[Size, Value] = {}
        self.lanes = unit.lanes
        self._entry = entry
        self._block = entry
        self._wide: dict[Value, Value] = {}
        self._constants: dict[tuple[str, Attribute], Value] = {}
        self._numbers: dict[int, Value] = {}
        self._vectors: dict[Attribute, VectorType[Any]] = {}
        self._known: dict[Hashable, Value] = {}  # in this block
        self._unknown_mask: Value | None = None

    def insert(self, op: Operation) -> Value:
        """Append `op` and return its first result."""
        self._block.add_op(op)
        return op.results[0]

    def make(
        self,
        op: type[Operation],
        operands: Sequence[Value],
        result: Attribute,
        properties: Mapping[str, Attribute] = MappingProxyType({}),
    ) -> Value:
        """Append an op with one result, a third of the time that xDSL's own builders take."""
        return self.insert(
            op.create(operands=operands, result_types=[result], properties=properties)
        )

    def apply(self, op: type[Operation], *operands: Value) -> Value:
        """Make an op as `make` does, with a result of the first operand's type."""
        return self.make(op, operands, operands[0].type)

    @property
    def builder(self) -> Builder:
        """Return the builder of the present block."""
        return Builder(InsertPoint.at_end(self._block))

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value that `make` emits, once for a key in a block and its nested blocks."""
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = make()
        return known

    def effect(self, op: Operation) -> None:
        """Append an op without results."""
        self._block.add_op(op)

    def vector_type(self, element_type: Attribute) -> VectorType[Any]:
        """Return the vector of `lanes` elements; unsigned integers become signless ones."""
        type = self._vectors.get(element_type)
        if type is None:
            type = VectorType(signless(element_type), [self.lanes])
            self._vectors[element_type] = type
        return type

    def constant(self, value: float | int, type: Attribute) -> Value:
        """Return `value` as a scalar, or in every lane of a vector type."""
        key = (repr(value), type)
        if key not in self._constants:
            op = arith.ConstantOp(_constant_attribute(value, type), type)
            first = self._entry.first_op
            if first is None:
                self._entry.add_op(op)
            else:
                self._entry.insert_op_before(op, first)
            self._constants[key] = op.result
        return self._constants[key]

    @property
    def sizes(self) -> tuple[Size, ...]:
        """Return the sizes whose values are the last arguments, in their order."""
        return tuple(self._sizes)

    def stack(self, type: Attribute, count: int) -> Value:
        """Return memory of the function's own for this many elements."""
        op = memref.AllocaOp.get(type, shape=[count])
        first = self._entry.first_op
        if first is None:
            self._entry.add_op(op)
        else:
            self._entry.insert_op_before(op, first)
        return op.memref

    def index(self, value: Index) -> Value:
        """Return `value` as an SSA value."""
        if isinstance(value, Size):
            if value not in self._sizes:
                self._sizes[value] = self._entry.insert_arg(_INDEX, len(self._entry.args))
            return self._sizes[value]
        if not isinstance(value, int):
            return value
        known = self._numbers.get(value)
        if known is None:
            known = self._numbers[value] = self.constant(value, _INDEX)
        return known

    def add(self, a: Index, b: Index) -> Index:
        """Return a + b."""
        if isinstance(a, _KNOWN) and isinstance(b, _KNOWN):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self._computed(arith.AddiOp, a, b)

    def mul(self, a: Index, b: Index) -> Index:
        """Return a · b."""
        if isinstance(a, _KNOWN) and isinstance(b, _KNOWN):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1 or b == 1:
            return b if a == 1 else a
        return self._computed(arith.MuliOp, a, b)

    def sub(self, a: Index, b: Index) -> Index:
        """Return a - b."""
        if isinstance(a, _KNOWN) and isinstance(b, _KNOWN):
            return a - b
        return a if b == 0 else self._computed(arith.SubiOp, a, b)

    def minimum(self, a: Index, b: Index) -> Index:
        """Return the smaller one."""
        if isinstance(a, _KNOWN) and isinstance(b, _KNOWN):
            return minimum(a, b)
        return self._computed(arith.MinUIOp, a, b)

    def maximum(self, a: Index, b: Index) -> Index:
        """Return the larger one."""
        if isinstance(a, _KNOWN) and isinstance(b, _KNOWN):
            return maximum(a, b)
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self._computed(arith.MaxUIOp, a, b)

    def coordinates(self, index: Index, extents: Sequence[Extent]) -> list[Index]:
        """Return the multi-index of a row-major position."""
        result: list[Index] = []
        for extent in reversed(extents[1:]):
            index, coordinate = self.divmod(index, extent)
            result.insert(0, coordinate)
        return [index, *result] if extents else []

    def divmod(self, a: Index, b: Index) -> tuple[Index, Index]:
        """Return the quotient and remainder of non-negative numbers."""
        if isinstance(a, _KNOWN) and isinstance(b, int):
            return a // b, a % b
        if a == 0 or b == 1:
            return a, 0
        return self._computed(arith.DivUIOp, a, b), self._computed(arith.RemUIOp, a, b)

    def _computed(self, op: type[Operation], a: Index, b: Index) -> Value:
        """Return an op on indices, once in a block and those inside it."""
        operands = (self.index(a), self.index(b))
        return self.once((op, *operands), lambda: self.make(op, operands, _INDEX))

    def dot(self, indices: Sequence[Index], strides: Sequence[Extent]) -> Index:
        """Return Σ indices[i] · strides[i]."""
        total: Index = 0
        for index, stride in zip(indices, strides, strict=True):
            total = self.add(total, self.mul(index, stride))
        return total

    def loop(self, lower: Index, upper: Index, step: int, body: Callable[[Index], None]) -> None:
        """Emit an `scf.for` without carried values; one known iteration needs no loop."""
        self.carry(lower, upper, step, (), lambda index, _: body(index) or ())

    def carry(
        self,
        lower: Index,
        upper: Index,
        step: int,
        initial: Sequence[Value],
        body: Callable[[Index, Sequence[Value]], Sequence[Value]],
    ) -> Sequence[Value]:
        """Emit an `scf.for` that carries values: `body` maps the values of one iteration to those
        of the next.

        Returns the values after the last iteration.
        """
        if isinstance(lower, int) and isinstance(upper, int) and lower < upper <= lower + step:
            return body(lower, initial)
        block = Block(arg_types=[IndexType(), *(value.type for value in initial)])
        with self._inside(block):
            results = body(block.args[0], block.args[1:])
            self.effect(scf.YieldOp(*results))
        bounds = (self.index(lower), self.index(upper), self.index(step))
        op = scf.ForOp(*bounds, list(initial), block)
        self.effect(op)
        return op.results

    def repeat(
        self,
        initial: Sequence[Value],
        body: Callable[[Sequence[Value]], Sequence[Value]],
        goes_on: Callable[[Sequence[Value]], Value],
    ) -> Sequence[Value]:
        """Emit an `scf.while` that runs `body` once, and again while `goes_on` holds.

        Returns the values after the last iteration.
        """
        types = [value.type for value in initial]
        before, after = Block(arg_types=types), Block(arg_types=types)
        with self._inside(before):
            results = body(before.args)
            self.effect(scf.ConditionOp(goes_on(results), *results))
        after.add_op(scf.YieldOp(*after.args))
        op = scf.WhileOp(list(initial), types, [before], [after])
        self.effect(op)
        return op.results

    def branch(
        self, index: Index, bound: Index, below: Callable[[], None], otherwise: Callable[[], None]
    ) -> None:
        """Run `below` if index < bound, else `otherwise`."""
        if isinstance(index, int) and isinstance(bound, int):
            (below if index < bound else otherwise)()
            return
        condition = self.insert(arith.CmpiOp(self.index(index), self.index(bound), "ult"))
        blocks = (Block(), Block())
        for block, body in zip(blocks, (below, otherwise), strict=True):
            with self._inside(block):
                body()
                self.effect(scf.YieldOp())
        self.effect(scf.IfOp(condition, [], [blocks[0]], [blocks[1]]))

    def when(self, condition: Value, body: Callable[[], None]) -> None:
        """Run `body` if a value of type `i1` is true."""
        block = Block()
        with self._inside(block):
            body()
            self.effect(scf.YieldOp())
        self.effect(scf.IfOp(condition, [], [block]))

    def replaced(
        self, condition: Value, values: Sequence[Value], body: Callable[[], Sequence[Value]]
    ) -> Sequence[Value]:
        """Return `values`, or those that `body` computes if a value of type `i1` is true."""
        block, otherwise = Block(), Block([scf.YieldOp(*values)])
        with self._inside(block):
            self.effect(scf.YieldOp(*body()))
        op = scf.IfOp(condition, [value.type for value in values], [block], [otherwise])
        self.effect(op)
        return op.results

    def broadcast(self, scalar: Value) -> Value:
        """Return `scalar` in every lane."""
        return self.make(vector.BroadcastOp, [scalar], self.vector_type(scalar.type))

    def convert(self, op: type[Operation], value: Value, element_type: Attribute) -> Value:
        """Return a conversion op of `arith` on a vector, to a vector of `element_type`.

        xDSL's builders of these ops are typed for scalars.
        """
        result = self.vector_type(element_type)
        wide = self._wide.get(value)
        if op is arith.ExtUIOp and wide is not None and wide.type == result:
            return wide
        return self.make(op, [value], result)

    def narrow(self, value: Value, element_type: Attribute) -> Value:
        """Narrow integers that fit an unsigned `element_type`; what widens them again gets
        `value`.
        """
        narrow = self.convert(arith.TruncIOp, value, element_type)
        self._wide[narrow] = value
        return narrow

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """Return a · b + c, rounded once where the vector unit can."""
        if not self.unit.has_fma:
            return self.apply(arith.AddfOp, self.apply(arith.MulfOp, a, b), c)
        return self.apply(vector.FMAOp, a, b, c)

    def fence(self, value: Value) -> Value:
        """Return the vector of i32 in a form that LLVM does not look through: ops on both sides
        stay apart.
        """
        bits = self.insert(vector.BitcastOp(value, self.vector_type(f32)))
        name = f"llvm.arithmetic.fence.v{self.lanes}f32"
        fenced = self.insert(CallIntrinsicOp(name, [bits], [bits.type]))
        return self.insert(vector.BitcastOp(fenced, value.type))

    def opaque(self, index: Index) -> Index:
        """Return the index in a form that LLVM does not look through: it takes no addresses apart
        across it.
        """
        if isinstance(index, int):
            return index
        bits = self.make(arith.IndexCastOp, [self.index(index)], i64)
        same = self.insert(llvm.InlineAsmOp("", "=r,0", [bits], [i64]))
        return self.make(arith.IndexCastOp, [same], _INDEX)

    def mask(self, count: Index) -> Value:
        """Return a mask whose first `count` lanes are on; all of them if `count` is `lanes` or
        more.
        """
        return self.insert(vector.CreateMaskOp([self.index(count)], self.vector_type(i1)))

    def unknown_mask(self) -> Value:
        """Return a mask whose lanes are all on, as only running the kernel shows.

        For a masked store of truncated numbers, LLVM 22 writes a whole i32 or i64 instead of a byte
        if it knows that one lane of the mask is on. Grids begin below 2^63.
        """
        if self._unknown_mask is None:
            begin, _ = self.iterations
            bits = arith.ConstantOp(IntegerAttr(63, IndexType()))
            sign = arith.ShRUIOp(begin, bits.result)
            one = arith.ConstantOp(IntegerAttr(1, IndexType()))
            all_bits = arith.SubiOp(sign.result, one.result)
            lanes = arith.ConstantOp(IntegerAttr(self.lanes, IndexType()))
            count = arith.AndIOp(all_bits.result, lanes.result)
            mask = vector.CreateMaskOp([count.result], self.vector_type(i1))
            ops = [bits, sign, one, all_bits, lanes, count, mask]
            first = self._entry.first_op
            if first is None:
                self._entry.add_ops(ops)
            else:
                self._entry.insert_ops_before(ops, first)
            self._unknown_mask = mask.results[0]
        return self._unknown_mask

    def tail_mask(self, count: Index) -> Value | None:
        """Return a mask whose first `count` lanes are on, None where all are known to be."""
        return None if isinstance(count, int) and count >= self.lanes else self.mask(count)

    @contextmanager
    def _inside(self, block: Block) -> Generator[None]:
        outer, known = self._block, self._known
        self._block, self._known = block, dict(known)
        yield
        self._block, self._known = outer, known


def _signed(value: float | int, type: Attribute) -> float | int:
    """Return a number as a signless integer type holds it: large unsigned ones are negative."""
    if not isinstance(type, IntegerType) or type == i1:
        return value
    bits = cast(IntegerType, type).width.data
    return int(value) - (1 << bits) if value >= 1 << (bits - 1) else value


def _constant_attribute(value: float | int, type: Attribute) -> Any:
    if isinstance(type, VectorType):
        value = _signed(value, cast(VectorType[Attribute], type).element_type)
        return cast(Any, DenseIntOrFPElementsAttr).from_list(type, [value])
    if isinstance(type, AnyFloat):
        return FloatAttr(value, type)
    return IntegerAttr(int(value), cast(IndexType, type))
