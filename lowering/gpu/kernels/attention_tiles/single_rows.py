"""Attention for buffers that are not aligned to 16 bytes: each thread computes one query."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import SSAValue

from braid.lowering.gpu.contraction.code import SHARED, Code, Value
from braid.lowering.gpu.contraction.epilogue import merge_points, point_of
from braid.lowering.gpu.contraction.kernel import Product
from braid.lowering.gpu.contraction.single_points import dot, element_at, line_of
from braid.lowering.gpu.kernels.attention_tiles.kernel import Attention
from braid.lowering.gpu.kernels.attention_tiles.weights import (
    MINUS_INFINITY,
    exponents,
    less,
    single,
)
from braid.lowering.gpu.launch.launches import dynamic_shared


def emit_single_rows(
    code: Code,
    attention: Attention,
    values: Mapping[SSAValue, SSAValue],
    entry: str,
    where: tuple[Value, Value],
) -> None:
    """Emit the code of a thread; weighted values are staged and added up in shared memory.

    `where` is a batch and the first row; threads may be more than `attention` has.
    """
    batch, row = where
    thread = code.thread()
    shared = code.insert(llvm.AddressOfOp(dynamic_shared(entry), SHARED))
    weighted = replace(attention.weighted, narrow=True)
    own = code.at(shared, code.mul(thread, weighted.tiles.staged_pitch))
    m = code.least(code.add(row, thread), attention.scores.rows - 1)
    code.choose(
        code.below(thread, attention.rows),
        lambda at: _emit_row(at, attention, values, (batch, m), own),
    )
    code.barrier()
    tile = weighted.whole_tile((thread, batch, row, code.number(0)), values)
    code.choose(
        code.below(thread, weighted.tiles.threads),
        lambda at: weighted.write_staged(at, shared, tile),
    )


def _emit_row(
    code: Code,
    attention: Attention,
    values: Mapping[SSAValue, SSAValue],
    where: tuple[Value, Value],
    own: Value,
) -> None:
    """Compute one query, whose results begin at `own`."""
    batch, row = where
    scores, weighted = attention.scores, attention.weighted
    zero, one = code.number(0, Float32Type()), code.number(1, Float32Type())
    _clear(code, own, weighted)
    a, b = scores.problem.a, scores.problem.b
    query = line_of(code, values[a.value], a, batch, row)

    def turn(at: Code, key: Value, carried: Sequence[Value]) -> Sequence[Value]:
        before, total = carried
        lines = [query, line_of(at, values[b.value], b, batch, key)]
        sums = [dot(at, scores.problem, lines)]
        score = _after(at, scores, sums, (batch, row, key), values)
        most = at.insert(arith.MaximumfOp(before, score))
        log2_e, base = exponents(at, most)
        scale = at.power_of_two(less(at, before, log2_e, base))
        weight = at.power_of_two(less(at, score, log2_e, base))

        def add(inner: Code, column: Value, old: Value) -> Value:
            operand = weighted.problem.b
            line = line_of(inner, values[operand.value], operand, batch, column)
            value = single(inner, element_at(inner, operand, line, key))
            scaled = inner.insert(arith.MulfOp(old, scale))
            return inner.insert(llvm.FMAOp(weight, value, scaled))

        _each(at, own, weighted, add)
        total = at.insert(arith.MulfOp(total, scale))
        return [most, at.insert(arith.AddfOp(total, weight))]

    begin, end, step = (code.number(n) for n in (0, scores.columns, 1))
    start = [code.number(MINUS_INFINITY, Float32Type()), zero]
    _, total = code.loop(begin, end, step, start, turn)
    inverse = code.insert(arith.DivfOp(one, total))
    _each(code, own, weighted, lambda at, column, old: at.insert(arith.MulfOp(old, inverse)))


def _after(
    code: Code,
    product: Product,
    sums: list[SSAValue],
    place: tuple[Value, Value, Value],
    values: Mapping[SSAValue, SSAValue],
) -> Value:
    """Return a score in 32 bits, after the elementwise ops on it."""
    problem = product.problem
    parts = (problem.batches, problem.rows, problem.columns)
    points = [point_of(code, p, v) for p, v in zip(parts, place, strict=True)]
    ((value,),) = product.epilogue.compute(code, sums, merge_points(code, *points), None, values)
    return single(code, value)


def _each(
    code: Code, row: Value, product: Product, change: Callable[[Code, Value, Value], Value]
) -> None:
    """Change each f32 of a row of the product's columns; `change` gets the column and the old."""

    def body(at: Code, column: Value, carried: Sequence[Value]) -> Sequence[Value]:
        place = at.at(row, at.mul(column, 4))
        at.store(change(at, column, at.load(place, Float32Type(), 4)), place, 4)
        return carried

    begin, end, step = (code.number(n) for n in (0, product.columns, 1))
    code.loop(begin, end, step, [], body)


def _clear(code: Code, row: Value, product: Product) -> None:
    """Make a row of the product's columns zeros."""

    def body(at: Code, column: Value, carried: Sequence[Value]) -> Sequence[Value]:
        at.store(at.number(0, Float32Type()), at.at(row, at.mul(column, 4)), 4)
        return carried

    begin, end, step = (code.number(n) for n in (0, product.columns, 1))
    code.loop(begin, end, step, [], body)
