"""A tile of a product whose buffers do not begin at multiples of 16 bytes: point by point."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, MemRefType, i32
from xdsl.ir import SSAValue

from braid.lowering.common.linalg_stages import accumulated
from braid.lowering.gpu.contraction.code import Code, Value
from braid.lowering.gpu.contraction.problem import Contraction, Operand

Write = Callable[
    [Code, list[SSAValue], tuple[Value, Value, Value], Mapping[SSAValue, SSAValue]], None
]
"""Stores what follows of sums at a batch, a row, and neighbouring columns."""


class TileSize(Protocol):
    """Rows and columns of a block's tile, and its threads."""

    @property
    def rows(self) -> int:
        """Rows of the tile."""
        ...

    @property
    def columns(self) -> int:
        """Columns of the tile."""
        ...

    @property
    def threads(self) -> int:
        """Threads of the block."""
        ...


def emit_single_points(
    code: Code,
    problem: Contraction,
    tiles: TileSize,
    write: Write,
    values: Mapping[SSAValue, SSAValue],
    where: tuple[Value, Value, Value, Value],
) -> None:
    """Emit the code of a thread; with n threads, it takes every n-th point of the block's tile.

    `where` is the thread, the batch, and the tile's first row and column.
    """
    thread, batch, row, column = where
    rows, columns = problem.count(problem.rows), problem.count(problem.columns)
    end, step = (code.number(n) for n in (tiles.rows * tiles.columns, tiles.threads))

    def body(own: Code, place: Value, carried: Sequence[Value]) -> Sequence[Value]:
        m = own.add(row, own.div(place, tiles.columns))
        n = own.add(column, own.rem(place, tiles.columns))
        inside = own.insert(arith.AndIOp(own.below(m, rows), own.below(n, columns)))

        own.choose(inside, lambda at: _emit_point(at, problem, write, values, (batch, m, n)))
        return carried

    code.loop(thread, end, step, [], body)


def emit_neighbours(
    code: Code,
    problem: Contraction,
    width: int,
    write: Write,
    values: Mapping[SSAValue, SSAValue],
    place: tuple[Value, Value, Value],
) -> None:
    """Emit the code of a thread that computes some neighbours in a row from a place on."""
    batch, row, column = place
    begin, end, step = (code.number(n) for n in (0, width, 1))

    def body(own: Code, n: Value, carried: Sequence[Value]) -> Sequence[Value]:
        _emit_point(own, problem, write, values, (batch, row, own.add(column, n)))
        return carried

    code.loop(begin, end, step, [], body)


def _emit_point(
    code: Code,
    problem: Contraction,
    write: Write,
    values: Mapping[SSAValue, SSAValue],
    place: tuple[Value, Value, Value],
) -> None:
    batch, *lines = place
    lines = [
        line_of(code, values[operand.value], operand, batch, line)
        for operand, line in zip((problem.a, problem.b), lines, strict=True)
    ]
    write(code, [dot(code, problem, lines)], place, values)


def dot(code: Code, problem: Contraction, lines: Sequence[Value]) -> Value:
    """Return the sum of products of a line of A and one of B."""
    operands = (problem.a, problem.b)

    def add(own: Code, index: Value, sums: Sequence[Value]) -> Sequence[Value]:
        elements = [
            element_at(own, operand, line, index)
            for operand, line in zip(operands, lines, strict=True)
        ]
        factors = elements[::-1] if problem.turned else elements
        return [accumulated(own.builder, problem.stage, problem.types, factors, sums[0])]

    begin, one, end = (code.number(v) for v in (0, 1, problem.count(problem.depths)))
    zero = code.number(0, i32) if problem.is_integer else code.number(0.0, Float32Type())
    (total,) = code.loop(begin, end, one, [zero], add)
    return total


def line_of(code: Code, buffer: SSAValue, operand: Operand, batch: Value, line: Value) -> Value:
    """Return where a line of an operand begins."""
    pointer = code.pointer(buffer)
    outer = code.offset(batch, operand.batch, operand.bytes)
    return code.at(pointer, code.add(outer, code.offset(line, operand.lines, operand.bytes)))


def element_at(code: Code, operand: Operand, line: Value, depth: Value) -> Value:
    """Return the element of a line at a place along K."""
    type = cast(MemRefType[Any], operand.value.type).element_type
    offset = code.offset(depth, operand.depths, operand.bytes)
    return code.load(code.at(line, offset), type, operand.bytes)
