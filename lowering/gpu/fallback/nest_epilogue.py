"""The elementwise nests of a bufferized kernel as the epilogue of its sums."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects import arith, memref
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint

from braid.lowering.common.loop_nest import loops_of
from braid.lowering.gpu.contraction.epilogue import Epilogue
from braid.lowering.gpu.nests.placement import Access


@dataclass(frozen=True)
class SumNests:
    """The ops of a bufferized kernel of sums, or maxima and the like, after a fill with `start`."""

    sums: linalg.GenericOp
    others: tuple[linalg.GenericOp, ...]
    constants: tuple[Operation, ...]
    start: SSAValue


def sum_nests(function: FuncOp) -> SumNests | None:
    """Return the nests of a kernel that reduces into a filled buffer, and then has other nests."""
    nests: list[linalg.GenericOp | linalg.FillOp] = []
    constants: list[Operation] = []
    for op in list(function.body.block.ops)[:-1]:
        if isinstance(op, linalg.GenericOp | linalg.FillOp):
            nests.append(op)
        elif isinstance(op, arith.ConstantOp):
            constants.append(op)
        elif not isinstance(op, memref.AllocOp):
            return None
    if len(nests) < 2:
        return None
    start, sums, *rest = nests
    if not isinstance(start, linalg.FillOp):
        return None
    others = [nest for nest in rest if isinstance(nest, linalg.GenericOp)]
    if not isinstance(sums, linalg.GenericOp) or len(others) != len(rest):
        return None
    value = start.inputs[0]
    if list(sums.outputs) != [start.outputs[0]] or value.owner not in constants:
        return None
    return SumNests(sums, tuple(others), tuple(constants), value)


def epilogue_of(nests: SumNests, results: Sequence[SSAValue]) -> Epilogue | None:
    """Return the epilogue; None unless the nests compute at each sum's point from that sum."""
    loops = loops_of(nests.sums)
    sums = nests.sums.outputs[0]
    if _permutation(loops.result) is None:
        return None
    writer = _Writer(loops.extents, sums, loops.result)
    if not all(map(writer.take, nests.others)) or not writer.made.keys() >= set(results):
        return None
    stored = [writer.values[result] for result in results]
    Builder(InsertPoint.at_end(writer.block)).insert(linalg.YieldOp(*stored))
    return Epilogue(
        writer.block,
        tuple(writer.leaves),
        tuple(writer.made[result] for result in results),
        nests.constants,
        len(loops.extents),
    )


class _Writer:
    """Writes the bodies of nests as one; `made` are the buffers that they have filled."""

    def __init__(self, extents: Sequence[int], sums: SSAValue, result: AffineMap) -> None:
        first = Access(sums, result)
        self._extents = extents
        self.block = Block(arg_types=[first.element_type])
        self.made: dict[SSAValue, Access] = {sums: first}
        self.values: dict[SSAValue, SSAValue] = {sums: self.block.args[0]}
        self.leaves: dict[Access, SSAValue] = {}

    def take(self, nest: linalg.GenericOp) -> bool:
        """Add the body of a nest; return whether it is elementwise on what is made."""
        loops = loops_of(nest)
        own = _dims_of(nest, self.made)
        if own is None or loops.extents != tuple(self._extents[dim] for dim in own):
            return False
        dims = [AffineExpr.dimension(dim) for dim in own]
        accesses = [
            Access(value, map.replace_dims_and_symbols(dims, (), len(self._extents), 0))
            for value, map in zip(nest.operands, loops.maps, strict=True)
        ]
        reads, writes = accesses[: len(nest.inputs)], accesses[len(nest.inputs) :]
        if any(one.buffer in self.made and self.made[one.buffer] != one for one in reads):
            return False
        if any(_permutation(one.map) is None for one in writes):
            return False
        self._write(nest, reads)
        self.made.update((one.buffer, one) for one in writes)
        return True

    def _write(self, nest: linalg.GenericOp, reads: Sequence[Access]) -> None:
        builder, body = Builder(InsertPoint.at_end(self.block)), nest.body.block
        known: dict[SSAValue, SSAValue] = {
            argument: self._read(access)
            for argument, access in zip(body.args, reads, strict=False)
            if argument.uses
        }
        for op in body.ops:
            if not isinstance(op, linalg.YieldOp):
                builder.insert(op.clone(known))
                continue
            for output, value in zip(nest.outputs, op.arguments, strict=True):
                self.values[output] = known.get(value, value)

    def _read(self, access: Access) -> SSAValue:
        if access.buffer in self.made:
            return self.values[access.buffer]
        if access not in self.leaves:
            place = len(self.block.args)
            self.leaves[access] = self.block.insert_arg(access.element_type, place)
        return self.leaves[access]


def _dims_of(nest: linalg.GenericOp, made: Mapping[SSAValue, Access]) -> tuple[int, ...] | None:
    """Return the dims of the sums for those of an elementwise nest that reads what is made."""
    loops = loops_of(nest)
    body = nest.body.block
    if not all(loops.is_parallel) or any(isinstance(op, linalg.IndexOp) for op in body.ops):
        return None
    if any(argument.uses for argument in body.args[len(nest.inputs) :]):
        return None
    for value, map in zip(nest.inputs, loops.maps, strict=False):
        order = _permutation(map)
        known = _permutation(made[value].map) if value in made else None
        if order is not None and known is not None and len(order) == len(loops.extents):
            dims = dict(zip(order, known, strict=True))
            return tuple(dims[dim] for dim in range(len(dims)))
    return None


def _permutation(map: AffineMap) -> tuple[int, ...] | None:
    """Return the dims that a map lists, if it lists some or all of them, each once."""
    dims = [expr.position for expr in map.results if isinstance(expr, AffineDimExpr)]
    return tuple(dims) if len(dims) == len(map.results) == len(set(dims)) else None
