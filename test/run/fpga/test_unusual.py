"""Functions of integers that exporters seldom write: as circuits, as HLS C++, and as models."""

from collections.abc import Callable

import numpy as np
import pytest

import braid
from braid.analysis.interpreter.interpret import interpret
from braid.lowering.fpga.convert_braid_to_hls import function_named
from braid.lowering.fpga.cpp.check import broken_rules
from braid.lowering.fpga.cpp.design_text import design_text
from braid.lowering.fpga.cpp.simulate import CompiledDesign
from test.run.fpga.designs import IMAGES, check, images, parse, random_like, scheduled

Pair = tuple[int, int]


class Integers:
    """Builds a function of bytes, op by op."""

    def __init__(self, *arguments: str) -> None:
        self.random = np.random.default_rng(len(arguments))
        self.types = {f"%x{i}": kind for i, kind in enumerate(arguments)}
        self.arguments = tuple(self.types)
        self.lines: list[str] = []

    def shape(self, value: str) -> list[int]:
        return [int(one) for one in self.types[value].split("x")[:-1]]

    def _named(self, kind: str) -> str:
        name = f"%v{len(self.types)}"
        self.types[name] = kind
        return name

    def constant(self, array: np.ndarray, element: str) -> str:
        name = self._named("x".join(map(str, [*array.shape, element])))
        kind = f"tensor<{self.types[name]}>"
        text = f"braid.constant {{value = dense<{array.tolist()}> : {kind}}} : {kind}"
        self.lines.append(f"{name} = {text}")
        return name

    def op(self, kind: str, operands: list[str], result: str, attributes: str = "") -> str:
        name = self._named(result)
        given = ", ".join(f"tensor<{self.types[one]}>" for one in operands)
        text = f"{kind} {', '.join(operands)} {attributes} : ({given}) -> tensor<{result}>"
        self.lines.append(f"{name} = braid.{text}")
        return name

    def conv(
        self,
        value: str,
        weights: np.ndarray,
        strides: Pair = (1, 1),
        low: Pair = (0, 0),
        high: Pair = (0, 0),
        *,
        groups: int = 1,
        element: str = "i8",
    ) -> str:
        """Requantized, with separate scales and one zero point for all channels."""
        size = [
            (extent + a + b - window) // stride + 1
            for extent, a, b, window, stride in zip(
                self.shape(value)[2:], low, high, weights.shape[2:], strides, strict=True
            )
        ]
        pairs = {"strides": strides, "dilations": (1, 1), "pad_low": low, "pad_high": high}
        texts = [f"{name} = array<i64: {a}, {b}>" for name, (a, b) in pairs.items()]
        options = f"{{{', '.join(texts)}, groups = {groups} : i64, accumulator = i32}}"
        made = "x".join(map(str, [1, len(weights), *size]))
        operands = [value, self.constant(weights, "i8")]
        sums = self.op("conv", operands, f"{made}xi32", options)
        per_channel = (1, len(weights), 1, 1)
        scales = self.constant(self.random.integers(1 << 28, 1 << 30, per_channel), "i32")
        shifts = self.constant(self.random.integers(37, 41, per_channel), "i32")
        zero = self.constant(self.random.integers(0, 9, (1, 1, 1, 1)), element)
        operands = [sums, scales, shifts, zero]
        return self.op("requantize", operands, f"{made}x{element}", '{rounding = "half_even"}')

    def weights(self, *shape: int) -> np.ndarray:
        return self.random.integers(-128, 128, shape)

    def text(self, *results: str) -> str:
        given = ", ".join(f"{one}: tensor<{self.types[one]}>" for one in self.arguments)
        types = ", ".join(f"tensor<{self.types[one]}>" for one in results)
        body = "\n".join([*self.lines, f"func.return {', '.join(results)} : {types}"])
        return f"func.func @main({given}) -> ({types}) {{\n{body}\n}}"


def strides_of_three() -> str:
    made = Integers("1x3x7x5xi8")
    weights = made.weights(5, 3, 3, 2)
    return made.text(made.conv("%x0", weights, (3, 2), (0, 1), (2, 0)))


def one_pixel() -> str:
    made = Integers("1x5x1x1xi8")
    return made.text(
        made.conv("%x0", made.weights(3, 5, 3, 3), low=(1, 1), high=(1, 1), element="ui8")
    )


def in_groups() -> str:
    made = Integers("1x6x5x5xi8")
    value = made.conv("%x0", made.weights(9, 2, 3, 3), low=(1, 1), high=(1, 1), groups=3)
    return made.text(made.conv(value, made.weights(3, 3, 1, 2), (2, 1), high=(0, 1), groups=3))


def wide_numbers() -> str:
    made = Integers("1x3x4x5xi16")
    return made.text(made.conv("%x0", made.weights(2, 3, 2, 2), element="i16"))


def weights_of_zeros() -> str:
    made = Integers("1x2x4x4xi8")
    return made.text(made.conv("%x0", np.zeros((3, 2, 1, 1), int)))


def a_channel_of_zeros() -> str:
    made = Integers("1x2x4x4xi8")
    weights = np.zeros((3, 2, 1, 1), int)
    weights[1] = -64
    return made.text(made.conv("%x0", weights))


def three_branches() -> str:
    """Of different lengths, in a concatenation."""
    made = Integers("1x3x6x5xi8")
    short = made.conv("%x0", made.weights(2, 3, 1, 1))
    wide = made.conv("%x0", made.weights(4, 3, 3, 3), low=(1, 1), high=(1, 1))
    long = made.conv(short, made.weights(3, 2, 3, 3), low=(1, 1), high=(1, 1))
    return made.text(made.op("concat", [short, wide, long], "1x9x6x5xi8", "{dim = 1 : i64}"))


def a_long_skip() -> str:
    """Around three convolutions, and the argument is a result."""
    made = Integers("1x2x8x8xi8")
    value = "%x0"
    for _ in range(3):
        value = made.conv(value, made.weights(2, 2, 3, 3), low=(1, 1), high=(1, 1))
    return made.text(made.op("add", [value, "%x0"], "1x2x8x8xi8"), "%x0")


def two_inputs_and_outputs() -> str:
    made = Integers("1x3x6x5xi8", "1x2x6x5xui8")
    one = made.conv("%x0", made.weights(4, 3, 3, 3), low=(1, 1), high=(1, 1))
    other = made.conv("%x1", made.weights(4, 2, 1, 1))
    both = made.op("maximum", [one, other], "1x4x6x5xi8")
    return made.text(both, other, both)


def an_argument_that_nobody_reads() -> str:
    made = Integers("1x2x3x3xi8", "1x2x3x3xi8")
    return made.text(made.op("maximum", ["%x0", "%x0"], "1x2x3x3xi8"))


CASES: tuple[Callable[[], str], ...] = (
    strides_of_three,
    one_pixel,
    in_groups,
    wide_numbers,
    weights_of_zeros,
    a_channel_of_zeros,
    three_branches,
    a_long_skip,
    two_inputs_and_outputs,
    an_argument_that_nobody_reads,
)
IN_CPP = (in_groups, weights_of_zeros, three_branches, a_long_skip)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_circuits(case: Callable[[], str]) -> None:
    check(parse(case()), 24, seeds=(1, 5))


@pytest.mark.parametrize("case", IN_CPP, ids=lambda case: case.__name__)
def test_cpp(case: Callable[[], str]) -> None:
    module = parse(case())
    converted, _ = scheduled(function_named(module, "main"), {}, 24)
    assert not list(broken_rules(design_text(converted.design)))
    given, expected = images(module, converted, None, 3)
    found = CompiledDesign(converted.design).run(given, [one.shape for one in expected], IMAGES)
    for output, array in zip(found, expected, strict=True):
        np.testing.assert_array_equal(output, array)


def test_a_model_of_integers_alone() -> None:
    """No part of it runs on the host, which starts it nevertheless; another one runs with it."""
    text, other = two_inputs_and_outputs(), strides_of_three()
    compiled = braid.compile(text.encode(), target="fpga-sim")
    beside = braid.compile(other.encode(), target="fpga-sim")
    assert compiled.devices["fpga:0"] == "rtl"
    for seed, (model, own) in enumerate([(compiled, text), (beside, other), (compiled, text)]):
        module, rng = parse(own), np.random.default_rng(seed)
        given = [random_like(one, rng) for one in function_named(module, "main").body.block.args]
        found = model(*given)
        results = found if isinstance(found, list | tuple) else [found]
        for result, correct in zip(results, interpret(module, given), strict=True):
            np.testing.assert_array_equal(result, correct)


def views_and_arguments() -> str:
    made = Integers("1x2x3x4xi8", "1x2x3x3xi16")
    return made.text(made.op("reshape", ["%x0"], "1x24xi8"), "%x1", "%x1")


def test_what_computes_nothing() -> None:
    text = Integers("1x2x3x3xi8").text("%x0")
    for each in (text, views_and_arguments()):
        check(parse(each), 24, seeds=(1, 5))
    x = np.arange(18, dtype=np.int8).reshape(1, 2, 3, 3)
    for target in ("fpga-sim", "gpu-emulated", "npu-small"):
        np.testing.assert_array_equal(braid.compile(text.encode(), target=target)(x), x)
