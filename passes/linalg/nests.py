"""Loop nests of `linalg` as ops of braid: what they are is read from their maps and their bodies.

A nest whose loops are all in its results is elementwise. One that adds products of two operands is
a product of matrices or a convolution; any other that combines its result with what is computed
from the operands is a reduction, or a pooling where an operand is read in windows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from braid.analysis.structure.loop_nests import TensorNest, op_name
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import i64
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.reduction import ReduceOp, neutral_of
from braid.passes.linalg.node import UpstreamNode
from braid.passes.linalg.scalars import Scalars, convert_scalar, number

_COMBINES = {
    "arith.addf": "add",
    "arith.addi": "add",
    "arith.andi": "and",
    "arith.maximumf": "maximum",
    "arith.maxsi": "maximum",
    "arith.minimumf": "minimum",
    "arith.minsi": "minimum",
    "arith.mulf": "mul",
    "arith.muli": "mul",
    "arith.ori": "or",
}
"""What reductions combine with."""


def convert_nest(node: UpstreamNode, nest: TensorNest) -> Sequence[SSAValue]:
    """The results of a nest; raises NotConvertedError where braid has no ops for it."""
    from braid.passes.linalg.windows import convert_windows

    own = Nest.of(node, nest)
    if own.is_elementwise and not own.windows:
        return elementwise_results(own)
    if len(nest.outputs) > 1:
        return [_one_result(node, nest, number) for number in range(len(nest.outputs))]
    if own.windows:
        return [convert_windows(own)]
    combine = own.combination()
    factors = own.factors(combine)
    if factors is not None and (found := product(own, *factors)) is not None:
        return [own.with_start(found, "add")]
    return [reduced(own, combine)]


def _one_result(node: UpstreamNode, nest: TensorNest, number: int) -> SSAValue:
    """One of several results, which have other loops, by a nest of its own."""
    alone = nest.for_result(number)
    if alone is None:
        node.leave()
    try:
        return convert_nest(node, alone)[0]
    finally:
        alone.op.drop_all_references()


@dataclass(frozen=True)
class Window:
    """A place of an operand: `outer · stride + inner · dilation`, of two loops."""

    outer: int
    stride: int
    inner: int
    dilation: int


@dataclass(frozen=True)
class Combination:
    """The op that combines what the result is so far with a value."""

    kind: str
    value: SSAValue


@dataclass(frozen=True)
class Nest:
    """A nest of known extents whose results have each a map of distinct loops."""

    node: UpstreamNode
    nest: TensorNest
    extents: tuple[int, ...]

    @staticmethod
    def of(node: UpstreamNode, nest: TensorNest) -> "Nest":
        """Raises NotConvertedError for open dims and for results of other maps."""
        known: dict[int, int] = {}
        for value, map in zip((*nest.inputs, *nest.outputs), nest.maps, strict=True):
            if map.num_symbols:
                node.leave()
            if not isinstance(value.type, TensorType):
                continue
            for expr, extent in zip(map.results, node.static(value), strict=True):
                if isinstance(expr, AffineDimExpr):
                    known[expr.position] = extent
        if sorted(known) != list(range(len(nest.is_parallel))):
            node.leave()
        own = Nest(node, nest, tuple(known[dim] for dim in range(len(known))))
        for map, value in zip(own.output_maps, nest.outputs, strict=True):
            own.plain_dims(map, value)
        return own

    @property
    def output_maps(self) -> tuple[AffineMap, ...]:
        """The maps of the results."""
        return self.nest.maps[len(self.nest.inputs) :]

    @property
    def is_elementwise(self) -> bool:
        """Whether every result has all loops."""
        rank = len(self.extents)
        return all(
            sum(isinstance(e, AffineDimExpr) for e in map.results) == rank
            for map in self.output_maps
        )

    @property
    def windows(self) -> bool:
        """Whether an operand is read at sums of loops."""
        return any(
            not isinstance(expr, AffineDimExpr | AffineConstantExpr)
            for map in self.nest.maps
            for expr in map.results
        )

    @property
    def arguments(self) -> Sequence[BlockArgument]:
        """Those of the body."""
        return self.nest.body.args

    @property
    def result_dims(self) -> list[int]:
        """The loops of the only result, in the order of its dims."""
        if len(self.nest.outputs) != 1:
            self.node.leave()
        return [e.position for e in self.output_maps[0].results if isinstance(e, AffineDimExpr)]

    @property
    def reduced(self) -> list[int]:
        """The loops that the only result does not have."""
        kept = self.result_dims
        return [dim for dim in range(len(self.extents)) if dim not in kept]

    def plain_dims(self, map: AffineMap, value: SSAValue) -> list[int | None]:
        """The loop of each dim of an operand, None for a dim of extent 1 that is read at 0."""
        dims: list[int | None] = []
        for expr, extent in zip(map.results, self.node.static(value), strict=True):
            match expr:
                case AffineDimExpr(position) if position not in dims:
                    dims.append(position)
                case AffineConstantExpr(0) if extent == 1:
                    dims.append(None)
                case _:
                    self.node.leave()
        return dims

    def in_loops(self, value: SSAValue, map: AffineMap) -> SSAValue:
        """An operand with a dim for each loop, of extent 1 where it does not depend on that."""
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
        value = self.node.reshape(value, [self.extents[dim] for dim in present])
        order = sorted(present)
        value = self.node.transpose(value, [present.index(dim) for dim in order])
        shape = [self.extents[dim] if dim in present else 1 for dim in range(rank)]
        return self.node.reshape(value, shape)

    def scalars(self, count: int | None = None) -> Scalars:
        """The values of the first `count` arguments of the body that are used, and its places."""
        scalars = Scalars(self.node, len(self.extents), self.nest.model_value)
        for argument in self.arguments[:count]:
            if argument.uses:
                scalars.values[argument] = self.in_loops(*self.operand(argument))
        for op in self.nest.body.ops:
            if op_name(op) == "linalg.index":
                scalars.values[op.results[0]] = self.places(op)
        return scalars

    def places(self, op: Operation) -> SSAValue:
        """The index of the loop that `linalg.index` names."""
        attribute = op.properties.get("dim", op.attributes.get("dim"))
        dim = getattr(getattr(attribute, "value", None), "data", None)
        if not isinstance(dim, int) or not 0 <= dim < len(self.extents):
            self.node.leave()
        extent = self.extents[dim]
        shape = [extent if d == dim else 1 for d in range(len(self.extents))]
        counted = self.node.emit(IotaOp.of(0, TensorType(i64, [extent])))
        return self.node.reshape(counted, shape)

    def combination(self) -> Combination:
        """How the only result is combined; raises NotConvertedError where it is not."""
        last = self.nest.body.last_op
        self.result_dims  # noqa: B018  raises where there are several results
        total = self.arguments[-1]
        assert last is not None
        op = last.operands[0].owner
        if not isinstance(op, Operation) or op_name(op) not in _COMBINES:
            self.node.leave()
        if not total.has_one_use() or total not in op.operands:
            self.node.leave()
        value = next((v for v in op.operands if v is not total), None)
        kind = _COMBINES[op_name(op)]
        is_bool = str(total.type) == "i1"
        if value is None or (is_bool and kind not in ("and", "or")):
            self.node.leave()
        return Combination(kind, value)

    def factors(self, combine: Combination) -> tuple[SSAValue, SSAValue] | None:
        """The scalars whose products are added up, None where it is another sum."""
        made = combine.value.owner
        if combine.kind != "add" or not isinstance(made, Operation):
            return None
        if op_name(made) not in ("arith.mulf", "arith.muli"):
            return None
        a, b = made.operands
        return a, b

    def source(self, scalar: SSAValue) -> tuple[BlockArgument, list[Operation]] | None:
        """The argument that `scalar` is, and the conversions from it on; None for other values."""
        casts: list[Operation] = []
        while isinstance(scalar.owner, Operation):
            if op_name(scalar.owner) not in _CASTS:
                return None
            casts.append(scalar.owner)
            scalar = scalar.owner.operands[0]
        if not isinstance(scalar, BlockArgument) or scalar.owner is not self.nest.body:
            return None
        return scalar, casts[::-1]

    def converted(self, argument: BlockArgument, casts: Sequence[Operation]) -> SSAValue:
        """An operand, in its own dims, after the conversions of its elements."""
        value = self.operand(argument)[0]
        for op in casts:
            value = convert_scalar(self.node, op, [value])
        return value

    def operand(self, argument: BlockArgument) -> tuple[SSAValue, AffineMap]:
        """The operand of an argument of the body, and its map."""
        operands = (*self.nest.inputs, *self.nest.outputs)
        return operands[argument.index], self.nest.maps[argument.index]

    def with_start(self, value: SSAValue, kind: str) -> SSAValue:
        """A result in its own dims, combined with what it starts from."""
        start = self.nest.outputs[0]
        known = self.node.number_in(start)
        neutral = neutral_of(kind, element_type_of(start))
        if known is not None and known == neutral:
            return value
        return self.node.apply(kind, start, value)


_CASTS = ("arith.extf", "arith.extsi", "arith.extui", "arith.sitofp", "arith.uitofp")


def elementwise_results(own: Nest) -> list[SSAValue]:
    """The results of a nest whose loops are all in each of them."""
    results: list[SSAValue] = []
    computed = own.scalars().compute(own.nest.body)
    for value, map, output in zip(computed, own.output_maps, own.nest.outputs, strict=True):
        dims = [dim for dim in own.plain_dims(map, output) if dim is not None]
        value = own.node.transpose(own.node.broadcast(value, own.extents), dims)
        results.append(own.node.reshape(value, shape_of(output)))
    return results


def product(own: Nest, left: SSAValue, right: SSAValue) -> SSAValue | None:
    """A product of matrices, in the dims of the result; None where loops are not those of one."""
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
    return in_result_dims(own, y, [*batch, *rows, *columns])


def _matrices(
    own: Nest, value: SSAValue, dims: Sequence[int | None], groups: Sequence[Sequence[int]]
) -> SSAValue:
    """An operand with one dim for each group of loops."""
    present = [dim for dim in dims if dim is not None]
    value = own.node.reshape(value, [own.extents[dim] for dim in present])
    ordered = own.node.transpose(value, [present.index(dim) for group in groups for dim in group])
    return own.node.reshape(ordered, [prod(own.extents[d] for d in group) for group in groups])


def in_result_dims(own: Nest, value: SSAValue, dims: Sequence[int]) -> SSAValue:
    """A value whose elements go over the loops `dims`, in the dims of the only result."""
    value = own.node.reshape(value, [own.extents[dim] for dim in dims])
    value = own.node.transpose(value, [dims.index(dim) for dim in own.result_dims])
    return own.node.reshape(value, shape_of(own.nest.outputs[0]))


def reduced(own: Nest, combine: Combination) -> SSAValue:
    """A reduction of what the body computes from the operands alone."""
    scalars = own.scalars(len(own.nest.inputs))
    value = own.node.broadcast(scalars.computed(own.nest.body, combine.value), own.extents)
    y = own.node.emit(ReduceOp.get(value, combine.kind, own.reduced))
    kept = sorted(own.result_dims)
    return own.with_start(in_result_dims(own, y, kept), combine.kind)
