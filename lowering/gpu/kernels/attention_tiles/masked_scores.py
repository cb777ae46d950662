"""Find the scores that a mask leaves out: those that are -∞ whatever a finite product is.

Their weights are exactly 0. Masks are added, as -∞ where a key is not seen, or select -∞; whether
they are operands or computed of operands, such as the lengths of sequences, is all one.
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
from braid.lowering.common.loop_nest import loops_of
from braid.lowering.common.tensor_loops import apply_map
from braid.lowering.gpu.contraction.code import Code, Value
from braid.lowering.gpu.contraction.epilogue import Epilogue, EpilogueNest, Point

MINUS_INFINITY = float("-inf")
LeftOut = Value | None
"""A value that says whether a number is left out; None for a number that never is."""


@dataclass(frozen=True)
class MaskedScores:
    """`epilogue` is what is elementwise on the product; some of its scores are left out."""

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
        found: set[int] = set()
        for step in self.epilogue.steps:
            maps = loops_of(step.nest).maps
            for value, map in zip(step.nest.inputs, maps, strict=False):
                if value not in self.epilogue.dims:
                    used = (dim for expr in map.results for dim in expr.used_dims())
                    found.update(step.dims[dim] for dim in used)
        return found

    def left_out(self, code: Code, point: Point, values: Mapping[SSAValue, SSAValue]) -> Value:
        """Return whether the score at a point is; `values` are the entry's buffers."""
        found = self._found(code, point, values)
        assert found is not None
        return found

    def _found(self, code: Code, point: Point, values: Mapping[SSAValue, SSAValue]) -> LeftOut:
        (product,) = list(self.epilogue.dims)[:1]
        scores: dict[SSAValue, LeftOut] = {product: None}
        made: dict[SSAValue, SSAValue] = {}
        for step in self.epilogue.steps:
            _walk(code, step, _place(code, step, point), values, made, scores)
        return scores.get(self.epilogue.results[0])


def _place(code: Code, step: EpilogueNest, point: Point) -> list[SSAValue]:
    zero = code.index(code.number(0))
    return [code.index(point[dim]) if dim in point else zero for dim in step.dims]


def _walk(
    code: Code,
    step: EpilogueNest,
    place: Sequence[SSAValue],
    buffers: Mapping[SSAValue, SSAValue],
    made: dict[SSAValue, SSAValue],
    scores: dict[SSAValue, LeftOut],
) -> None:
    """Add what a nest makes to the numbers that are `made` of operands, or to the scores."""
    nest = step.nest
    own, left = dict(buffers), dict(scores)
    for value, argument, map in zip(
        nest.inputs, nest.body.block.args, loops_of(nest).maps, strict=False
    ):
        if value in scores:
            left[argument] = scores[value]
        elif value in made:
            own[argument] = made[value]
        elif argument.uses:
            index = [apply_map(code.builder, expr, place) for expr in map.results]
            own[argument] = code.insert(memref.LoadOp.get(buffers.get(value, value), index))
    for op in nest.body.block.ops:
        if isinstance(op, linalg.YieldOp):
            for output, result in zip(nest.outputs, op.arguments, strict=True):
                if result in left:
                    scores[output] = left[result]
                else:
                    made[output] = own.get(result, result)
        elif left.keys().isdisjoint(op.operands):
            code.builder.insert(op.clone(own))
        else:
            left.update(dict.fromkeys(op.results, _after(code, op, own, left)))


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
