"""Emits the transforms of Winograd's algorithms on vectors; pairs of rows share their terms."""

from collections.abc import Callable, Iterable, Sequence

from xdsl.dialects import arith

from braid.dialects.braid.winograd import Matrix, is_pair
from braid.lowering.emit.emitter import Emitter, Value

Square = Sequence[Sequence[Value]]
"""The vectors at the places of a tile, row by row."""

_Line = Callable[[Sequence[Value]], list[Value]]


def transformed_input(e: Emitter, matrix: Matrix, tile: Square) -> Square:
    """Return Bᵀ d B of a tile d of inputs, for Bᵀ = `matrix`."""
    return _along_both(tile, lambda line: _input_line(e, matrix, line))


def transformed_output(e: Emitter, matrix: Matrix, tile: Square) -> Square:
    """Return Aᵀ d A of a tile d of products, for Aᵀ = `matrix`."""
    return _along_both(tile, lambda line: _output_line(e, matrix, line))


def _along_both(tile: Square, line: _Line) -> Square:
    """Transform column by column, then row by row, so that few vectors are alive at once."""
    columns = [line(column) for column in zip(*tile, strict=True)]
    return [line(row) for row in zip(*columns, strict=True)]


def _input_line(e: Emitter, matrix: Matrix, line: Sequence[Value]) -> list[Value]:
    """Transform a line of inputs; paired rows are sum and difference of the terms at even and odd
    places.

    The factor of the last odd term is factored out of these, and applied to the sum and the
    difference.
    """
    result: list[Value] = []
    while len(result) < len(matrix):
        row = matrix[len(result)]
        after = matrix[len(result) + 1 : len(result) + 2]
        terms = list(zip(row, line, strict=True))
        if after and is_pair(row, after[0]):
            factor = next(f for f, _ in reversed(terms[1::2]) if f)
            even = _sum(e, terms[::2])
            odd = _sum(e, [(f / factor, vector) for f, vector in terms[1::2]])
            result += [e.fma(odd, _splat(e, f, odd), even) for f in (factor, -factor)]
        else:
            result.append(_sum(e, terms))
    return result


def _output_line(e: Emitter, matrix: Matrix, line: Sequence[Value]) -> list[Value]:
    """Transform a line of products; paired columns are read as their sum and their difference."""
    columns = list(zip(*matrix, strict=True))
    terms: list[list[tuple[float, Value]]] = [[] for _ in matrix]
    place = 0
    while place < len(line):
        first, second = line[place], line[place + 1] if place + 1 < len(line) else None
        if second is not None and is_pair(columns[place], columns[place + 1]):
            sum = e.apply(arith.AddfOp, first, second)
            difference = e.apply(arith.SubfOp, first, second)
            for row, factor in enumerate(columns[place]):
                terms[row].append((factor, difference if row % 2 else sum))
            place += 2
            continue
        for row, factor in enumerate(columns[place]):
            terms[row].append((factor, first))
        place += 1
    return [_sum(e, row) for row in terms]


def _sum(e: Emitter, terms: Iterable[tuple[float, Value]]) -> Value:
    """Return Σ factor · vector; terms with factor 1 come first."""
    present = sorted(((f, v) for f, v in terms if f), key=lambda term: term[0] != 1)
    total: Value | None = None
    for factor, vector in present:
        if total is None:
            total = (
                vector if factor == 1 else e.apply(arith.MulfOp, vector, _splat(e, factor, vector))
            )
        elif factor == 1:
            total = e.apply(arith.AddfOp, total, vector)
        elif factor == -1:
            total = e.apply(arith.SubfOp, total, vector)
        else:
            total = e.fma(vector, _splat(e, factor, vector), total)
    assert total is not None, "a row of the matrix is 0"
    return total


def _splat(e: Emitter, factor: float, vector: Value) -> Value:
    return e.constant(float(factor), vector.type)
