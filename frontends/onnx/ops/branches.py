"""`If`: both branches, or the one that is known to be taken.

A branch that cannot be imported is often one that is never taken: for another sample rate, rank or
size. It becomes an error where it is taken. An error that occurs at all shapes is raised
immediately.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from onnx import GraphProto
from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, SSAValue

from braid.dialects.braid.base import AnyTensor, extents_of
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.failure import FailOp
from braid.dialects.braid.names import names_of
from braid.dialects.braid.sized_ops import slice_of
from braid.dialects.braid.sizes import extents_of_type
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.decisions import decided, may_decide
from braid.frontends.onnx.building.expressions import broadcast, pad
from braid.frontends.onnx.building.node import InvalidModelError, Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.control_flow import extracted, insert_with_keys
from braid.support.diagnostics import Diagnostic, emit
from braid.support.errors import BraidError, UnsupportedError
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import is_equal, maximum, select

_NAMES = ("then", "else")


@dataclass(frozen=True)
class _Branch:
    """A branch in a separate block, and the types of its results."""

    block: Block
    types: list[Attribute]


@importer("If")
def if_node(b: Builder, node: Node) -> Sequence[SSAValue]:
    """Import `scf.if`, or one of the branches if the condition is known."""
    condition = node.input(0)
    known = b.known(condition)
    node.require_scalar(0)
    graphs = [node.graph("then_branch"), node.graph("else_branch")]
    for graph in graphs:
        if len(graph.output) != len(node.proto.output):
            node.fail(f"it has {len(node.proto.output)} outputs, a branch has {len(graph.output)}")
    if known is not None:
        return node.import_subgraph(graphs[0 if known.item() else 1], [])
    then, otherwise = _branches(b, node, graphs)
    keys = {
        "condition": node.proto.input[0],
        "then": _first_name(then.block, graphs[0]),
        "else": _first_name(otherwise.block, graphs[1]),
    }
    op = scf.IfOp(extracted(b, condition), then.types, [then.block], [otherwise.block])
    return insert_with_keys(b, op, keys).results


def _branches(b: Builder, node: Node, graphs: Sequence[GraphProto]) -> list[_Branch]:
    """Return both branches with the same types; one that cannot be imported or differs fails."""
    found = [_imported(b, node, graph) for graph in graphs]
    errors = [each for each in found if isinstance(each, BraidError)]
    branches = [each for each in found if isinstance(each, _Branch)]
    if errors and (not branches or b.requires_branches):
        for branch in branches:
            b.discard(branch.block)
        raise errors[0]
    if errors:
        (kept,) = branches
        index = found.index(errors[0])
        return _with_failing(b, node, kept, index, errors[0].message)
    if branches[0].types == branches[1].types:
        return branches
    kinds = [[_element_type(type) for type in branch.types] for branch in branches]
    if kinds[0] != kinds[1]:
        listed = [", ".join(map(str, each)) for each in kinds]
        node.invalid(f"the branches give elements of {listed[0]} and of {listed[1]}")
    listed = [", ".join(map(str, branch.types)) for branch in branches]
    if b.requires_branches:
        for branch in branches:
            b.discard(branch.block)
        node.unsupported(f"the branches give {listed[0]} and {listed[1]}, expected the same types")
    if (sizes := _sizes_by_condition(b, node, branches)) is not None:
        return [_with_sizes(b, branch, sizes) for branch in branches]
    index = _misfit(node, branches)
    b.discard(branches[index].block)
    return _with_failing(
        b,
        node,
        branches[1 - index],
        index,
        f"it gives {listed[index]}, and the {_NAMES[1 - index]} branch {listed[1 - index]}",
    )


@dataclass(frozen=True)
class _Sizes:
    """Extents of a result: as the condition decides, and the most of both branches."""

    decided: list[Extent]
    most: list[Extent]


def _sizes_by_condition(b: Builder, node: Node, branches: Sequence[_Branch]) -> list[_Sizes] | None:
    """Return the extents of the results, which the condition decides where branches differ.

    The result is None if it cannot: ranks differ, or the graph declares those of one branch.
    """
    pairs = list(zip(*(map(_extents, branch.types) for branch in branches), strict=True))
    if not may_decide(b, node.input(0)) or any(len(then) != len(other) for then, other in pairs):
        return None
    if not all(_fits_declared(node, branch) for branch in branches):
        return None
    (is_taken,) = decided(b, node.input(0), node.proto.input[0], most=1).reshape(-1).tolist()
    first = is_equal(is_taken, 1)
    return [
        _Sizes(
            [a if a == c else select(first, a, c) for a, c in zip(then, other, strict=True)],
            [maximum(a, c) for a, c in zip(then, other, strict=True)],
        )
        for then, other in pairs
    ]


def _with_sizes(b: Builder, branch: _Branch, sizes: Sequence[_Sizes]) -> _Branch:
    """Return a branch that yields results of these extents, which are its own if it is taken.

    They are widened to the most of both branches and cut, which is possible whichever is taken.
    """
    terminator = branch.block.last_op
    assert isinstance(terminator, scf.YieldOp)
    results = list(terminator.operands)
    with b.inside(branch.block):
        terminator.detach()
        for position, own in enumerate(sizes):
            shape = extents_of(results[position])
            added = [most - extent for most, extent in zip(own.most, shape, strict=True)]
            wide = pad(b, results[position], [0] * len(shape), added, 0)
            if list(shape) != own.decided:
                wide = b.emit(slice_of(wide, [0] * len(shape), own.decided, [1] * len(shape)))
            results[position] = b.use(wide)
        b.insert(scf.YieldOp(*results))
    b.new_ops.remove(terminator)
    terminator.erase()
    return _Branch(branch.block, [value.type for value in results])


def _extents(type: Attribute) -> tuple[Extent, ...]:
    return extents_of_type(cast(AnyTensor, type)) if isinstance(type, TensorType) else ()


def _imported(b: Builder, node: Node, graph: GraphProto) -> _Branch | BraidError:
    block = Block()
    try:
        with b.inside(block):
            results = node.import_subgraph(graph, [])
            b.insert(scf.YieldOp(*results))
    except InvalidModelError:
        raise
    except BraidError as error:
        return error
    return _Branch(block, [value.type for value in results])


def _misfit(node: Node, branches: Sequence[_Branch]) -> int:
    """Return the branch whose results differ from the graph's declaration, by default the second.

    A type that a declared shape rules out fits nothing that follows.
    """
    return 0 if [_fits_declared(node, branch) for branch in branches] == [False, True] else 1


def _fits_declared(node: Node, branch: _Branch) -> bool:
    """Return whether the results of a branch are those that the graph declares."""
    declared = zip(node.declared_outputs(), branch.types, strict=True)
    return all(shape is None or _fits(shape, type) for shape, type in declared)


def _element_type(type: Attribute) -> Attribute:
    return cast(AnyTensor, type).element_type if isinstance(type, TensorType) else type


def _fits(shape: Sequence[int | None], type: Attribute) -> bool:
    extents = type.get_shape() if isinstance(type, TensorType) else ()
    return len(extents) == len(shape) and all(
        wanted in (None, extent) for wanted, extent in zip(shape, extents, strict=True)
    )


def _with_failing(b: Builder, node: Node, kept: _Branch, index: int, reason: str) -> list[_Branch]:
    """Return both branches; branch `index` fails if it is taken."""
    message = f"{node}: its {_NAMES[index]} branch is taken, which cannot be compiled: {reason}"
    emit(
        Diagnostic(
            "remark",
            f"{node}: its {_NAMES[index]} branch is an error where it is taken: {reason}",
            node.location,
        )
    )
    block = Block()
    with b.inside(block):
        b.insert(FailOp.of(message))
        b.insert(scf.YieldOp(*(_any_value(b, node, type) for type in kept.types)))
    failing = _Branch(block, kept.types)
    return [failing, kept] if index == 0 else [kept, failing]


def _any_value(b: Builder, node: Node, type: Attribute) -> SSAValue:
    if not isinstance(type, TensorType):
        raise UnsupportedError(f"a branch gives a {type}, expected tensors", location=node.location)
    tensor = cast(AnyTensor, type)
    shape = extents_of_type(tensor)
    zero = np.zeros([1] * len(shape), to_numpy(tensor.element_type))
    return b.use(broadcast(b, b.constant(zero), shape))


def _first_name(block: Block, graph: GraphProto) -> str:
    """Return the name of the first op of a branch, or of its first output if it has no ops."""
    named = (name for op in block.ops for name in names_of(op))
    return next(named, graph.output[0].name)
