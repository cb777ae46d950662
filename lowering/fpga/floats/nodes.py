"""Loop nests of a function: the computation and operands of each, before an order is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from xdsl.dialects.builtin import Float32Type
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.base import StructuredOp, element_type_of, shape_of
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.movement import ReshapeOp, TransposeOp
from braid.dialects.braid.scalar import Argument, Literal, Scalar, substitute
from braid.dialects.braid.structure import Access, OperandSource, Padding, Stage
from braid.lowering.fpga.convert.values import Array
from braid.lowering.fpga.floats.domains import Domain, common_dims, dim, domain_of, joined_dims
from braid.solvers.hls.nests import Affine
from braid.support.errors import UnsupportedError

Key = tuple[object, int]
"""An op and the number of its stage, or an argument of the function and 0."""


@dataclass(frozen=True)
class Read:
    """Element `index` of what `source` is; the variables of indices are `dim(i)`.

    With a padding, elements outside of `shape` are `padding`.
    """

    source: Key
    index: tuple[Affine, ...]
    shape: tuple[int, ...]
    padding: float | None = None


@dataclass(frozen=True)
class Node:
    """A loop nest: `body` of the elements read at each point of `extents`, combined over all dims
    except the first.

    Either the first `parallel` dims are those of the result, or it has `result` dims, and the index
    of a point is at position `place` among them.
    """

    key: Key
    label: str
    extents: tuple[int, ...]
    parallel: int
    reads: tuple[Read, ...]
    body: Scalar
    combine: str | None
    result: tuple[int, ...] | None = None
    place: tuple[Affine, ...] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return self.extents[: self.parallel] if self.result is None else self.result

    @property
    def reductions(self) -> range:
        """Dims that are combined."""
        return range(self.parallel, len(self.extents))


@dataclass(frozen=True)
class Graph:
    """Nodes in the order of the program, the results of the function, and its known tensors.

    `inputs` are its arguments, and after them parameters whose numbers are not known.
    """

    nodes: tuple[Node, ...]
    results: tuple[Key, ...]
    known: dict[Key, Array]
    inputs: tuple[Key, ...]


def graph_of(function: FuncOp, known: dict[SSAValue, Array]) -> Graph:
    """Return the graph of a function in f32. Raises UnsupportedError naming what such nests do not
    have.
    """
    block = function.body.block
    keys: dict[SSAValue, Key] = {argument: (argument, 0) for argument in block.args}
    for argument in block.args:
        _check_type(argument, function)
    nodes: dict[Key, Node] = {}
    inputs = list(keys.values())
    for op in block.ops:
        if isinstance(op, ParameterOp) and op.results[0] not in known:
            _check_type(op.results[0], op)
            keys[op.results[0]] = op.results[0], 0
            inputs.append(keys[op.results[0]])
            continue
        if isinstance(op, ReshapeOp) and op.results[0] not in known:
            _add_reshape(op, keys, nodes)
            continue
        if isinstance(op, ReturnOp) or all(result in known for result in op.results):
            keys.update((result, (result, 0)) for result in op.results)
            continue
        _add(op, keys, nodes, known)
    end = block.last_op
    assert isinstance(end, ReturnOp)
    results = tuple(keys[value] for value in end.operands)
    for key, value in zip(results, end.operands, strict=True):
        if key not in nodes:
            raise UnsupportedError(
                f"a result of type {value.type} that nothing computes, in HLS C++ in f32"
            )
    merged = _merged(nodes, results)
    numbers = {keys[value]: array for value, array in known.items()}
    return Graph(tuple(merged.values()), results, numbers, tuple(inputs))


def _check_type(value: SSAValue, op: Operation) -> None:
    if not isinstance(element_type_of(value), Float32Type) or min((*shape_of(value), 1)) < 1:
        raise UnsupportedError(
            f"a value of type {value.type} in HLS C++ in f32",
            location=source_location(op),
            hint="integers become designs by 'convert-braid-to-hls'; shapes have to be known",
        )


def _add(
    op: Operation, keys: dict[SSAValue, Key], nodes: dict[Key, Node], known: dict[SSAValue, Array]
) -> None:
    if not isinstance(op, StructuredOp):
        raise UnsupportedError(f"'{op.name}' in HLS C++ in f32", location=source_location(op))
    for result in op.results:
        _check_type(result, op)
    structure = op.structure()
    for number, stage in enumerate(structure.stages):
        nodes[op, number] = _node(op, number, stage, keys, nodes, known)
    keys.update(
        (result, (op, number)) for result, number in zip(op.results, structure.results, strict=True)
    )


def _add_reshape(op: ReshapeOp, keys: dict[SSAValue, Key], nodes: dict[Key, Node]) -> None:
    """Add a copy, over dims that are common factors of both shapes."""
    value, result = op.operands[0], op.results[0]
    _check_type(result, op)
    given, made = shape_of(value), shape_of(result)
    extents = common_dims(given, made)
    if extents is None:
        raise UnsupportedError(
            f"a reshape of {list(given)} to {list(made)} in HLS C++ in f32",
            location=source_location(op),
            hint="dims may be split and joined where one of two lengths divides the other",
        )
    keys[result] = op, 0
    if extents == tuple(extent for extent in made if extent > 1):
        # Dims stay the same: only dims of one element are added and removed.
        dims = iter([at for at, extent in enumerate(made) if extent > 1])
        if extents == tuple(extent for extent in given if extent > 1):
            index = tuple(
                Affine(0, ((dim(next(dims)), 1),)) if extent > 1 else Affine() for extent in given
            )
            read = _through(Read(keys[value], index, given), nodes)
            nodes[op, 0] = Node((op, 0), "reshape", made, len(made), (read,), Argument(0), None)
            return
    read = Read(keys[value], joined_dims(extents, given), given)
    place = joined_dims(extents, made)
    nodes[op, 0] = Node(
        (op, 0), "reshape", extents, len(extents), (read,), Argument(0), None, made, place
    )


def _node(
    op: StructuredOp,
    number: int,
    stage: Stage,
    keys: dict[SSAValue, Key],
    nodes: dict[Key, Node],
    known: dict[SSAValue, Array],
) -> Node:
    domain = domain_of(stage)
    arguments: list[Scalar] = []
    reads: list[Read] = []
    for access in stage.reads:
        value = _scalar_of(op, access, known)
        if value is not None:
            arguments.append(Literal(value, stage.result_type))
            continue
        arguments.append(Argument(len(reads)))
        reads.append(_read(op, access, keys, nodes, domain))
    body = substitute(stage.body, tuple(arguments))
    label = op.name.partition(".")[2]
    return Node(
        (op, number),
        label,
        domain.extents,
        domain.parallel,
        tuple(reads),
        body,
        stage.combine,
        domain.result,
        domain.place,
    )


def _scalar_of(op: StructuredOp, access: Access, known: dict[SSAValue, Array]) -> float | None:
    """Return the one number of a known tensor."""
    if not isinstance(access.source, OperandSource):
        return None
    array = known.get(op.operands[access.source.index])
    return float(array.ravel()[0]) if array is not None and array.size == 1 else None


def _read(
    op: StructuredOp,
    access: Access,
    keys: dict[SSAValue, Key],
    nodes: dict[Key, Node],
    domain: Domain,
) -> Read:
    if isinstance(access.source, OperandSource):
        value = op.operands[access.source.index]
        _check_type(value, op)
        key, shape = keys[value], shape_of(value)
    else:
        key = (op, access.source.index)
        shape = nodes[key].shape
    index = tuple(_affine(one, op, domain) for one in access.map.results)
    if access.padding is None:
        return _through(Read(key, index, shape), nodes)
    return _padded(Read(key, index, shape), access.padding)


def _padded(read: Read, padding: Padding) -> Read:
    index = tuple(one + Affine(-low) for one, low in zip(read.index, padding.low, strict=True))
    return replace(read, index=index, padding=float(padding.value))


def _through(read: Read, nodes: dict[Key, Node]) -> Read:
    """Return the operand of a transpose or reshape, in its place."""
    node = nodes.get(read.source)
    if (
        node is None
        or node.place is not None
        or not isinstance(node.key[0], TransposeOp | ReshapeOp)
    ):
        return read
    (inner,) = node.reads
    values = {dim(at): one for at, one in enumerate(read.index)}
    index = tuple(
        values[one.terms[0][0]] if one.terms else Affine(one.constant) for one in inner.index
    )
    return Read(inner.source, index, inner.shape)


def _affine(expression: AffineExpr, op: Operation, domain: Domain) -> Affine:
    """Raise UnsupportedError if it is invalid."""
    match expression:
        case AffineDimExpr():
            return domain.values[expression.position]
        case AffineConstantExpr():
            return Affine(expression.value)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, left, right):
            return _affine(left, op, domain) + _affine(right, op, domain)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, left, right):
            one, other = _affine(left, op, domain), _affine(right, op, domain)
            if not other.terms:
                return one.scaled(other.constant)
            if not one.terms:
                return other.scaled(one.constant)
        case AffineBinaryOpExpr(AffineBinaryOpKind.FloorDiv, left, AffineConstantExpr(value=1)):
            return _affine(left, op, domain)
        case AffineBinaryOpExpr(
            AffineBinaryOpKind.FloorDiv, AffineDimExpr(position=at), AffineConstantExpr(value=by)
        ) if (at, by) in domain.quotients:
            return domain.quotients[at, by]
        case _:
            pass
    raise UnsupportedError(
        f"the index {expression} of '{op.name}' in HLS C++ in f32",
        location=source_location(op),
        hint="indices are sums of dims with factors, and of dims divided by what divides them",
    )


def _merged(nodes: dict[Key, Node], results: Sequence[Key]) -> dict[Key, Node]:
    """Drop unused transposes, and merge elementwise nests into their readers."""
    while True:
        readers: dict[Key, list[Node]] = {key: [] for key in nodes}
        for node in nodes.values():
            for source in {read.source for read in node.reads}:
                if source in readers:
                    readers[source].append(node)
        key = next((key for key, own in readers.items() if key not in results and not own), None)
        if key is not None:
            nodes = {other: node for other, node in nodes.items() if other != key}
            continue
        pair = next(
            (
                (nodes[key], own[0])
                for key, own in readers.items()
                if len(own) == 1 and key not in results and _may_join(nodes[key], own[0])
            ),
            None,
        )
        if pair is None:
            return nodes
        inner, outer = pair
        joined = _joined(inner, outer)
        nodes = {
            key: joined if key == outer.key else node
            for key, node in nodes.items()
            if key != inner.key
        }


def _may_join(inner: Node, outer: Node) -> bool:
    """Return whether both take each element once, in the same place."""
    same = [read for read in outer.reads if read.source == inner.key]
    return (
        inner.combine is None
        and outer.combine is None
        and inner.place is None
        and outer.place is None
        and len(same) == 1
        and same[0].padding is None
        and inner.shape == outer.shape
        and same[0].index == identity(len(outer.shape))
    )


def _joined(inner: Node, outer: Node) -> Node:
    at = next(i for i, read in enumerate(outer.reads) if read.source == inner.key)
    others = [read for i, read in enumerate(outer.reads) if i != at]
    moved = tuple(Argument(len(others) + i) for i in range(len(inner.reads)))
    places: list[Scalar] = [Argument(i if i < at else i - 1) for i in range(len(outer.reads))]
    places[at] = substitute(inner.body, cast(tuple[Scalar, ...], moved))
    return replace(
        outer,
        reads=(*others, *inner.reads),
        body=substitute(outer.body, tuple(places)),
    )


def identity(rank: int) -> tuple[Affine, ...]:
    """Return the index of an element in its own place."""
    return tuple(Affine(0, ((dim(at), 1),)) for at in range(rank))
