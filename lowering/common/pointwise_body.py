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

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import dense_is_splat
from braid.dialects.braid.elementwise import ElementwiseOp
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
    return _Writer(given).write(ops, results)


class _Writer:
    """Writes a body: `_values` has what is known, as the dialect's element types hold it."""

    def __init__(self, given: SSAValue) -> None:
        self._block = Block(arg_types=[compute_type(element_type_of(given))])
        self._builder = Builder(InsertPoint.at_end(self._block))
        element_type = element_type_of(given)
        held = narrow(self._builder, self._block.args[0], element_type)
        self._values: dict[SSAValue, SSAValue] = {given: held}
        self._leaves: dict[SSAValue, AffineMap] = {}

    def write(self, ops: Sequence[Operation], results: Sequence[SSAValue]) -> PointwiseBody:
        for op in ops:
            if isinstance(op, ConstantOp):
                self._values[op.output] = self._constant(op)
            else:
                assert isinstance(op, ElementwiseOp)
                self._values[op.output] = self._elementwise(op)
        stored = [self._stored(result) for result in results]
        self._builder.insert(linalg.YieldOp(*stored))
        constants = _taken_out(self._block)
        leaves, maps = tuple(self._leaves), tuple(self._leaves.values())
        return PointwiseBody(self._block, leaves, maps, constants)

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
            values.append(widen(self._builder, self._read(operand, access.map)))
            types.append(element_type_of(operand))
        value, _ = BodyEmitter(self._builder, values, types, (), (), ()).emit(stage.body)
        return narrow(self._builder, value, stage.result_type)

    def _read(self, operand: SSAValue, map: AffineMap) -> SSAValue:
        """Return a value at the point; what is not known yet is a leaf."""
        if operand not in self._values:
            element_type = element_type_of(operand)
            is_truth = element_type == i1
            stored = i8 if is_truth else signless(element_type)
            argument = self._block.insert_arg(stored, len(self._block.args))
            truth = convert(self._builder, argument, i8, i1) if is_truth else argument
            self._leaves[operand], self._values[operand] = map, truth
        return self._values[operand]

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
