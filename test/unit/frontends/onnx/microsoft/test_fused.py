"""Fused products and convolutions, and weights of few bits: random nodes beside ONNX Runtime."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from test.unit.frontends.onnx.microsoft.harness import (
    QUICK,
    Array,
    Case,
    Fixed,
    Generator,
    Rng,
    arrays_of,
    check,
    check_many,
    check_random,
    floats,
    maybe,
    model_of,
    onnx_runtime,
    quick_cases,
    refusal,
    sizes,
)


def fused_matmul(rng: Rng, kinds: Any = (np.float32, np.float64)) -> Case:
    kind = rng.choice(kinds)
    rows, inner, columns = sizes(rng, 3)
    outer = sizes(rng, int(rng.integers(0, 3)), 3)
    flags = {name: int(rng.integers(0, 2)) for name in ("transA", "transB")}
    attributes: dict[str, Any] = dict(flags)
    if rng.random() < 0.6:
        attributes["alpha"] = float(rng.uniform(0.5, 2))
    shapes = [[*outer, rows, inner], [*outer, inner, columns]]
    for shape, side in zip(shapes, "AB", strict=True):
        if flags[f"trans{side}"]:
            shape[-1], shape[-2] = shape[-2], shape[-1]
    # Of both or of none: so ONNX Runtime's own optimizer sets it.
    if len(outer) > 0 and rng.random() < 0.4:
        for shape, side in zip(shapes, "AB", strict=True):
            attributes[f"transBatch{side}"] = 1
            shape.insert(0, shape.pop(-2))
    return Case([floats(rng, *shape, kind=kind) for shape in shapes], attributes)


def transpose_matmul(rng: Rng) -> Case:
    case = fused_matmul(rng, [np.float32])
    kept = {n: v for n, v in case.attributes.items() if not n.startswith("transBatch")}
    if len(kept) == len(case.attributes):
        return case
    return transpose_matmul(rng)


def fused_gemm(rng: Rng) -> Case:
    rows, inner, columns = sizes(rng, 3)
    attributes: dict[str, Any] = {n: int(rng.integers(0, 2)) for n in ("transA", "transB")}
    a = [inner, rows] if attributes["transA"] else [rows, inner]
    b = [columns, inner] if attributes["transB"] else [inner, columns]
    attributes |= {name: float(rng.uniform(0.5, 2)) for name in ("alpha", "beta")}
    name = str(
        rng.choice(
            [
                "Elu",
                "HardSigmoid",
                "LeakyRelu",
                "Relu",
                "Selu",
                "Sigmoid",
                "Softplus",
                "Softsign",
                "Tanh",
                "ThresholdedRelu",
            ]
        )
    )
    attributes["activation"] = name
    numbers = {"Elu": 1, "HardSigmoid": 2, "LeakyRelu": 1, "ThresholdedRelu": 1}.get(name, 0)
    for attribute in ("alpha", "beta")[:numbers]:
        attributes[f"activation_{attribute}"] = float(rng.uniform(0.1, 0.5))
    if name == "Selu":
        attributes |= {"activation_alpha": 1.5, "activation_gamma": 1.1}
    bias = maybe(rng, floats(rng, *(rows if rng.random() < 0.5 else 1, columns)))
    return Case([floats(rng, *a), floats(rng, *b), bias], attributes)


def convolution(rng: Rng) -> tuple[list[int], list[int], dict[str, Any]]:
    """Return the shapes of data and filters, and attributes."""
    rank, group = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    kernel = [int(n) for n in rng.integers(1, 4, rank)]
    attributes: dict[str, Any] = {"group": group}
    if rng.random() < 0.5:
        attributes["kernel_shape"] = kernel
    if rng.random() < 0.5:
        attributes["strides"] = [int(n) for n in rng.integers(1, 3, rank)]
    if rng.random() < 0.5:
        attributes["dilations"] = [int(n) for n in rng.integers(1, 3, rank)]
    if rng.random() < 0.5:
        attributes["pads"] = [int(n) for n in rng.integers(0, 2, 2 * rank)]
    batch, channels, filters = sizes(rng, 3, 3)
    spatial = [int(n) for n in rng.integers(5, 9, rank)]
    x = [batch, channels * group, *spatial]
    return x, [filters * group, channels, *kernel], attributes


def fused_conv(rng: Rng) -> Case:
    x, w, attributes = convolution(rng)
    numbers = {"Clip": [-0.5, 0.7], "HardSigmoid": [0.3, 0.4], "LeakyRelu": [0.2]}
    name = str(rng.choice(["", "Clip", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Tanh"]))
    attributes |= {"activation": name} if name else {}
    attributes |= {"activation_params": numbers[name]} if name in numbers else {}
    operands = [floats(rng, *x), Fixed(floats(rng, *w)), maybe(rng, Fixed(floats(rng, w[0])))]
    names = {0: ["b", x[1], *(f"d{i}" for i in range(len(x) - 2))]}
    if rng.random() < 0.4:
        plain = Case(operands, attributes)
        inputs = arrays_of(plain)
        (y,) = onnx_runtime(model_of("FusedConv", plain, "com.microsoft"), inputs)
        operands.append(floats(rng, *y.shape))
    return Case(operands, attributes, names=names)


def weights_of_few_bits(rng: Rng, rows: int, columns: int, size: int, bits: int) -> list[Any]:
    """Packed weights, scales and zero points."""
    blocks = -(-columns // size)
    zeros: Array | None = None
    if rng.random() < 0.4:
        zeros = rng.integers(0, 256, (rows, -(-blocks * bits // 8))).astype(np.uint8)
    elif rng.random() < 0.4:
        zeros = rng.uniform(0, 2**bits, (rows, blocks)).astype(np.float32)
    return [
        Fixed(rng.integers(0, 256, (rows, blocks, size * bits // 8)).astype(np.uint8)),
        Fixed(rng.uniform(0.01, 0.1, (rows, blocks)).astype(np.float32)),
        None if zeros is None else Fixed(zeros),
    ]


def matmul_n_bits(rng: Rng) -> Case:
    bits, size = int(rng.choice([2, 4, 4, 4, 8])), int(rng.choice([16, 32, 64]))
    rows, columns = int(rng.integers(1, 40)), int(rng.integers(1, 100))
    outer = sizes(rng, int(rng.integers(1, 4)), 4)
    attributes = {"N": rows, "K": columns, "block_size": size, "bits": bits}
    # With 4, ONNX Runtime may quantize A to 8 bits; braid does not.
    if rng.random() < 0.5:
        attributes["accuracy_level"] = int(rng.choice([0, 1, 4]))
    tolerance = 3e-2 if attributes.get("accuracy_level") == 4 else 2e-5
    # Of 8 bits and of 2, ONNX Runtime takes zero points as bytes only.
    w, scales, zeros = weights_of_few_bits(rng, rows, columns, size, bits)
    if bits != 4 and zeros is not None and zeros.array.dtype != np.uint8:
        zeros = None
    operands: list[Any] = [floats(rng, *outer, columns), w, scales, zeros, None]
    names = {0: [*(f"d{i}" for i in range(len(outer))), columns]}
    operands.append(maybe(rng, Fixed(floats(rng, rows))))
    return Case(operands, attributes, names=names, tolerance=tolerance)


def gather_block(rng: Rng) -> Case:
    rank, size = int(rng.integers(2, 4)), int(rng.choice([16, 32]))
    form = rng.integers(0, 3)
    shape = sizes(rng, rank, 5)
    kind = rng.choice([np.float32, np.float16])
    attributes: dict[str, Any] = {"block_size": size}
    if form == 0:  # bytes
        bits, axis, along = int(rng.choice([2, 4, 8])), 0, rank - 1
        attributes["bits"] = bits
        shape[along] = int(rng.integers(1, 80)) * 8 // bits
        stored = [*shape[:-1], shape[-1] * bits // 8]
        data = rng.integers(0, 256, stored).astype(np.uint8)
    else:
        axis, along = (int(n) for n in rng.choice(rank, 2, replace=False))
        shape[along] = int(rng.integers(1, 80))
        dtype = ml_dtypes.int4 if form == 1 else ml_dtypes.uint4
        data = rng.integers(0, 8, shape).astype(dtype)
    attributes |= {"gather_axis": axis, "quantize_axis": along - rank if form else along}
    scales_shape = list(shape)
    scales_shape[along] = -(-shape[along] // size)
    zeros: Array | None = None
    if rng.random() < 0.5 and form == 0:
        packed = [*scales_shape[:-1], -(-scales_shape[-1] * attributes["bits"] // 8)]
        zeros = rng.integers(0, 256, packed).astype(np.uint8)
    elif rng.random() < 0.5 and form:
        zeros = rng.integers(0, 8, scales_shape).astype(data.dtype)
    extent = shape[axis]
    rows = rng.integers(-extent, extent, sizes(rng, int(rng.integers(0, 3)), 4))
    return Case(
        [
            Fixed(data),
            rows.astype(rng.choice([np.int32, np.int64])),
            Fixed(rng.uniform(0.01, 0.1, scales_shape).astype(kind)),
            None if zeros is None else Fixed(zeros),
        ],
        attributes,
        tolerance=2e-3 if kind == np.float16 else 2e-5,
    )


GENERATORS: dict[str, Generator] = {
    "FusedConv": fused_conv,
    "FusedGemm": fused_gemm,
    "FusedMatMul": fused_matmul,
    "GatherBlockQuantized": gather_block,
    "MatMulNBits": matmul_n_bits,
    "TransposeMatMul": transpose_matmul,
}


@quick_cases(GENERATORS)
def test_random_nodes(op: str, seed: int) -> None:
    check_random(op, GENERATORS[op], seed)


@pytest.mark.slow
@pytest.mark.parametrize("op", GENERATORS)
def test_many_random_nodes(op: str) -> None:
    check_many(op, GENERATORS[op])


@pytest.mark.parametrize("seed", range(QUICK))
def test_channels_last(seed: int) -> None:
    """ONNX Runtime has no CPU kernel for it: the result is that of Conv."""
    rng = np.random.default_rng(seed)
    x, w, attributes = convolution(rng)
    operands = [floats(rng, *x), floats(rng, *w), floats(rng, w[0])]
    plain = Case(operands, attributes)
    (y,) = onnx_runtime(model_of("Conv", plain, ""), arrays_of(plain))
    last = [np.moveaxis(operands[0], 1, -1), Fixed(np.moveaxis(operands[1], 1, -1).copy())]
    case = Case([last[0].copy(), last[1], operands[2]], attributes)
    check("NhwcConv", case, expected=[np.moveaxis(y, 1, -1)])


def bits_case(**attributes: Any) -> Case:
    rng = np.random.default_rng(0)
    w, scales, _ = weights_of_few_bits(rng, 5, 32, 16, 4)
    defaults = {"N": 5, "K": 32, "block_size": 16}
    return Case([floats(rng, 2, 32), w, scales], defaults | attributes)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"bits": 3}, "attribute 'bits' is 3, expected 2, 4 or 8"),
        ({"block_size": 24}, "attribute 'block_size' is 24, expected a power of 2"),
        ({"N": 6}, r"input 1 has shape \[5, 2, 8\], expected \[6, 2, 8\]"),
        ({"K": 30}, r"input 0 has shape \[2, 32\], expected 30 columns"),
        ({"weight_prepacked": 1}, "attribute 'weight_prepacked' is not 0"),
    ],
)
def test_weights_that_are_refused(attributes: dict[str, Any], message: str) -> None:
    refusal("MatMulNBits", bits_case(**attributes), message)


@pytest.mark.parametrize(
    ("op", "attributes", "message"),
    [
        ("FusedConv", {"activation": "Gelu"}, "attribute 'activation' is 'Gelu', expected one of"),
        ("FusedConv", {"activation": "Clip"}, "'activation_params' has 0 numbers, but Clip needs"),
        ("FusedConv", {"auto_pad": "SAME"}, "auto_pad is 'SAME', expected one of"),
        ("NhwcConv", {"auto_pad": "SAME"}, "auto_pad is 'SAME', expected one of"),
    ],
)
def test_convolutions_that_are_refused(op: str, attributes: dict[str, Any], message: str) -> None:
    ones = np.ones((1, 3, 3, 3), np.float32)
    refusal(op, Case([ones, Fixed(ones)], attributes), message)


def test_an_activation_that_is_refused() -> None:
    ones = np.ones((3, 3), np.float32)
    case = Case([ones, ones], {"activation": "Swish"})
    refusal("FusedGemm", case, "attribute 'activation' is 'Swish', expected one of")
