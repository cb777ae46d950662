"""`Einsum` by transposes, reductions and matrix products, two operands at a time."""

from collections.abc import Sequence
from functools import reduce
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import shape_of
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.expressions import apply, drop_dims, matmul, reshape, scalar, transpose
from braid.frontends.onnx.expressions import reduce as reduce_dims
from braid.frontends.onnx.node import Node
from braid.frontends.onnx.registry import importer

_ELLIPSIS = "ABCDEFGHIJ"
"""Names of the dims that an ellipsis stands for, the last ones for the last dims."""


@importer("Einsum")
def einsum(b: Builder, node: Node) -> SSAValue:
    """Any equation of letters, spaces and ellipses."""
    equation = node.text("equation").replace(" ", "")
    operands = [node.input(i) for i in range(len(node.inputs))]
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        node.fail(f"equation '{equation}' has {len(terms)} terms, expected {len(operands)}")
    terms = [_spelled(term, len(shape_of(x))) for term, x in zip(terms, operands, strict=True)]
    widest = max((sum(c in _ELLIPSIS for c in term) for term in terms), default=0)
    result = right.replace("...", _ELLIPSIS[-widest:] if widest else "")
    if not arrow:
        letters = "".join(terms)
        once = sorted(c for c in set(letters) if letters.count(c) == 1 and c not in _ELLIPSIS)
        result = (_ELLIPSIS[-widest:] if widest else "") + "".join(once)
    diagonals = [_diagonal(b, term, x) for term, x in zip(terms, operands, strict=True)]
    term, value = _contracted(b, diagonals, result)
    return transpose(b, value, [term.index(letter) for letter in result])


def _spelled(term: str, rank: int) -> str:
    """The term with a letter for every dim."""
    missing = rank - len(term.replace("...", ""))
    return term.replace("...", _ELLIPSIS[len(_ELLIPSIS) - missing :])


def _diagonal(b: Builder, term: str, x: SSAValue) -> tuple[str, SSAValue]:
    """The operand with every letter once: what is off a diagonal becomes 0 and is summed away."""
    repeated = next((letter for letter in term if term.count(letter) > 1), None)
    if repeated is None:
        return term, x
    first, second = term.index(repeated), term.rindex(repeated)
    shape = shape_of(x)
    mask = np.eye(shape[first], dtype=np.bool_)
    extents = [extent if dim in (first, second) else 1 for dim, extent in enumerate(shape)]
    kept = apply(b, "select", b.constant(mask.reshape(extents)), x, scalar(b, 0, x))
    total = drop_dims(b, reduce_dims(b, "add", kept, [second]), [second])
    return _diagonal(b, term[:second] + term[second + 1 :], total)


def _contracted(
    b: Builder, operands: Sequence[tuple[str, SSAValue]], result: str
) -> tuple[str, SSAValue]:
    """The product of all operands, with the letters of the result alone, in any order."""
    terms = [term for term, _ in operands]
    first = _summed(b, *operands[0], result + "".join(terms[1:]))
    for position, (term, value) in enumerate(operands[1:], start=2):
        needed = result + "".join(terms[position:])
        second = _summed(b, term, value, needed + first[0])
        first = _product(b, first, second, needed)
    return first


def _summed(b: Builder, term: str, value: SSAValue, needed: str) -> tuple[str, SSAValue]:
    """The operand with the letters that nothing needs summed away."""
    dims = [dim for dim, letter in enumerate(term) if letter not in needed]
    total = drop_dims(b, reduce_dims(b, "add", value, dims), dims)
    return "".join(letter for letter in term if letter in needed), total


def _product(
    b: Builder, left: tuple[str, SSAValue], right: tuple[str, SSAValue], needed: str
) -> tuple[str, SSAValue]:
    """One batched matrix product: letters are batch, rows, columns, or summed."""
    extents = dict(zip(right[0], shape_of(right[1]), strict=True))
    for letter, extent in zip(left[0], shape_of(left[1]), strict=True):
        extents[letter] = max(extent, extents.get(letter, 1))
    shared = [letter for letter in left[0] if letter in right[0]]
    batch = [letter for letter in shared if letter in needed]
    summed = [letter for letter in shared if letter not in needed]
    rows = [letter for letter in left[0] if letter not in right[0]]
    columns = [letter for letter in right[0] if letter not in left[0]]

    def grouped(operand: tuple[str, SSAValue], *groups: Sequence[str]) -> SSAValue:
        term, value = operand
        order = reduce(lambda a, c: [*a, *c], groups, list[str](batch))
        moved = transpose(b, value, [term.index(letter) for letter in order])
        kept = shape_of(moved)[: len(batch)]
        sizes = [prod(extents[letter] for letter in group) for group in groups]
        return reshape(b, moved, [*kept, *sizes])

    value = matmul(b, grouped(left, rows, summed), grouped(right, summed, columns))
    term = "".join([*batch, *rows, *columns])
    return term, reshape(b, value, [extents[letter] for letter in term])
