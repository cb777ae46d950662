"""Random numbers of StableHLO's `rng`, whose state is left to the implementation.

Each op has a key of its own, and draws the same numbers by Philox at every run.
"""

import math

import numpy as np
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import bytes_of, f32, is_computed_integer, is_float
from braid.passes.conversion.bit_counts import as_unsigned
from braid.passes.stablehlo.node import StablehloNode, converter
from braid.passes.stablehlo.random_bits import philox

_DIGITS = {"bf16": 8, "f16": 11, "f32": 24, "f64": 53}
"""The bits of a fraction of 1 that each type has exactly."""


@converter("rng")
def random_numbers(t: StablehloNode) -> SSAValue:
    """Return numbers from operand 0 on, below operand 1, or of that mean and deviation."""
    if not isinstance(t.op.parent_op(), FuncOp):
        t.unsupported(
            "it would draw the same numbers in every iteration",
            hint="carry the state of 'stablehlo.rng_bit_generator' in the loop",
        )
    element_type, distribution = t.element_type, t.text("rng_distribution")
    if element_type_of(t.value(0)) != element_type or element_type_of(t.value(1)) != element_type:
        t.fail(f"its operands are not of {element_type}, as its result is")
    shape = t.numbers(t.op.results[0])
    if (empty := t.empty(0)) is not None:
        return empty
    first, second = (t.repeat(t.value(index), shape) for index in (0, 1))
    if distribution == "UNIFORM" and is_float(element_type):
        drawn = t.cast(_fractions(t, shape, element_type, 0), element_type)
        return t.apply("add", first, t.apply("mul", drawn, t.apply("sub", second, first)))
    if distribution == "UNIFORM":
        return _integers(t, shape, first, second)
    if distribution == "NORMAL" and is_float(element_type):
        drawn = t.cast(_normal(t, shape, element_type), element_type)
        return t.apply("add", first, t.apply("mul", drawn, second))
    t.fail(f"its distribution is '{distribution}' of {element_type}, expected UNIFORM or NORMAL")


def _bits(t: StablehloNode, shape: tuple[int, ...], number: int, *, is_long: bool) -> SSAValue:
    """Return random words of 32 or 64 bits; `number` tells the draws of an op apart."""
    module = t.op.get_toplevel_object()
    assert isinstance(module, ModuleOp), "what is converted is in a module"
    key = sum(op.name == t.op.name for op in module.walk())  # those that are not converted yet
    words = (key, 0, number)
    state = [t.constant(np.array([word], np.uint64)) for word in words]
    return philox(t, state, shape, is_long=is_long)[1]


def _fractions(
    t: StablehloNode, shape: tuple[int, ...], element_type: Attribute, number: int
) -> SSAValue:
    """Return numbers from 0 on, below 1, in f32 or f64, that `element_type` has exactly."""
    digits, is_long = _DIGITS[str(element_type)], bytes_of(element_type) == 8
    bits = _bits(t, shape, number, is_long=is_long)
    kept = t.apply("shift_right", bits, t.scalar((64 if is_long else 32) - digits, bits))
    drawn = t.cast(kept, f64 if is_long else f32)
    return t.apply("mul", drawn, t.scalar(0.5**digits, drawn))


def _normal(t: StablehloNode, shape: tuple[int, ...], element_type: Attribute) -> SSAValue:
    """Return numbers of mean 0 and variance 1, after G. Box and M. Muller, 1958."""
    kind = f64 if bytes_of(element_type) == 8 else f32
    size, turn = (_fractions(t, shape, kind, number) for number in (0, 1))
    inside = t.apply("sub", t.scalar(1, size), size)  # it is never 0
    squared = t.apply("mul", t.scalar(-2, size), t.apply("log", inside))
    angle = t.apply("mul", turn, t.scalar(2 * math.pi, turn))
    return t.apply("mul", t.apply("sqrt", squared), t.apply("cos", angle))


def _integers(t: StablehloNode, shape: tuple[int, ...], first: SSAValue, end: SSAValue) -> SSAValue:
    """Return integers from `first` on, before `end`; `first` where there are none."""
    element_type = element_type_of(first)
    if not is_computed_integer(element_type):
        t.fail(f"its numbers are of {element_type}, expected floats or integers")
    bits = _bits(t, shape, 0, is_long=True)
    count = t.cast(as_unsigned(t, t.apply("sub", end, first)), element_type_of(bits))
    zero = t.scalar(0, count)
    is_empty = t.apply("eq", count, zero)
    rest = t.apply("rem", bits, t.apply("select", is_empty, t.scalar(1, count), count))
    return t.apply("add", first, t.cast(t.apply("select", is_empty, zero, rest), element_type))
