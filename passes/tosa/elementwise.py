"""Elementwise ops of TOSA."""

from functools import partial

from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import i1, is_float
from braid.passes.tosa.node import TosaNode, converter

_SAME = {
    "abs": "abs",
    "add": "add",
    "bitwise_and": "and",
    "bitwise_not": "not",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "ceil": "ceil",
    "cos": "cos",
    "equal": "eq",
    "erf": "erf",
    "exp": "exp",
    "floor": "floor",
    "greater": "gt",
    "greater_equal": "ge",
    "intdiv": "div",
    "log": "log",
    "logical_and": "and",
    "logical_left_shift": "shift_left",
    "logical_not": "not",
    "logical_or": "or",
    "logical_xor": "xor",
    "maximum": "maximum",
    "minimum": "minimum",
    "pow": "pow",
    "reciprocal": "reciprocal",
    "rsqrt": "rsqrt",
    "select": "select",
    "sin": "sin",
    "sub": "sub",
    "tanh": "tanh",
}
"""The names of elementwise ops in braid by those in TOSA, where they differ in nothing else."""


def _same(name: str, t: TosaNode) -> SSAValue:
    t.require_nan_propagation()
    return t.apply(name, *t.op.operands)


for _name, _same_name in _SAME.items():
    converter(_name)(partial(_same, _same_name))


@converter("identity")
def identity(t: TosaNode) -> SSAValue:
    """Return the operand."""
    return t.value(0)


@converter("sigmoid")
def sigmoid(t: TosaNode) -> SSAValue:
    """Return `1 / (1 + exp(-x))`."""
    return t.sigmoid(t.value(0))


@converter("clamp")
def clamp(t: TosaNode) -> SSAValue:
    """Return x limited to `min_val` and `max_val`."""
    t.require_nan_propagation()
    x = t.value(0)
    return t.clamp(x, t.scalar(t.number("min_val"), x), t.scalar(t.number("max_val"), x))


@converter("cast")
def cast(t: TosaNode) -> SSAValue:
    """Convert elements: floats to integers by rounding to nearest, halves to even, and
    saturating.
    """
    x = t.value(0)
    source, target = element_type_of(x), t.element_type
    if target == i1:
        return t.apply("ne", x, t.scalar(0, x))
    if is_float(source) and not is_float(target):
        x = t.apply("round", x)
    return t.cast(x, target)
