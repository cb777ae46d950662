"""The importer of `Einsum`: one batched matrix product for each operand after the first."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of
from braid.dialects.braid.size_evaluation import fixed_shape
from braid.dialects.braid.size_facts import may_equal
from braid.dialects.braid.sized_ops import slice_of
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import drop_dims, matmul, reshape, transpose
from braid.frontends.onnx.building.expressions import reduce as reduce_dims
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.support.sizes.expression import Extent

Labels = tuple[str | int, ...]
"""A letter of the equation for each dim, or the number of the dim among those of the ellipsis."""

Term = tuple[Labels, SSAValue]

_TERM = r"[A-Za-z]*(?:\.\.\.)?[A-Za-z]*"
_EQUATION = re.compile(rf"({_TERM}(?:,{_TERM})*)(?:->({_TERM}))?")


@dataclass(frozen=True)
class _Equation:
    """The labels of each operand and of the result."""

    terms: tuple[Labels, ...]
    result: Labels


@importer("Einsum")
def einsum(b: Builder, node: Node) -> SSAValue:
    """Import any equation of letters, spaces and ellipses."""
    operands = [node.input(i) for i in range(len(node.inputs))]
    equation = _parsed(node, [len(extents_of(x)) for x in operands])
    terms = [_diagonal(b, node, *term) for term in zip(equation.terms, operands, strict=True)]
    labels, value = _contracted(b, _without_repeated(b, node, terms), equation.result)
    return transpose(b, value, [labels.index(label) for label in equation.result])


def _parsed(node: Node, ranks: Sequence[int]) -> _Equation:
    """Parse the equation for operands of these ranks. Raises BraidError if it is malformed."""
    text = node.text("equation").replace(" ", "")
    found = _EQUATION.fullmatch(text)
    if found is None:
        node.fail(f"equation '{text}' is not one of letters, ',', '...' and '->'")
    terms = found[1].split(",")
    if len(terms) != len(ranks):
        node.fail(f"equation '{text}' has {len(terms)} terms, expected {len(ranks)}")
    count = _ellipsis_rank(node, terms, ranks)
    spelled = tuple(_spelled(term, count) for term in terms)
    if found[2] is not None:
        return _Equation(spelled, _result(node, found[2], spelled, count))
    every = [label for term in spelled for label in term if isinstance(label, str)]
    once = sorted(label for label in every if every.count(label) == 1)
    return _Equation(spelled, (*range(count), *once))


def _ellipsis_rank(node: Node, terms: Sequence[str], ranks: Sequence[int]) -> int:
    """Return the number of dims of the ellipsis, which ONNX has equal in every term."""
    counts: dict[str, int] = {}
    for index, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        letters = len(term.replace("...", ""))
        if rank < letters or (rank > letters and "..." not in term):
            node.fail(f"input {index} has rank {rank}, but its term is '{term}'")
        if "..." in term:
            counts[f"input {index}"] = rank - letters
    if len(set(counts.values())) > 1:
        counted = ", ".join(f"{count} dims of {name}" for name, count in counts.items())
        node.fail(f"the ellipsis stands for {counted}, expected as many of each")
    return next(iter(counts.values()), 0)


def _spelled(term: str, count: int) -> Labels:
    """Return the labels of a term, whose ellipsis stands for `count` dims."""
    before, dots, after = term.partition("...")
    return (*before, *(range(count) if dots else ()), *after)


def _result(node: Node, text: str, terms: Sequence[Labels], count: int) -> Labels:
    """Return the labels of the result; each must be unique and occur in an operand."""
    result, known = _spelled(text, count), {label for term in terms for label in term}
    for label in result:
        if label not in known:
            node.fail(f"the result '{text}' has '{label}', which no input has")
        if result.count(label) > 1:
            node.fail(f"the result '{text}' has '{label}' more than once")
    if count and "..." not in text:
        node.fail(f"the result '{text}' has no ellipsis, which stands for {count} dims of inputs")
    return result


def _diagonal(b: Builder, node: Node, labels: Labels, x: SSAValue) -> Term:
    """Return the operand with unique labels, by the diagonals of repeated ones."""
    repeated = next((label for label in labels if labels.count(label) > 1), None)
    if repeated is None:
        return labels, x
    first = labels.index(repeated)
    second = labels.index(repeated, first + 1)
    rest = [dim for dim in range(len(labels)) if dim not in (first, second)]
    *others, extent, other = (fixed_shape(x)[dim] for dim in (*rest, first, second))
    if extent != other:
        node.fail(f"'{repeated}' stands for {extent} and for {other} in one input")
    flat = reshape(b, transpose(b, x, [*rest, first, second]), [*others, extent * extent])
    starts, steps = [0] * (len(others) + 1), [*[1] * len(others), extent + 1]
    kept = b.emit(slice_of(flat, starts, [*others, extent], steps))
    return _diagonal(b, node, (*(labels[dim] for dim in rest), repeated), kept)


def _without_repeated(b: Builder, node: Node, terms: Sequence[Term]) -> list[Term]:
    """Return the operands without dims of extent 1 that are broadcast to another operand's."""
    extents: dict[str | int, Extent] = {}
    for labels, x in terms:
        for label, extent in zip(labels, extents_of(x), strict=True):
            known = extents.setdefault(label, extent)
            if 1 not in (known, extent) and not may_equal(known, extent):
                node.fail(f"'{label}' stands for {known} and for {extent}")
            extents[label] = extent if known == 1 else known
    kept: list[Term] = []
    for labels, x in terms:
        sizes = list(zip(labels, extents_of(x), strict=True))
        ones = [dim for dim, (label, extent) in enumerate(sizes) if extent == 1 != extents[label]]
        left = tuple(label for dim, label in enumerate(labels) if dim not in ones)
        kept.append((left, drop_dims(b, x, ones)))
    return kept


def _contracted(b: Builder, terms: Sequence[Term], result: Labels) -> Term:
    """Return the product of all operands with the labels of the result, in any order."""
    later = [labels for labels, _ in terms]
    first = _summed(b, terms[0], {*result, *(label for term in later[1:] for label in term)})
    for position, term in enumerate(terms[1:], start=2):
        needed = {*result, *(label for labels in later[position:] for label in labels)}
        first = _product(b, first, _summed(b, term, {*needed, *first[0]}), needed)
    return first


def _summed(b: Builder, term: Term, needed: set[str | int]) -> Term:
    """Return the operand summed over the labels that are not in `needed`."""
    labels, value = term
    dims = [dim for dim, label in enumerate(labels) if label not in needed]
    total = drop_dims(b, reduce_dims(b, "add", value, dims), dims)
    return tuple(label for label in labels if label in needed), total


def _product(b: Builder, left: Term, right: Term, needed: set[str | int]) -> Term:
    """Return one batched matrix product: labels are of batches, rows, columns, or summed."""
    sizes = [dict(zip(labels, extents_of(value), strict=True)) for labels, value in (left, right)]
    extents = {**sizes[0], **sizes[1]}
    batch = [label for label in left[0] if label in right[0] and label in needed]
    summed = [label for label in left[0] if label in right[0] and label not in needed]
    rows = [label for label in left[0] if label not in right[0]]
    columns = [label for label in right[0] if label not in left[0]]

    def grouped(term: Term, *groups: Sequence[str | int]) -> SSAValue:
        labels, value = term
        order = reduce(lambda a, c: [*a, *c], groups, list[str | int](batch))
        moved = transpose(b, value, [labels.index(label) for label in order])
        kept = extents_of(moved)[: len(batch)]
        return reshape(b, moved, [*kept, *(prod(extents[x] for x in group) for group in groups)])

    value = matmul(b, grouped(left, rows, summed), grouped(right, summed, columns))
    labels = (*batch, *rows, *columns)
    return labels, reshape(b, value, [extents[label] for label in labels])
