"""Elementwise groups by their family."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import (
    Float64Type,
    IntegerType,
    Signedness,
    TensorType,
    f32,
    i1,
    i32,
    i64,
)

from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.elementwise import TABLE, elementwise
from braid.dialects.braid.movement import SliceOp
from braid.lowering.cpu.kernels.elementwise import ElementwiseFamily
from test.machines import AVX2, HOST, SSE, distinct
from test.run.kernels.conftest import candidate_of, make_group

FAMILY = ElementwiseFamily(HOST)
INTEGERS = [
    IntegerType(bits, sign)
    for bits in (8, 16, 32, 64)
    for sign in (Signedness.SIGNLESS, Signedness.UNSIGNED)
]
COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}
FLOAT_ROWS = [
    "add", "sub", "mul", "div", "maximum", "minimum", "neg", "abs", "sign", "ceil", "floor",
    "round", "sqrt", "rsqrt", "reciprocal", "exp", "log", "erf", "tanh", "select", "isnan", "isinf",
]  # fmt: skip
INTEGER_ROWS = ["add", "sub", "mul", "maximum", "minimum", "neg", "abs", "and", "or", "xor", "not"]
ARITY = {row.name: row.arity for row in TABLE}


def one_op(name):
    """Return a group of the op on arguments; a boolean result selects, since it cannot be
    stored."""

    def build(*arguments):
        if name == "select":
            condition = elementwise("lt", arguments[0], arguments[1])
            op = elementwise("select", condition.output, arguments[1], arguments[2])
            return [condition, op], [op.output]
        op = elementwise(name, *arguments)
        if name not in COMPARISONS | {"isnan", "isinf"}:
            return [op], [op.output]
        choice = elementwise("select", op.output, arguments[0], arguments[-1])
        return [op, choice], [choice.output]

    return build


@pytest.mark.parametrize("type", [f32, Float64Type()], ids=str)
@pytest.mark.parametrize("name", [*FLOAT_ROWS, *sorted(COMPARISONS)])
def test_floats(check, name, type) -> None:
    if name in {"exp", "log", "erf", "tanh"} and type != f32:
        pytest.skip("functions of f64 are left to the fallback")
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 100.0, -100.0]
    values = np.concatenate([special, np.linspace(-9, 9, 33)]).astype(to_numpy(type))
    arrays = [np.roll(values, shift * 7)[None] for shift in range(ARITY[name])]
    types = [TensorType(type, a.shape) for a in arrays]
    if name in {"div", "reciprocal", "rsqrt"}:
        arrays = [np.where(np.abs(a) < 1e-30, a.dtype.type(1), a) for a in arrays]
    if name == "rsqrt":
        arrays = [np.abs(arrays[0])]
    check(FAMILY, types, one_op(name), arrays=arrays)


@pytest.mark.parametrize("type", [IntegerType(8), i32, i64], ids=str)
@pytest.mark.parametrize("name", [*INTEGER_ROWS, *sorted(COMPARISONS)])
def test_integers(check, name, type) -> None:
    check(FAMILY, [TensorType(type, (3, 21))] * ARITY[name], one_op(name))


@pytest.mark.parametrize("type", INTEGERS, ids=str)
@pytest.mark.parametrize("name", ["shift_left", "shift_right"])
def test_shifts(check, name, type) -> None:
    """Shifts by distances up to beyond the width, and by a negative one, where they exist."""
    rng, dtype = np.random.default_rng(0), to_numpy(type)
    least = np.iinfo(dtype).min
    values = rng.integers(least, np.iinfo(dtype).max, (3, 21), dtype=dtype, endpoint=True)
    distances = np.resize([0, 1, 7, 8, 15, 31, 32, 63, 64, 65, least], (3, 21)).astype(dtype)
    check(FAMILY, [TensorType(type, (3, 21))] * 2, one_op(name), arrays=[values, distances])


@pytest.mark.parametrize(
    ("source", "target"),
    [(f32, Float64Type()), (Float64Type(), f32), (i32, i64), (i64, i32), (i32, f32), (i64, i64)],
    ids=str,
)
def test_casts(check, source, target) -> None:
    def build(x):
        op = elementwise("cast", x, element_type=target)
        return [op], [op.output]

    check(FAMILY, [TensorType(source, (2, 19))], build)


def test_accuracy_of_functions(check) -> None:
    """Relative to every single result, not to the largest one."""
    x = np.concatenate([np.linspace(-30, 30, 4001), np.geomspace(1e-6, 1, 500)]).astype(np.float32)
    for name in ("exp", "log", "erf", "tanh"):
        values = np.abs(x) + np.float32(1e-7) if name == "log" else x
        check(FAMILY, [values.shape], one_op(name), arrays=[values], relative=5e-7)


@pytest.mark.parametrize("machine", distinct(HOST, AVX2, SSE), ids=lambda machine: machine.name)
def test_exp_up_to_the_ends_of_the_normal_numbers(check, machine) -> None:
    """The largest number with a finite result, the next one, and numbers around 2^-126."""
    largest, lowest = np.float32(88.722832), np.float32(-87.33654)
    ends = [np.nextafter(largest, np.float32(np.inf)), np.inf, -np.inf, np.nan, lowest]
    x = np.concatenate([np.linspace(88, largest, 500), np.linspace(lowest, -86, 500), ends])
    x = x.astype(np.float32)
    check(ElementwiseFamily(machine), [x.shape], one_op("exp"), arrays=[x], relative=5e-7)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
@pytest.mark.parametrize("constant_first", [False, True])
def test_limits_keep_nan(check, name, constant_first) -> None:
    def build(x):
        limit = ConstantOp.of(np.full((1,), 0.5, np.float32))
        operands = (limit.output, x) if constant_first else (x, limit.output)
        op = elementwise(name, *operands)
        return [limit, op], [op.output]

    x = np.array([np.nan, -np.inf, np.inf, 0.25, 0.5, 0.75, -0.0], np.float32)
    check(FAMILY, [x.shape], build, arrays=[x])


@pytest.mark.parametrize("exponent", [0.5, 2.0, 3.0, 4.0, 0.75, -0.75, 2.5])
def test_powers_with_known_exponent(check, exponent) -> None:
    def build(x):
        power = ConstantOp.of(np.full((1,), exponent, np.float32))
        op = elementwise("pow", x, power.output)
        return [power, op], [op.output]

    x = np.concatenate([np.geomspace(1e-4, 1e3, 300), [0.0, np.inf, np.nan]]).astype(np.float32)
    negative = np.array([-1.0, -2.5], np.float32)
    values = np.concatenate([x, negative])
    check(FAMILY, [values.shape], build, arrays=[values], relative=4e-6)


@settings(max_examples=15, deadline=None)
@given(
    shape=st.tuples(*[st.integers(1, 6)] * 2, st.integers(1, 40)),
    repeated=st.tuples(*[st.booleans()] * 3),
)
def test_repeated_dims_and_several_results(check, shape, repeated) -> None:
    def build(x, y):
        one = ConstantOp.of(np.ones((1, 1, 1), np.float32))
        sum = elementwise("add", x, y)
        power = elementwise("exp", sum.output)
        sigmoid = elementwise("div", one.output, elementwise_add(ops, one, power))
        return [one, sum, power, *ops, sigmoid], [sum.output, sigmoid.output]

    ops = []

    def elementwise_add(ops, a, b):
        ops[:] = [elementwise("add", b.output, a.output)]
        return ops[0].output

    other = tuple(1 if r else e for e, r in zip(shape, repeated, strict=True))
    check(FAMILY, [shape, other], build)


@pytest.mark.parametrize("channels", [16, 5])
def test_layouts_of_images(check, channels) -> None:
    def build(x, bias, y):
        biased = elementwise("add", x, bias)
        sum = elementwise("add", biased.output, y)
        return [biased, sum], [sum.output]

    check(FAMILY, [(2, channels, 3, 7), (1, channels, 1, 1), (2, channels, 3, 7)], build)


def test_long_rows_are_shared_by_grid_iterations(check) -> None:
    check(FAMILY, [(3, 9001)], one_op("neg"))


@pytest.mark.parametrize(
    ("shape", "offset", "step"),
    [((2, 12, 5, 7), (0, 2, 0, 0), 1), ((1, 37, 9, 9), (0, 0, 1, 3), 1), ((1, 24, 8, 4), 0, 2)],
)
def test_slices_are_read_where_they_lie(check, shape, offset, step) -> None:
    """The sum of slices and of another operand; in rows, so that innermost steps are 1."""
    offset = offset or (0, 0, 1, 0)
    sizes = [e - o for e, o in zip(shape, offset, strict=True)]
    sizes[2] = -(-sizes[2] // step)

    def build(x, y):
        slices = [SliceOp.get(x, low, sizes, (1, 1, step, 1)) for low in ((0, 0, 0, 0), offset)]
        total = elementwise("add", slices[0].output, slices[1].output)
        last = elementwise("mul", total.output, y)
        return [*slices, total, last], [last.output]

    check(FAMILY, [shape, sizes], build)


def with_cache(machine, size):
    facts = {**dict(machine.facts), "last_cache_bytes": float(size)}
    return ElementwiseFamily(replace(machine, facts=tuple(sorted(facts.items()))))


def sum_and_difference(x, y):
    total, difference = elementwise("add", x, y), elementwise("sub", x, y)
    return [total, difference], [total.output, difference.output]


@pytest.mark.parametrize("machine", distinct(HOST, AVX2, SSE), ids=lambda machine: machine.name)
@pytest.mark.parametrize("extent", [4096, 4096 + 5, 3 * 4096, 160], ids=str)
def test_results_that_no_cache_holds(check, machine, extent) -> None:
    check(with_cache(machine, 256), [(3, extent), (3, extent)], sum_and_difference)


@pytest.mark.parametrize("size, streams", [(2 * 4 * 4096 - 1, True), (2 * 4 * 4096, False)])
def test_only_results_that_no_cache_holds_go_past_it(size, streams) -> None:
    family = with_cache(AVX2, size)
    group = make_group([TensorType(f32, (4, 1024))] * 2, sum_and_difference)
    candidate = candidate_of(family, group)
    text = str(candidate.emit("kernel", next(candidate.space(0))).module)
    assert ("nontemporal" in text) == streams


@pytest.mark.parametrize("kind", [f32, Float64Type(), i32, IntegerType(8)], ids=str)
@settings(max_examples=8, deadline=None)
@given(
    rows=st.integers(1, 9),
    columns=st.integers(1, 70),
    repeated=st.lists(st.booleans(), min_size=2, max_size=2),
)
def test_conditions_that_are_stored(check, kind, rows, columns, repeated) -> None:
    """A mask of one byte per element: of every element, of a row, of a column, or one for all."""
    shape = tuple(1 if one else e for one, e in zip(repeated, (rows, columns), strict=True))

    def build(condition, x, y):
        op = elementwise("select", condition, x, y)
        return [op], [op.output]

    random = np.random.default_rng(rows * columns)
    arrays = [
        random.random(shape) < 0.5,
        *(random.integers(-9, 9, (rows, columns)).astype(to_numpy(kind)) for _ in range(2)),
    ]
    types = [TensorType(i1, shape), *[TensorType(kind, (rows, columns))] * 2]
    check(FAMILY, types, build, arrays=arrays)
