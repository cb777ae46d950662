"""Drawing elementwise ops."""

from math import exp

import numpy as np
from hypothesis import strategies as st
from onnx import TensorProto, helper

from benchmarks.generators.random_models.draft import (
    FLOATS,
    INTEGERS,
    NARROW,
    UNSIGNED,
    Draft,
    Value,
)

LARGEST = 1e4
"""No op is put on values that could become larger than this."""

SMOOTH_BOUNDED = ("Tanh", "Sigmoid", "Softsign", "Erf", "Sin", "Cos", "Atan", "HardSigmoid")
SMOOTH_LINEAR = (
    "Softplus",
    "Asinh",
    "Elu",
    "Selu",
    "Celu",
    "LeakyRelu",
    "HardSwish",
    "Mish",
    "Gelu",
)
SMOOTH_STEEP = ("Exp", "Sinh", "Cosh")
EXACT = ("Abs", "Neg", "Relu", "Identity")
STEPS = ("Floor", "Ceil", "Round", "Sign", "ThresholdedRelu", "Shrink", "IsNaN", "IsInf")
PARTIAL = ("Sqrt", "Log", "Reciprocal", "Acos", "Asin", "Acosh", "Atanh", "Tan")
COMPARISONS = ("Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual")


def unary(draft: Draft) -> None:
    value = draft.pick(lambda v: v.is_float)
    if value is None:
        return
    groups = [SMOOTH_BOUNDED, SMOOTH_LINEAR]
    groups += [EXACT] if value.bound <= LARGEST else []
    groups += [SMOOTH_STEEP] if value.bound <= 4 else []
    groups += [STEPS, PARTIAL] if value.exact else []
    group = draft.draw(st.sampled_from(groups))
    op = draft.draw(st.sampled_from(group))
    # ONNX Runtime has some ops for floats of 32 bits alone; others then check the interpreter.
    if group is SMOOTH_BOUNDED:
        draft.add(op, [value], bound=1.6)
    elif group is SMOOTH_LINEAR:
        draft.add(op, [value], bound=2 * value.bound + 2)
    elif group is SMOOTH_STEEP:
        draft.add(op, [value], bound=exp(value.bound))
    elif group is EXACT:
        draft.add(op, [value], exact=value.exact, bound=value.bound)
    elif group is STEPS:
        draft.add(op, [value], exact=True, bound=value.bound + 1)
    else:
        draft.add(op, [value])


def integer_unary(draft: Draft) -> None:
    value = draft.pick(lambda v: v.type in INTEGERS)
    if value is not None:
        op = draft.draw(st.sampled_from(("Identity", "BitwiseNot", "Abs", "Sign")))
        draft.add(op, [value], exact=True, bound=value.bound + 1)


def partner(draft: Draft, value: Value) -> Value:
    """Return a second operand: another value that broadcasts with `value`, or a weight."""
    other = draft.pick(lambda v: v.type == value.type and broadcasts(v.shape, value.shape))
    if other is not None and draft.draw(st.booleans()):
        return other
    dims = draft.draw(st.integers(0, value.rank))
    shape = tuple(draft.draw(st.sampled_from((1, d))) for d in value.shape[dims:])
    return draft.weight(value.type, shape)


def broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(x == y or 1 in (x, y) for x, y in zip(a[::-1], b[::-1], strict=False))


def binary(draft: Draft) -> None:
    a = draft.pick(lambda v: v.is_float or v.type in INTEGERS)
    if a is None:
        return
    b = partner(draft, a)
    exact = a.exact and b.exact
    largest = LARGEST if a.is_float else 60
    choices: list[tuple[str, float, bool]] = [
        ("Max", max(a.bound, b.bound), exact),
        ("Min", max(a.bound, b.bound), exact),
    ]
    if a.bound + b.bound <= largest:
        choices.append(("Add", a.bound + b.bound, exact))
        if a.type not in UNSIGNED:
            choices.append(("Sub", a.bound + b.bound, exact))
    if a.bound * b.bound <= largest:
        # The product of two products of eighths may not fit the mantissa.
        choices.append(("Mul", a.bound * b.bound, exact and _is_exact_product(a, b)))
    op, bound, exact = draft.draw(st.sampled_from(choices))
    draft.add(op, draft.draw(st.sampled_from(([a, b], [b, a]))), exact=exact, bound=bound)


def _is_exact_product(a: Value, b: Value) -> bool:
    return a.type not in NARROW and max(a.bound, b.bound) <= 9


def division(draft: Draft) -> None:
    a = draft.pick(lambda v: v.is_float or v.type in INTEGERS)
    if a is None:
        return
    dtype = helper.tensor_dtype_to_np_dtype(a.type)
    divisor = draft.constant(np.array(draft.draw(st.sampled_from((1, 2, 3, 4))), dtype))
    if not a.is_float and draft.draw(st.booleans()):
        draft.add("Mod", [a, divisor], exact=True, bound=4)
    elif a.is_float and a.exact and draft.draw(st.booleans()):
        draft.add("Mod", [a, divisor], fmod=1, exact=True, bound=4)
    else:
        draft.add("Div", [a, divisor], exact=not a.is_float, bound=a.bound)


def power(draft: Draft) -> None:
    a = draft.pick(lambda v: v.is_float and v.exact)
    if a is not None:
        dtype = helper.tensor_dtype_to_np_dtype(a.type)
        exponent = draft.draw(st.sampled_from((0.5, -1.0, 0.0, 2.0, 3.0, -2.0, 1.5)))
        draft.add("Pow", [a, draft.constant(np.array(exponent, dtype))])


def comparison(draft: Draft) -> None:
    a = draft.pick(lambda v: v.exact and (v.is_float or v.type in INTEGERS))
    if a is None:
        return
    b = partner(draft, a)
    if b.exact:
        draft.add(draft.draw(st.sampled_from(COMPARISONS)), [a, b], exact=True)


def logic(draft: Draft) -> None:
    a = draft.pick(lambda v: v.type == TensorProto.BOOL and v.exact)
    if a is None:
        return
    op = draft.draw(st.sampled_from(("And", "Or", "Xor", "Not")))
    b = partner(draft, a)
    if b.exact:
        draft.add(op, [a] if op == "Not" else [a, b], exact=True)


def bits(draft: Draft) -> None:
    a = draft.pick(lambda v: v.type in INTEGERS)
    if a is not None:
        op = draft.draw(st.sampled_from(("BitwiseAnd", "BitwiseOr", "BitwiseXor")))
        draft.add(op, [a, partner(draft, a)], exact=True, bound=128)


def where(draft: Draft) -> None:
    a = draft.pick(lambda v: v.type != TensorProto.BOOL)
    if a is None:
        return
    b = partner(draft, a)
    condition = draft.pick(lambda v: v.type == TensorProto.BOOL and broadcasts(v.shape, a.shape))
    condition = condition or draft.weight(TensorProto.BOOL, a.shape)
    if broadcasts(condition.shape, b.shape):
        exact = a.exact and b.exact and condition.exact
        draft.add("Where", [condition, a, b], exact=exact, bound=max(a.bound, b.bound))


def clip(draft: Draft) -> None:
    a = draft.pick(lambda v: v.is_float)
    if a is not None:
        dtype = helper.tensor_dtype_to_np_dtype(a.type)
        low, high = (draft.constant(np.array(x, dtype)) for x in (-1.5, 2.25))
        ends = draft.draw(st.sampled_from(([low, high], [low], [None, high])))
        draft.add("Clip", [a, *ends], exact=a.exact, bound=max(a.bound, 2.25))


def prelu(draft: Draft) -> None:
    a = draft.pick(lambda v: v.is_float and v.bound <= LARGEST)
    if a is not None:
        draft.add("PRelu", [a, draft.weight(a.type, a.shape[-1:])], bound=3 * a.bound)


def cast(draft: Draft) -> None:
    """Includes numbers that the type does not have, about which only braid's executions agree."""
    a = draft.pick(lambda v: v.exact)
    if a is None:
        return
    to = draft.draw(st.sampled_from((*FLOATS, *INTEGERS, TensorProto.BOOL)))
    if a.is_float and to in INTEGERS and (to in UNSIGNED or a.bound > 100):
        draft.is_portable = False
    elif a.bound > 100 and to in NARROW:
        return
    bound = a.bound if a.bound <= 100 and to not in UNSIGNED else 2.0**64
    draft.add("Cast", [a], to=to, exact=True, bound=bound)


DRAWERS = (
    unary, unary, integer_unary, binary, binary, division, power, comparison, logic, bits, where,
    clip, prelu, cast,
)  # fmt: skip
