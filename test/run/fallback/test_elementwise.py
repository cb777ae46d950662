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

from braid.dialects.braid.dtypes import i1, is_float, to_numpy
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


class Rows:
    """Rows of the table, each on separate operands, in one group: one compilation for all."""

    def __init__(self, names, element_type) -> None:
        generator = np.random.default_rng(1)
        self.names = sorted(names)
        self.types, self.inputs, self.slices = [], {}, []
        for name in self.names:
            start = len(self.types)
            for position in range(ELEMENTWISE[name].ROW.arity):
                is_condition = name == "select" and position == 0
                kind = i1 if is_condition else element_type
                if is_float(kind):
                    self.inputs[len(self.types)] = domain(name, kind, generator)
                self.types.append(TensorType(kind, SHAPE))
            self.slices.append(slice(start, len(self.types)))

    def build(self, *values):
        return [
            ELEMENTWISE[name].on(*values[operands])
            for name, operands in zip(self.names, self.slices, strict=True)
        ]


def check_rows(check, names, element_type) -> None:
    rows = Rows(names, element_type)
    check(rows.types, rows.build, inputs=rows.inputs, every=True)


@pytest.mark.parametrize("type", FLOATS, ids=str)
def test_floats(check, type) -> None:
    names = {row.name for row in TABLE} - BITWISE - SHIFTS - {"cast", "bitcast"}
    check_rows(check, names, type)


@pytest.mark.parametrize("type", INTEGERS, ids=str)
def test_integers(check, type) -> None:
    is_unsigned = type.signedness.data == Signedness.UNSIGNED
    check_rows(check, (ANY_TYPE | BITWISE) - ({"neg", "sub"} if is_unsigned else set()), type)


def test_bools(check) -> None:
    check_rows(check, [*BITWISE, "eq", "maximum", "minimum", "select"], i1)


@pytest.mark.parametrize("name", sorted(SHIFTS))
@pytest.mark.parametrize("type", INTEGERS, ids=str)
def test_shifts(check, name, type) -> None:
    amounts = 5 * np.arange(21).reshape(SHAPE).astype(to_numpy(type))  # beyond every width
    check([TensorType(type, SHAPE)] * 2, lambda *x: [ELEMENTWISE[name].on(*x)], inputs={1: amounts})


@pytest.mark.parametrize(
    ("source", "target"),
    [(f32, IntegerType(32)), (IntegerType(16), FLOATS[2]), (FLOATS[1], IntegerType(64))],
)
def test_bitcasts(check, source, target) -> None:
    check([TensorType(source, SHAPE)], lambda x: [elementwise("bitcast", x, element_type=target)])


@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, i1], ids=str)
@pytest.mark.parametrize("unsigned", [False, True])
def test_casts(check, source, unsigned) -> None:
    """Numbers that both types have; negative ones only where no type is unsigned."""
    is_unsigned = isinstance(source, IntegerType) and source.signedness.data == Signedness.UNSIGNED
    targets = [t for t in (*FLOATS, *INTEGERS, i1) if unsigned or "ui" not in str(t)]
    values = np.linspace(0 if unsigned or is_unsigned else -3, 4, 21).reshape(SHAPE)
    check(
        [TensorType(source, SHAPE)],
        lambda x: [elementwise("cast", x, element_type=target) for target in targets],
        inputs={0: values.astype(to_numpy(source))},
        every=True,
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
