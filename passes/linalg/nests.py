"""Conversion of loop nests of `linalg` to ops of braid, recognized by their maps and bodies.

A nest is elementwise if all loops are in the maps of its results. One that sums products of two
operands is a matrix product or a convolution. Any other that combines its result with a value
computed from the operands is a reduction, or a pooling if an operand is read in windows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from braid.analysis.structure.loop_nests import TensorNest, op_name
from braid.dialects.braid.base import element_type_of, tensor_type
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import bytes_of, i64
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.reduction import ReduceOp, neutral_of
from braid.passes.linalg.narrow_scalars import CASTS, UNSIGNED
from braid.passes.linalg.node import UpstreamNode
from braid.passes.linalg.scalar_types import as_unsigned, bits_as
from braid.passes.linalg.scalars import SAME_OPS, Scalars, convert_scalar, number
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of

_REDUCTIONS = frozenset({"add", "and", "maximum", "minimum", "mul", "or"})
"""The ops of braid that combine values in a reduction."""


@dataclass(frozen=True)
class Window:
    """A sliding window: an operand is indexed at `outer · stride + inner · dilation`.

    `outer` is the loop over positions of the window, `inner` the loop within it.
    """

    outer: int
    stride: int
    inner: int
    dilation: int


@dataclass(frozen=True)
class Combination:
    """A reduction step, which combines the accumulated result with `value` by op `kind`."""

    kind: str
    value: SSAValue
    is_unsigned: bool = False
    """True if the bits of integers are compared as unsigned numbers."""


@dataclass(frozen=True)
class Nest:
    """A loop nest being converted: extents are known, maps of results have distinct loops."""

    node: UpstreamNode
    nest: TensorNest
    extents: tuple[Extent, ...]

    @staticmethod
    def of(node: UpstreamNode, nest: TensorNest) -> "Nest":
        """Return the nest with its extents; raise NotConvertedError for other shapes or maps."""
        known: dict[int, Extent] = {}
        for value, map in zip((*nest.inputs, *nest.outputs), nest.maps, strict=True):
            if map.num_symbols:
                node.leave()
            if not isinstance(value.type, TensorType):
                continue
            for expr, extent in zip(map.results, node.shape(value), strict=True):
                if isinstance(expr, AffineDimExpr) and not isinstance(
                    known.get(expr.position), int
                ):
                    known[expr.position] = extent
        if sorted(known) != list(range(len(nest.is_parallel))):
            node.leave()
        own = Nest(node, nest, tuple(known[dim] for dim in range(len(known))))
        for map, value in zip(own.output_maps, nest.outputs, strict=True):
            own.plain_dims(map, value)
        return own

    @property
    def output_maps(self) -> tuple[AffineMap, ...]:
        """Return the access maps of the results."""
        return self.nest.maps[len(self.nest.inputs) :]

    @property
    def is_elementwise(self) -> bool:
        """Return whether the map of every result has all loops."""
        rank = len(self.extents)
        return all(
            sum(isinstance(e, AffineDimExpr) for e in map.results) == rank
            for map in self.output_maps
        )

    @property
    def has_windows(self) -> bool:
        """Return whether an operand is indexed by an expression of several loops."""
        return any(
            not isinstance(expr, AffineDimExpr | AffineConstantExpr)
            for map in self.nest.maps
            for expr in map.results
        )

    @property
    def arguments(self) -> Sequence[BlockArgument]:
        """Return the arguments of the body."""
        return self.nest.body.args

    @property
    def result_dims(self) -> list[int]:
        """Return the loops of the only result, in the order of its dims."""
        if len(self.nest.outputs) != 1:
            self.node.leave()
        return [e.position for e in self.output_maps[0].results if isinstance(e, AffineDimExpr)]

    @property
    def reduced(self) -> list[int]:
        """Return the loops over which the only result is reduced."""
        kept = self.result_dims
        return [dim for dim in range(len(self.extents)) if dim not in kept]

    def plain_dims(self, map: AffineMap, value: SSAValue) -> list[int | None]:
        """Return the loop of each dim of an operand, None for a dim of extent 1 indexed by 0."""
        dims: list[int | None] = []
        for expr, extent in zip(map.results, self.node.shape(value), strict=True):
            match expr:
                case AffineDimExpr(position) if position not in dims:
                    dims.append(position)
                case AffineConstantExpr(0) if extent == 1:
                    dims.append(None)
                case _:
                    self.node.leave()
        return dims

    def in_loops(self, value: SSAValue, map: AffineMap) -> SSAValue:
        """Return an operand with one dim for each loop, of extent 1 for loops on which it does not
        depend."""
        rank = len(self.extents)
        if not isinstance(value.type, TensorType):
            known = self.node.number_in(value)
            if known is None:
                self.node.leave()
            owner = value.owner
            assert isinstance(owner, Operation)
            return number(self.node, owner.properties["value"], rank)
        dims = self.plain_dims(map, value)
        present = [dim for dim in dims if dim is not None]
        value = self.in_present(value, dims)
        order = sorted(present)
        value = self.node.transpose(value, [present.index(dim) for dim in order])
        shape = [self.extents[dim] if dim in present else 1 for dim in range(rank)]
        return self.node.reshape(value, shape)

    def in_present(self, value: SSAValue, dims: Sequence[int | None]) -> SSAValue:
        """Return an operand without the dims that depend on no loop, in the extents of loops."""
        shape = self.node.shape(value)
        wanted = [
            n if dim is None else self.extents[dim] for n, dim in zip(shape, dims, strict=True)
        ]
        value = self.node.with_extents(value, wanted)
        return self.node.reshape(value, [self.extents[dim] for dim in dims if dim is not None])

    def scalars(self, count: int | None = None) -> Scalars:
        """Return the used ones of the first `count` arguments of the body, and loop indices."""
        scalars = Scalars(self.node, len(self.extents), self.nest.model_value)
        for argument in self.arguments[:count]:
            if argument.uses:
                scalars.values[argument] = self.in_loops(*self.operand(argument))
        for op in self.nest.body.ops:
            if op_name(op) == "linalg.index":
                scalars.values[op.results[0]] = self.places(op)
        return scalars

    def places(self, op: Operation) -> SSAValue:
        """Return the indices of the loop that `linalg.index` names, as a tensor."""
        attribute = op.properties.get("dim", op.attributes.get("dim"))
        dim = getattr(getattr(attribute, "value", None), "data", None)
        if not isinstance(dim, int) or not 0 <= dim < len(self.extents):
            self.node.leave()
        extent = self.extents[dim]
        shape = [extent if d == dim else 1 for d in range(len(self.extents))]
        counted = self.node.emit(IotaOp.of(0, tensor_type(i64, [extent])))
        return self.node.reshape(counted, shape)

    def combination(self) -> Combination:
        """Return the reduction step of the only result; raise NotConvertedError if there is
        none."""
        last = self.nest.body.last_op
        self.result_dims  # noqa: B018  raises where there are several results
        total = self.arguments[-1]
        assert last is not None
        op = last.operands[0].owner
        name = op_name(op) if isinstance(op, Operation) else ""
        kind = SAME_OPS.get(name, UNSIGNED.get(name))
        if not isinstance(op, Operation) or kind not in _REDUCTIONS:
            self.node.leave()
        if not total.has_one_use() or total not in op.operands:
            self.node.leave()
        value = next((v for v in op.operands if v is not total), None)
        is_bool = str(total.type) == "i1"
        if is_bool and name in UNSIGNED:
            kind = "or" if kind == "maximum" else "and"
        if value is None or (is_bool and kind not in ("and", "or")):
            self.node.leave()
        return Combination(kind, value, name in UNSIGNED and not is_bool)

    def factors(self, combine: Combination) -> tuple[SSAValue, SSAValue] | None:
        """Return the two scalars whose products are summed, None for any other reduction."""
        made = combine.value.owner
        if combine.kind != "add" or not isinstance(made, Operation):
            return None
        if op_name(made) not in ("arith.mulf", "arith.muli"):
            return None
        a, b = made.operands
        return a, b

    def source(self, scalar: SSAValue) -> tuple[BlockArgument, list[Operation]] | None:
        """Return the argument that `scalar` is converted from, with the conversions, else None."""
        casts: list[Operation] = []
        while isinstance(scalar.owner, Operation):
            if op_name(scalar.owner) not in CASTS:
                return None
            casts.append(scalar.owner)
            scalar = scalar.owner.operands[0]
        if not isinstance(scalar, BlockArgument) or scalar.owner is not self.nest.body:
            return None
        return scalar, casts[::-1]

    def converted(self, argument: BlockArgument, casts: Sequence[Operation]) -> SSAValue:
        """Return an operand in its own dims, with the conversions `casts` applied."""
        value = self.operand(argument)[0]
        for op in casts:
            value = convert_scalar(self.node, op, [value])
        return value

    def operand(self, argument: BlockArgument) -> tuple[SSAValue, AffineMap]:
        """Return the operand of an argument of the body, and its map."""
        operands = (*self.nest.inputs, *self.nest.outputs)
        return operands[argument.index], self.nest.maps[argument.index]

    def with_start(self, value: SSAValue, kind: str) -> SSAValue:
        """Return a result in its own dims, combined with its initial value.

        A result in an unsigned type gets that of the initial value.
        """
        start = self.nest.outputs[0]
        known = self.node.number_in(start)
        element_type = element_type_of(start)
        if element_type_of(value) != element_type:
            neutral = neutral_of(kind, element_type_of(value))
            if known is None or known % (1 << 8 * bytes_of(element_type)) != neutral:
                value = self.node.apply(kind, as_unsigned(self.node, start), value)
            return bits_as(self.node, value, element_type)
        neutral = neutral_of(kind, element_type_of(start))
        if known is not None and known == neutral:
            return value
        return self.node.apply(kind, start, value)


def elementwise_results(own: Nest) -> list[SSAValue]:
    """Return the results of an elementwise nest."""
    results: list[SSAValue] = []
    computed = own.scalars().compute(own.nest.body)
    for value, map, output in zip(computed, own.output_maps, own.nest.outputs, strict=True):
        dims = [dim for dim in own.plain_dims(map, output) if dim is not None]
        value = own.node.transpose(own.node.broadcast(value, own.extents), dims)
        results.append(own.node.reshape(value, own.node.shape(output)))
    return results


def product(own: Nest, left: SSAValue, right: SSAValue) -> SSAValue | None:
    """Return a matrix product in the dims of the result; None if the loops are of another kind."""
    sources = [found for found in map(own.source, (left, right)) if found is not None]
    if len(sources) < 2 or any(argument is own.arguments[-1] for argument, _ in sources):
        return None
    operands = [own.operand(argument) for argument, _ in sources]
    if any(not isinstance(value.type, TensorType) for value, _ in operands):
        return None
    dims = [own.plain_dims(map, value) for value, map in operands]
    has = [{dim for dim in each if dim is not None} for each in dims]
    kept, all_dims = own.result_dims, range(len(own.extents))
    batch = [dim for dim in kept if dim in has[0] and dim in has[1]]
    rows = [dim for dim in kept if dim in has[0] and dim not in has[1]]
    columns = [dim for dim in kept if dim in has[1] and dim not in has[0]]
    summed = [d for d in all_dims if d not in kept and d in has[0] and d in has[1]]
    if len(batch) + len(rows) + len(columns) + len(summed) < len(own.extents) or not summed:
        return None
    batches = [batch] if batch else []
    groups = ([*batches, rows, summed], [*batches, summed, columns])
    matrices = [
        _matrices(own, own.converted(*source), each, order)
        for source, each, order in zip(sources, dims, groups, strict=True)
    ]
    y = own.node.emit(MatmulOp.on(*matrices))
    return in_result_dims(own, y, [batch, rows, columns])


def _matrices(
    own: Nest, value: SSAValue, dims: Sequence[int | None], groups: Sequence[Sequence[int]]
) -> SSAValue:
    """Return an operand with one dim for each group of loops."""
    present = [dim for dim in dims if dim is not None]
    value = own.in_present(value, dims)
    ordered = own.node.transpose(value, [present.index(dim) for group in groups for dim in group])
    return own.node.reshape(
        ordered, [product_of(own.extents[d] for d in group) for group in groups]
    )


def in_result_dims(own: Nest, value: SSAValue, groups: Sequence[Sequence[int]]) -> SSAValue:
    """Return `value`, each dim of which is a group of merged loops, in the result's dims.

    Groups that the result has together are split last, so that the transposed tensor has few dims,
    and a layout may stand for the transpose.
    """
    kept = own.result_dims
    merged = [group for group in groups if group]
    if not all(_is_run(group, kept) for group in merged):
        merged = [[dim] for group in merged for dim in group]
    value = own.node.reshape(value, [product_of(own.extents[d] for d in g) for g in merged])
    order = sorted(range(len(merged)), key=lambda number: kept.index(merged[number][0]))
    value = own.node.transpose(value, order)
    return own.node.reshape(value, own.node.shape(own.nest.outputs[0]))


def _is_run(group: Sequence[int], dims: Sequence[int]) -> bool:
    """Return whether the dims of a group follow each other in `dims`."""
    first = dims.index(group[0])
    return list(dims[first : first + len(group)]) == list(group)


def reduced(own: Nest, combine: Combination) -> SSAValue:
    """Return the reduction of the values that the body computes from the inputs."""
    scalars = own.scalars(len(own.nest.inputs))
    value = own.node.broadcast(scalars.computed(own.nest.body, combine.value), own.extents)
    if combine.is_unsigned:
        value = as_unsigned(own.node, value)
    y = own.node.emit(ReduceOp.get(value, combine.kind, own.reduced))
    kept = [[dim] for dim in sorted(own.result_dims)]
    return own.with_start(in_result_dims(own, y, kept), combine.kind)
