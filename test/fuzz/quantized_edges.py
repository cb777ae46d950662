"""QDQ graphs at the limits of integer arithmetic: one pattern for each check of the passes.

Numbers are near their zero points, so that results are few steps of what they are computed in and
are not cut off by the range of what they are quantized to: an error of one step is visible.
"""

from typing import Any

import numpy as np

from test.fuzz.quantized_graphs import Draft, Value, limits

SMALL = 3
"""How far numbers are from their zero points."""

LARGEST = 1e37
"""Larger numbers may overflow in intermediate values, in the original model or in a rewritten
one."""

EXTREME = (1e-38, 3e-39, 1e-30, 2e-27, 1e-14, 1.0, 1e9, 1e15, 1e30, 1e36)

ROUNDING = 6e-7
"""Of a bias: The tolerance of a bias: 2 to the -22 if it counts as whole steps, and four roundings
of f32."""


def near_zero(d: Draft, shape: tuple[int, ...], scale: float) -> Value:
    """Return an input of values around a zero point in the middle of the type's range."""
    kind = d.one_of("uint8", "int8")
    low, high = limits(kind)
    zero = (low + high + 1) // 2
    d.count += 1
    name = f"x{d.count}"
    numbers = zero + d.random.integers(-SMALL, SMALL + 1, shape)
    d.inputs[name] = numbers.astype(kind)
    y = d.add("DequantizeLinear", name, d.constant(np.float32(scale)), d.constant(zero, kind))
    return Value(y, shape, SMALL * abs(scale), 0.0, scale)


def quantized(d: Draft, x: Value, step: float, kind: str | None = None) -> Value:
    """Return `x` quantized and dequantized with this step and a middle zero point."""
    kind = kind or str(d.one_of("uint8", "int8", "int16"))
    low, high = limits(kind)
    pair = d.constant(np.float32(step)), d.constant((low + high + 1) // 2, kind)
    y = d.add("DequantizeLinear", d.add("QuantizeLinear", x.name, *pair), *pair)
    return Value(y, x.shape, x.size, x.error + abs(step))


def product(d: Draft, x: Value, scales: Any) -> tuple[str, tuple[int, ...], int]:
    """Return a product of `x` by a weight of small values, its shape and channel dim."""
    per_channel = np.ndim(scales) > 0
    if d.coin():
        w = d.random.integers(-SMALL, SMALL + 1, (4, x.shape[1], 1, 1))
        along = {"axis": 0} if per_channel else {}
        weight = d.add("DequantizeLinear", d.constant(w, "int8"), d.constant(scales), **along)
        return d.add("Conv", x.name, weight), (1, 4, *x.shape[2:]), 1
    w = d.random.integers(-SMALL, SMALL + 1, (x.shape[3], 4))
    along = {"axis": 1} if per_channel else {}
    weight = d.add("DequantizeLinear", d.constant(w, "int8"), d.constant(scales), **along)
    return d.add("MatMul", x.name, weight), (*x.shape[:3], 4), 3


def biased_product(d: Draft) -> list[Value]:
    """Add a bias of a fractional number of steps, whose sum is used as is and finely quantized."""
    sx = float(np.float32(d.one_of(0.05, 1.0, 0.3)))
    scales = (d.one_of(0.02, 1.0) * d.random.uniform(0.5, 1, d.one_of((), 4))).astype(np.float32)
    x = near_zero(d, (1, 4, 3, 4), sx)
    y, shape, dim = product(d, x, scales)
    unit = sx * float(scales.max())
    numbers = d.random.integers(-9, 10, 4)
    broad = (1, 4, 1, 1) if dim == 1 else (4,)
    if d.coin():
        own = np.float32(unit * d.random.uniform(0.05, 1.9))
        bias = d.add("DequantizeLinear", d.constant(numbers, "int32"), d.constant(own))
        bias = d.add("Reshape", bias, d.integers(broad))
        most = 9.0 * float(own)
    else:
        real = (unit * (numbers + d.random.uniform(-0.5, 0.5, 4))).astype(np.float32)
        bias, most = d.constant(real.reshape(broad)), 10.0 * unit
    y = d.add("Add", *d.random.permutation([y, bias]).tolist())
    terms = x.shape[dim]
    size = terms * x.size * SMALL * float(scales.max()) + most
    sums = Value(y, shape, size, ROUNDING * size)
    if d.coin(0.3):
        return [sums]
    behind = sums
    if d.coin(0.3):
        behind = sums.moved(d.add("Relu", y))
    elif d.coin(0.3):
        factor = np.float32(d.one_of(0.01, 3.0, 50.0))
        name = d.add("Mul", y, d.constant(factor))
        behind = Value(name, shape, size * float(factor), sums.error * float(factor))
    step = behind.size / size * unit * d.one_of(0.02, 0.05, 0.1, 0.5, 3.0)
    results = [quantized(d, behind, step)]
    if d.coin(0.2):
        results.append(quantized(d, behind, step * 0.02, "int16"))
    return [*results, sums] if d.coin(0.2) else results


def huge_biases(d: Draft) -> list[Value]:
    """Add biases of whole steps whose sum does not fit in 32 bits."""
    x = near_zero(d, (1, 4, 3, 4), 1.0)
    w = d.random.integers(-SMALL, SMALL + 1, (4, 4))
    one = d.constant(np.float32(1))
    y = d.add("MatMul", x.name, d.add("DequantizeLinear", d.constant(w, "int8"), one))
    shape, size, sign = x.shape, 0.0, d.one_of(-1, 1)
    for place in range(3):
        numbers = np.full(4, sign * d.one_of(2**30, 2**30 - 64, 2**29 + 2**28), np.int32)
        bias = d.add("DequantizeLinear", d.constant(numbers), d.constant(np.float32(1)))
        y, size = d.add("Add", y, bias), size + 2.0**30
        if place < 2:
            shape = (1, shape[2], shape[1], 4)
            y = d.add("Reshape", y, d.integers(shape))
    return [Value(y, shape, size, ROUNDING * size)]


def extreme_scales(d: Draft) -> list[Value]:
    """Use scales, also negative, whose products or quotients are subnormal or infinite."""
    first, second, third = (float(np.float32(d.one_of(*EXTREME))) for _ in range(3))
    x = near_zero(d, (1, 4, 3, 4), first * d.one_of(1, 1, 1, -1))
    array = next(reversed(d.inputs.values()))
    if d.coin(0.4):  # Nothing, in steps of whatever size.
        array[...], x.size = 0 if array.dtype == np.int8 else 128, 0.0
    match d.one_of("pair", "scaled", "product", "product", "mul"):
        case "pair":
            return [quantized(d, x, second * d.one_of(1, 1, 1, -1), d.one_of("int8", "uint8"))]
        case "scaled":
            factor = d.one_of(second, second, np.inf, np.nan)
            shape = d.one_of((), (1, 4, 1, 1))
            y = d.add("Mul", x.name, d.constant(np.full(shape, factor, np.float32)))
            y = Value(y, x.shape, 0.0)
            if not np.isfinite(factor):
                return [quantized(d, y, third, "uint8")]
            y.size = x.size * factor
        case "mul":
            other = near_zero(d, x.shape, second)
            y = Value(d.add("Mul", x.name, other.name), x.shape, x.size * other.size)
        case _:
            y, shape, _ = product(d, x, np.float32(second))
            size = 4 * x.size * SMALL * second
            if x.size and d.coin():
                array[...] = d.numbers(array.dtype.name, array.shape)
                size *= 256 / SMALL
            y = Value(y, shape, size, ROUNDING * size + 2e-44)
            if d.coin() and size < LARGEST:
                return [y]
    return [quantized(d, y, third, d.one_of("int8", "uint8"))] if y.size < LARGEST else []


def orders(d: Draft) -> list[Value]:
    """Take maxima of values whose negative scale reverses their order."""
    x = near_zero(d, (1, 4, 4, 4), float(np.float32(-0.1)))
    match d.one_of("MaxPool", "ReduceMax", "ReduceMin"):
        case "MaxPool":
            y = x.moved(d.add("MaxPool", x.name, kernel_shape=[2, 2]), (1, 4, 3, 3))
        case op:
            y = x.moved(d.add(op, x.name, d.integers([3]), keepdims=1), (1, 4, 4, 1))
    return [y if d.coin() else quantized(d, y, 0.03)]


def not_finite(d: Draft) -> list[Value]:
    """Clamp values that may be NaN, which is quantized to 0 and not to the limit."""
    shape = (1, 4, 3, 4)
    d.count += 1
    name = f"x{d.count}"
    special = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0], np.float32)
    d.inputs[name] = d.random.choice(special, shape)
    x = near_zero(d, shape, 0.5)
    y = d.add(d.one_of("Add", "Sub", "Mul"), x.name, name)
    low = d.constant(np.float32(d.one_of(0.7, -0.5, 2.0)))
    y = d.add("Clip", y, low, d.constant(np.float32(5.0))) if d.coin() else d.add("Max", y, low)
    return [quantized(d, Value(y, shape, 5.0), d.one_of(0.05, 0.1), "uint8")]


def distant_scales(d: Draft) -> list[Value]:
    """Add values of two scales, the larger of which is many steps of the result."""
    step = float(np.float32(d.one_of(0.01, 0.3)))
    x = near_zero(d, (1, 2, 3, 4), step * float(d.random.uniform(1, 3)) / 2)
    large = step * 2.0 ** float(d.random.uniform(8, 22))
    other = near_zero(d, x.shape, float(np.float32(large)))
    array = d.inputs[list(d.inputs)[-1]]
    array[d.random.random(array.shape) < 0.7] = 0 if array.dtype == np.int8 else 128
    own = d.inputs[list(d.inputs)[-2]]
    own[...] = d.random.integers(-100, 100, own.shape) + (0 if own.dtype == np.int8 else 128)
    y = d.add(d.one_of("Add", "Sub"), *d.random.permutation([x.name, other.name]).tolist())
    size = 300 * x.scale + SMALL * large
    return [quantized(d, Value(y, x.shape, size), step, d.one_of("int8", "uint8"))]


SCENES = (
    biased_product,
    biased_product,
    huge_biases,
    extreme_scales,
    extreme_scales,
    orders,
    not_finite,
    distant_scales,
)


def edges(seed: int) -> tuple[Draft, list[Value]]:
    """Return a graph of three patterns and its outputs."""
    d = Draft(np.random.default_rng(seed))
    results = [value for _ in range(3) for value in d.one_of(*SCENES)(d)]
    return d, results or biased_product(d)
