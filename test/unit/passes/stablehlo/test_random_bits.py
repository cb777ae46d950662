"""Random bits of StableHLO are those that XLA's CPU gives, and JAX for its random numbers."""

import numpy as np
import pytest

import braid
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.universe import make_context

STATE = np.array([0x123456789ABCDEF0, 0xFFFFFFFFFFFFFFFD], np.uint64)
"""A key, and a counter that starts again from 0 soon."""

# Algorithm, shape, type, the next counter, and bits: all of XLA 0.10.2 on the CPU.
BITS = [
    (
        "THREE_FRY",
        "3x5",
        "ui32",
        0x6,
        [
            0x29A99BC9,
            0x257E9FB1,
            0x3C3B507A,
            0x7093E72C,
            0xA4317BA7,
            0x5EFF803D,
            0x4CE380F9,
            0x394BDEFC,
            0x64DFD0AE,
            0x523F5786,
            0x553D0168,
            0xE364850A,
            0x1F390015,
            0xF9D09CB9,
            0x81171B02,
        ],
    ),
    (
        "THREE_FRY",
        "3x4",
        "ui32",
        0x3,
        [
            0x29A99BC9,
            0x257E9FB1,
            0x3C3B507A,
            0x7093E72C,
            0xA4317BA7,
            0x21F1AACA,
            0x5EFF803D,
            0x4CE380F9,
            0x394BDEFC,
            0x64DFD0AE,
            0x523F5786,
            0x4028DD8D,
        ],
    ),
    (
        "THREE_FRY",
        "5",
        "ui64",
        0x2,
        [
            0x257E9FB129A99BC9,
            0x7093E72C3C3B507A,
            0x21F1AACAA4317BA7,
            0x4CE380F95EFF803D,
            0x64DFD0AE394BDEFC,
        ],
    ),
    (
        "PHILOX",
        "5",
        "ui32",
        0xFFFFFFFFFFFFFFFF,
        [0xF510EA33, 0x9D681463, 0x9BC6FFAD, 0x22ACA073, 0xBBD856FF],
    ),
    (
        "DEFAULT",
        "8",
        "ui64",
        0x1,
        [
            0x9D681463F510EA33,
            0x22ACA0739BC6FFAD,
            0xB795D4A1BBD856FF,
            0xB129D7A79DB4DBB7,
            0xB3BB590C583DDF1E,
            0x40230B26EA99E9DA,
            0x2012DC06102D8CF3,
            0xB33C65FEE29031FE,
        ],
    ),
]


def text_of(algorithm: str, shape: str, type: str, state: str = "tensor<2xui64>") -> str:
    bits = f"tensor<{shape}x{type}>"
    return f"""func.func @main(%s: {state}) -> ({state}, {bits}) {{
  %n, %y = "stablehlo.rng_bit_generator"(%s) <{{rng_algorithm = #stablehlo<rng_algorithm
    {algorithm}>}}> : ({state}) -> ({state}, {bits})
  func.return %n, %y : {state}, {bits}
}}"""


@pytest.mark.parametrize(("algorithm", "shape", "type", "counter", "expected"), BITS)
def test_bits(algorithm: str, shape: str, type: str, counter: int, expected: list[int]) -> None:
    context = make_context()
    module = parse_mlir(context, text_of(algorithm, shape, type), "model.mlir").module
    run_pipeline(context, module, "convert-stablehlo-to-braid")
    state, bits = braid.interpret(module)(STATE)
    np.testing.assert_array_equal(state, np.array([STATE[0], counter], np.uint64))
    np.testing.assert_array_equal(bits.reshape(-1), np.array(expected, bits.dtype))


def test_a_compiled_generator() -> None:
    algorithm, shape, type, _, expected = BITS[0]
    _, bits = braid.compile(text_of(algorithm, shape, type).encode())(STATE)
    np.testing.assert_array_equal(bits.reshape(-1), np.array(expected, np.uint32))


def test_a_state_of_three_counts_on_in_its_last_word() -> None:
    state = np.array([STATE[0], STATE[1], 5], np.uint64)
    text = text_of("PHILOX", "16", "ui32", "tensor<3xui64>").encode()
    following, bits = braid.compile(text)(state)
    np.testing.assert_array_equal(following, np.array([STATE[0], 1, 6], np.uint64))
    after = np.array([STATE[0], 0, 6], np.uint64)
    np.testing.assert_array_equal(bits[12:], braid.compile(text)(after)[1][:4])


@pytest.mark.parametrize(
    ("type", "state", "message"),
    [("ui8", "tensor<2xui64>", "its bits have type"), ("ui32", "tensor<4xui32>", "its state has")],
)
def test_what_is_refused(type: str, state: str, message: str) -> None:
    with pytest.raises(braid.BraidError, match=message):
        braid.compile(text_of("PHILOX", "4", type, state).encode())


def test_a_loop_carries_its_state() -> None:
    """JAX draws so in a loop: each iteration has other bits, of the state after the last one."""
    pair = "tensor<2xui64>, tensor<4xui32>"
    draw = """stablehlo.rng_bit_generator %s, algorithm = THREE_FRY
    : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)"""
    loop = f"""func.func @main(%k: tensor<2xui64>, %n: tensor<i32>) -> ({pair}) {{
  %z = stablehlo.constant dense<0> : tensor<i32>
  %o = stablehlo.constant dense<1> : tensor<i32>
  %a = stablehlo.constant dense<0> : tensor<4xui32>
  %r:4 = stablehlo.while(%i = %z, %s = %k, %sum = %a, %m = %n)
    : tensor<i32>, {pair}, tensor<i32>
  cond {{
    %c = stablehlo.compare LT, %i, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %t, %b = {draw}
    %j = stablehlo.add %i, %o : tensor<i32>
    %x = stablehlo.xor %sum, %b : tensor<4xui32>
    stablehlo.return %j, %t, %x, %m : tensor<i32>, {pair}, tensor<i32>
  }}
  return %r#1, %r#2 : {pair}
}}"""
    once = f"func.func @main(%s: tensor<2xui64>) -> ({pair}) {{\n  %t, %b = {draw}\n"
    once += f"  return %t, %b : {pair}\n}}"
    model, step = (braid.compile(text.encode(), jobs=1) for text in (loop, once))
    key = np.array([5, 7], np.uint64)
    state, bits = key, np.zeros(4, np.uint32)
    for count in range(4):
        found = model(key, np.array(count, np.int32))
        np.testing.assert_array_equal(found[0], state)
        np.testing.assert_array_equal(found[1], bits)
        state, more = step(state)
        bits = bits ^ more
