"""The code of a pointwise nest's body: its ops evaluated on one vector of points."""

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import i1, i8
from xdsl.ir import BlockArgument, Operation, SSAValue

from braid.analysis.nests.pointwise import Pointwise, splat
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.quantization import QuantizationOp
from braid.lowering.emit.emitter import Emitter, Value
from braid.lowering.emit.math.elementwise_table import Emit, emitter_of
from braid.lowering.emit.math.quantization import quantization_emitter
from braid.lowering.emit.math.specialize import specialized

Leaf = Callable[[BlockArgument], Value]
"""Returns the vector of a block argument's values at the points."""


def has_code(points: Pointwise) -> bool:
    """Return whether `evaluate` has code for all ops."""
    ops = (op for op in points.ops if isinstance(op, ElementwiseOp))
    return all(_emit_of(op) is not None for op in ops)


def evaluate(
    e: Emitter, points: Pointwise, leaf: Leaf, known: Mapping[SSAValue, Value]
) -> list[Value]:
    """Emit the ops; return the vectors of the results.

    `known` has the vectors that are not computed here: of the anchor, and of slices.
    """
    values: dict[SSAValue, Value] = dict(known)
    for argument in points.leaves:
        loaded = leaf(argument)
        is_truth = element_type_of(argument) == i1
        values[argument] = _as_truth(e, loaded) if is_truth else loaded
    for op in points.ops:
        values[op.results[0]] = _evaluate(e, op, values)
    return [values[result] for result in points.results]


def _as_truth(e: Emitter, stored: Value) -> Value:
    """Emit the truth values of the bytes that they are stored in."""
    differ = emitter_of("ne", [i8, i8], i1)
    assert differ is not None
    return differ(e, [stored, e.constant(0, e.vector_type(i8))])


def _emit_of(op: ElementwiseOp) -> Emit | None:
    special = specialized(op)
    if special is not None:
        return special
    if isinstance(op, QuantizationOp):
        return quantization_emitter(op)
    operands = [element_type_of(operand) for operand in op.operands]
    return emitter_of(op.ROW.name, operands, op.result_type().element_type)


def _evaluate(e: Emitter, op: Operation, values: Mapping[SSAValue, Value]) -> Value:
    if isinstance(op, ConstantOp):
        value = splat(op)
        assert value is not None
        return e.constant(value, e.vector_type(element_type_of(op.output)))
    assert isinstance(op, ElementwiseOp)
    emit = _emit_of(op)
    assert emit is not None
    return emit(e, [values[operand] for operand in op.operands])
