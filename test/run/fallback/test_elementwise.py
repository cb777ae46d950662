"""Every row of the elementwise table on every kind of element type."""

import numpy as np
import pytest
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float64Type,
    IntegerType,
    Signedness,
    TensorType,
    f32,
    i32,
)

from braid.dialects.braid.dtypes import i1, to_numpy
from braid.dialects.braid.elementwise import ELEMENTWISE, TABLE, elementwise

SHAPE = (3, 7)
BITWISE = {"and", "or", "xor", "not"}
SHIFTS = {"shift_left", "shift_right"}
ANY_TYPE = {
    "add", "sub", "mul", "div", "rem", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge",
    "select", "neg", "abs", "sign",
}  # fmt: skip
FLOATS = [f32, Float64Type(), Float16Type(), BFloat16Type()]
INTEGERS = [
    IntegerType(8),
    i32,
    IntegerType(64),
    IntegerType(8, Signedness.UNSIGNED),
    IntegerType(32, Signedness.UNSIGNED),
]
ABOVE_ONE = {"acosh"}
POSITIVE = {"sqrt", "rsqrt", "log", "pow"}
WITHIN_ONE = {"asin", "acos", "atanh"}


def domain(name, type, generator):
    low, high = -2.0, 2.0
    if name in ABOVE_ONE:
        low = 1.0
    elif name in POSITIVE:
        low = 0.125
    elif name in WITHIN_ONE:
        low, high = -0.9, 0.9
    return generator.uniform(low, high, SHAPE).astype(to_numpy(type))


@pytest.mark.parametrize("type", FLOATS, ids=str)
@pytest.mark.parametrize("row", [r for r in TABLE if r.name not in BITWISE | SHIFTS | {"cast"}],
                         ids=lambda row: row.name)  # fmt: skip
def test_floats(check, row, type) -> None:
    generator = np.random.default_rng(1)
    types = [TensorType(type, SHAPE)] * row.arity
    inputs = {i: domain(row.name, type, generator) for i in range(row.arity)}
    if row.name == "select":
        types[0] = TensorType(i1, SHAPE)
        del inputs[0]
    check(types, lambda *x: [ELEMENTWISE[row.name].on(*x)], inputs=inputs)


@pytest.mark.parametrize("type", INTEGERS, ids=str)
@pytest.mark.parametrize("name", sorted(ANY_TYPE | BITWISE))
def test_integers(check, name, type) -> None:
    unsigned = type.signedness.data == Signedness.UNSIGNED
    if unsigned and name in ("neg", "sub"):
        pytest.skip("has no meaning on unsigned integers")
    arity = ELEMENTWISE[name].ROW.arity
    types = [TensorType(type, SHAPE)] * arity
    if name == "select":
        types[0] = TensorType(i1, SHAPE)
    check(types, lambda *x: [ELEMENTWISE[name].on(*x)])


@pytest.mark.parametrize("name", sorted(SHIFTS))
@pytest.mark.parametrize("type", INTEGERS, ids=str)
def test_shifts(check, name, type) -> None:
    amounts = np.arange(21).reshape(SHAPE).astype(to_numpy(type)) % 7
    check([TensorType(type, SHAPE)] * 2, lambda *x: [ELEMENTWISE[name].on(*x)], inputs={1: amounts})


@pytest.mark.parametrize("name", ["and", "or", "xor", "not", "eq", "maximum", "minimum", "select"])
def test_bools(check, name) -> None:
    arity = ELEMENTWISE[name].ROW.arity
    check([TensorType(i1, SHAPE)] * arity, lambda *x: [ELEMENTWISE[name].on(*x)])


@pytest.mark.parametrize("target", [*FLOATS, *INTEGERS, i1], ids=str)
@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, i1], ids=str)
def test_casts(check, source, target) -> None:
    values = np.linspace(0 if "ui" in f"{source}{target}" else -3, 4, 21).reshape(SHAPE)
    array = values.astype(to_numpy(source))
    check(
        [TensorType(source, SHAPE)],
        lambda x: [elementwise("cast", x, element_type=target)],
        inputs={0: array},
    )


@pytest.mark.parametrize("name", ["maximum", "minimum", "sign", "isnan", "isinf", "lt", "ne"])
def test_special_values(check, name) -> None:
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -1.5], np.float32)
    a, b = (g.astype(np.float32) for g in np.meshgrid(special, special))
    arity = ELEMENTWISE[name].ROW.arity
    check(
        [TensorType(f32, (5, 5))] * arity,
        lambda *x: [ELEMENTWISE[name].on(*x)],
        inputs=dict(enumerate([a, b][:arity])),
    )


def test_division_does_not_trap(check) -> None:
    a = np.array([-(2**31), 7, 0, -9], np.int32)
    b = np.array([-1, 0, 0, 2], np.int32)
    types = [TensorType(i32, (4,))] * 2
    check(types, lambda *x: [elementwise("div", *x)], inputs={0: a, 1: b})


@pytest.mark.parametrize("type", INTEGERS, ids=str)
def test_integer_powers(check, type) -> None:
    unsigned = type.signedness.data == Signedness.UNSIGNED
    bases, exponents = np.meshgrid([0, 1, 2, 3, 5], [0, 1, 2, 9])
    if not unsigned:
        bases[:, 3], exponents[3, :] = -1, -3
    arrays = [array.astype(to_numpy(type)) for array in (bases, exponents)]
    check(
        [TensorType(type, (4, 5))] * 2,
        lambda *x: [elementwise("pow", *x)],
        inputs=dict(enumerate(arrays)),
    )


def test_repeated_dims_in_a_chain(check) -> None:
    types = [TensorType(f32, (2, 8, 5)), TensorType(f32, (1, 8, 1)), TensorType(f32, (1, 1, 1))]

    def build(x, scale, bias):
        product = elementwise("mul", x, scale)
        total = elementwise("add", product, bias)
        return [product, total, elementwise("tanh", total)]

    kernel = check(types, build)
    assert kernel.scratch_bytes == 0 and kernel.grid > 1
