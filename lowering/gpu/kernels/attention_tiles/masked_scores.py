"""Find the scores that a mask leaves out: those that are -∞ for any finite product.

Their weights are exactly 0. Masks are added, as -∞ where a key is not seen, or select -∞; they may
be operands or computed from operands, such as the lengths of sequences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import FloatAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from braid.dialects.braid.dtypes import is_float
from braid.lowering.common.loop_nest import index_at
from braid.lowering.gpu.contraction.code import Code, Value
from braid.lowering.gpu.contraction.epilogue import Epilogue, Point

MINUS_INFINITY = float("-inf")
LeftOut = Value | None
"""A value that says whether a number is left out; None for a number that never is."""


@dataclass(frozen=True)
class MaskedScores:
    """`epilogue` has the elementwise ops on the product; some of its scores are left out."""

    epilogue: Epilogue

    @staticmethod
    def of(epilogue: Epilogue) -> "MaskedScores | None":
        """Return the masked scores; None where no score is left out."""
        block = Block()
        code = Code(Builder(InsertPoint.at_end(block)))
        masked = MaskedScores(epilogue)
        return None if masked._found(code, {}, {}) is None else masked

    @property
    def dims(self) -> set[int]:
        """The dims of the product along which operands of the epilogue differ."""
        maps = (leaf.map for leaf in self.epilogue.leaves)
        return {dim for map in maps for expr in map.results for dim in expr.used_dims()}

    def left_out(self, code: Code, point: Point, values: Mapping[SSAValue, SSAValue]) -> Value:
        """Return whether the score at a point is; `values` are the entry's buffers."""
        found = self._found(code, point, values)
        assert found is not None
        return found

    def _found(self, code: Code, point: Point, values: Mapping[SSAValue, SSAValue]) -> LeftOut:
        """Walk the body: what leaves alone give is computed, scores are only followed."""
        body = self.epilogue.body
        left: dict[SSAValue, LeftOut] = {body.args[0]: None}
        zero = code.index(code.number(0))
        place = [
            code.index(point[dim]) if dim in point else zero for dim in range(self.epilogue.rank)
        ]
        own = dict(values)
        for leaf, argument in zip(self.epilogue.leaves, body.args[1:], strict=True):
            buffer = values.get(leaf.buffer, leaf.buffer)
            index = index_at(code.builder, leaf.map, place)
            own[argument] = code.insert(memref.LoadOp.get(buffer, index))
        for op in body.ops:
            if isinstance(op, linalg.YieldOp):
                continue
            if left.keys().isdisjoint(op.operands):
                code.builder.insert(op.clone(own))
            else:
                left.update(dict.fromkeys(op.results, _after(code, op, own, left)))
        return left.get(self.epilogue.stored[0])


def _after(
    code: Code,
    op: Operation,
    own: Mapping[SSAValue, SSAValue],
    left: Mapping[SSAValue, LeftOut],
) -> LeftOut:
    """Return whether the result of an op on scores is left out, as far as that is sure."""

    def at(value: SSAValue) -> LeftOut:
        return left[value] if value in left else _is_least(code, own.get(value, value))

    match op:
        case arith.AddfOp():
            found = [one for one in map(at, op.operands) if one is not None]
            return _either(code, found)
        case arith.SubfOp() | arith.ExtFOp() | arith.TruncFOp():
            return at(op.operands[0])
        case arith.MulfOp():
            scaled, factor = sorted(op.operands, key=lambda value: value not in left)
            return left[scaled] if _is_positive(factor) else None
        case arith.DivfOp():
            return left.get(op.operands[0]) if _is_positive(op.operands[1]) else None
        case arith.SelectOp() if op.operands[0] not in left:
            first, second = (at(value) for value in op.operands[1:])
            if first is None and second is None:
                return None
            never = code.number(0, cast(Value, first or second).type)
            return code.select(
                own.get(op.operands[0], op.operands[0]), first or never, second or never
            )
        case _:
            return None


def _is_least(code: Code, value: SSAValue) -> LeftOut:
    type: Attribute = value.type
    if not is_float(type):
        return None
    constant = value.owner
    if isinstance(constant, arith.ConstantOp) and _number(constant) != MINUS_INFINITY:
        return None
    return code.insert(arith.CmpfOp(value, code.number(MINUS_INFINITY, type), "oeq"))


def _is_positive(value: SSAValue) -> bool:
    constant = value.owner
    return isinstance(constant, arith.ConstantOp) and 0 < _number(constant) < float("inf")


def _number(constant: arith.ConstantOp) -> float:
    value = constant.value
    return cast(FloatAttr[Any], value).value.data if isinstance(value, FloatAttr) else 0.0


def _either(code: Code, found: Sequence[Value]) -> LeftOut:
    if len(found) < 2:
        return found[0] if found else None
    return code.insert(arith.OrIOp(found[0], found[1]))
