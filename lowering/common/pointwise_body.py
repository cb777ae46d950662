"""Elementwise ops of a group as one scalar body, which is computed at any point."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import i1, i8
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import dense_is_splat
from braid.dialects.braid.elementwise import ElementwiseOp, repeated_map
from braid.dialects.braid.structure import OperandSource
from braid.lowering.common.element_types import (
    compute_type,
    constant,
    convert,
    narrow,
    signless,
    widen,
)
from braid.lowering.common.scalar_body import BodyEmitter


@dataclass(frozen=True)
class PointwiseBody:
    """`block` computes the results at a point, in the types that buffers store.

    Its arguments are the value that is given there, then an element of each leaf. `maps` say
    where a leaf is read, of the dims of the results. Its numbers are `constants`, outside of it.
    """

    block: Block
    leaves: tuple[SSAValue, ...]
    maps: tuple[AffineMap, ...]
    constants: tuple[arith.ConstantOp, ...]


def has_one_value(op: Operation) -> bool:
    """Return whether an op is a constant whose elements are all equal."""
    return isinstance(op, ConstantOp) and dense_is_splat(op.value)


def pointwise_body(
    ops: Sequence[Operation], given: SSAValue, results: Sequence[SSAValue]
) -> PointwiseBody:
    """Return the body of elementwise ops and constants of one value, in order.

    `given` comes from elsewhere, in the type that upstream computes in, and has the shape of all
    `results`. Raises UnsupportedError for an op that has no code on its element type.
    """
    leaves = _leaves(ops, given, results)
    writer = _Writer(given, leaves)
    for op in ops:
        writer.take(op)
    block = writer.finish(results)
    shape = shape_of(given)
    maps = tuple(repeated_map(shape_of(leaf), shape) for leaf in leaves)
    return PointwiseBody(block, tuple(leaves), maps, _taken_out(block))


def _leaves(
    ops: Sequence[Operation], given: SSAValue, results: Sequence[SSAValue]
) -> list[SSAValue]:
    """Return what ops read from elsewhere, in the order in which expressions name it."""
    own, leaves = set(ops), list[SSAValue]()
    seen, waiting = {given}, list(reversed(results))
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value.owner, Operation) and value.owner in own:
            waiting.extend(reversed(value.owner.operands))
        else:
            leaves.append(value)
    return leaves


class _Writer:
    """Writes a body: `_values` has what is known, as the dialect's element types hold it."""

    def __init__(self, given: SSAValue, leaves: Sequence[SSAValue]) -> None:
        kinds = [element_type_of(leaf) for leaf in leaves]
        stored = [i8 if kind == i1 else signless(kind) for kind in kinds]
        element_type = element_type_of(given)
        self._block = Block(arg_types=[compute_type(element_type), *stored])
        self._builder = Builder(InsertPoint.at_end(self._block))
        first, *arguments = self._block.args
        self._values: dict[SSAValue, SSAValue] = {given: narrow(self._builder, first, element_type)}
        for leaf, kind, argument in zip(leaves, kinds, arguments, strict=True):
            self._values[leaf] = self._truth(argument) if kind == i1 else argument

    def take(self, op: Operation) -> None:
        """Add an op whose operands are known; one that no result needs may have others."""
        if isinstance(op, ConstantOp):
            self._values[op.output] = self._constant(op)
        elif all(operand in self._values for operand in op.operands):
            assert isinstance(op, ElementwiseOp)
            self._values[op.output] = self._elementwise(op)

    def finish(self, results: Sequence[SSAValue]) -> Block:
        """Return the body that yields these results."""
        self._builder.insert(linalg.YieldOp(*map(self._stored, results)))
        return self._block

    def _truth(self, argument: SSAValue) -> SSAValue:
        return convert(self._builder, argument, i8, i1)

    def _constant(self, op: ConstantOp) -> SSAValue:
        value = cast(float | int | bool, op.value.get_values()[0])
        return constant(self._builder, value, compute_type(element_type_of(op.output)))

    def _elementwise(self, op: ElementwiseOp) -> SSAValue:
        (stage,) = op.structure().stages
        values: list[SSAValue] = []
        types: list[Attribute] = []
        for access in stage.reads:
            assert isinstance(access.source, OperandSource)
            operand = op.operands[access.source.index]
            values.append(widen(self._builder, self._values[operand]))
            types.append(element_type_of(operand))
        value, _ = BodyEmitter(self._builder, values, types, (), (), ()).emit(stage.body)
        return narrow(self._builder, value, stage.result_type)

    def _stored(self, result: SSAValue) -> SSAValue:
        value, element_type = self._values[result], element_type_of(result)
        if element_type == i1:
            return convert(self._builder, value, i1, i8)
        # Constants alone are held in the wider type.
        is_held = value.type == signless(element_type)
        return value if is_held else narrow(self._builder, value, element_type)


def _taken_out(block: Block) -> tuple[arith.ConstantOp, ...]:
    """Take the numbers out of a body, and return each once."""
    constants: dict[str, arith.ConstantOp] = {}
    for op in [op for op in block.ops if isinstance(op, arith.ConstantOp)]:
        op.detach()
        known = constants.setdefault(str(op.value), op)  # as a number, -0.0 equals 0.0
        if known is not op:
            op.result.replace_all_uses_with(known.result)
            op.erase()
    return tuple(constants.values())
