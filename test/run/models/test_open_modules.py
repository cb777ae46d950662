"""Modules of StableHLO, TOSA and linalg with open dims, as other compilers and JAX write them."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import braid
from braid.interpreted import interpret
from braid.support.errors import BraidError, UnsupportedError
from braid.support.mlir_bindings import has_bindings_of_stablehlo

Array = NDArray[np.float32]
FOLDER = Path(__file__).with_name("open_modules")

needs_stablehlo = pytest.mark.skipif(
    not has_bindings_of_stablehlo(), reason="the custom form is read by upstream's parser"
)


def numbers(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def both(text: str) -> tuple[Callable[..., object], Callable[..., object]]:
    """Return the model that is interpreted, and the one that is compiled."""
    source = text.encode()
    return interpret(source), braid.compile(source, jobs=1)


def check(text: str, expected: Callable[..., object], *inputs: tuple[Array, ...]) -> None:
    """Assert that one artifact, and the interpreter, give the results of `expected` at every
    size."""
    for model in both(text):
        for arrays in inputs:
            found, wanted = model(*arrays), expected(*arrays)
            found = found if isinstance(found, tuple) else (found,)
            wanted = wanted if isinstance(wanted, tuple) else (wanted,)
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


ATTENTION = (FOLDER / "attention.mlir").read_text()


def attention(x: Array) -> Array:
    """Return what `ATTENTION` computes: causal self-attention of two heads."""
    batch, length, _ = x.shape
    q = x.reshape(batch, length, 2, 4).transpose(0, 2, 1, 3)
    scores = q @ q.transpose(0, 1, 3, 2) * 0.5
    masked = np.where(np.tril(np.ones((length, length), bool)), scores, -np.inf)
    return (softmax(masked) @ q).transpose(0, 2, 1, 3).reshape(batch, length, 8)


@needs_stablehlo
def test_attention_as_jax_writes_it() -> None:
    shapes = [(1, 1), (2, 7), (3, 64), (1, 129)]
    check(ATTENTION, attention, *((numbers(b, s, 8),) for b, s in shapes))


@needs_stablehlo
def test_an_assertion_is_checked() -> None:
    for model in both(ATTENTION):
        with pytest.raises(BraidError, match=r"size 'input0\[0\]' (is 0|must be)"):
            model(numbers(0, 4, 8))


EQUAL = (FOLDER / "equal.mlir").read_text()


@needs_stablehlo
@pytest.mark.parametrize("asserted", [True, False])
def test_operands_have_one_shape(asserted: bool) -> None:
    """StableHLO repeats nothing, also where a dim of one operand is 1."""
    text = EQUAL if asserted else re.sub(r".*(%same|shape_assertion).*\n", "", EQUAL)
    check(text, np.add, (numbers(1, 4), numbers(1, 4)), (numbers(5, 4), numbers(5, 4)))
    for model in both(text):
        for rows in (1, 3):
            with pytest.raises(BraidError):
                model(numbers(5, 4), numbers(rows, 4))


HALVES = (FOLDER / "halves.mlir").read_text()


@needs_stablehlo
def test_quotients_that_are_rounded_down() -> None:
    """JAX's floor division of a size, in a slice and in a padding."""

    def expected(x: Array) -> tuple[Array, Array]:
        half = len(x) // 2
        return x[:half, 1::2], np.pad(x, ((half, 0), (1, 1)))

    check(HALVES, expected, *((numbers(n, m),) for n, m in [(2, 1), (5, 4), (8, 7), (33, 2)]))


SCAN = (FOLDER / "scan.mlir").read_text()


@needs_stablehlo
def test_a_loop_over_an_open_dim() -> None:
    def expected(x: Array) -> Array:
        state = np.zeros(x.shape[1:], np.float32)
        for row in x:
            state = np.tanh(state + row)
        return state

    check(SCAN, expected, *((numbers(t, b, 4),) for t, b in [(1, 1), (5, 3), (17, 2), (4, 0)]))


IMAGES = (FOLDER / "images.mlir").read_text()


def test_images_of_tosa() -> None:
    def expected(x: Array, w: Array, b: Array) -> Array:
        padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
        y = np.einsum("nhwcij,oijc->nhwo", windows, w) + b
        return np.clip(y, 0, 6).reshape(-1, 2, 4, 2, 4, 4).max(axis=(2, 4)).reshape(-1, 16)

    w, b = numbers(4, 3, 3, 3), numbers(4)
    check(IMAGES, expected, *((numbers(n, 8, 8, 3), w, b) for n in (1, 3, 16, 0)))


LAYER = (FOLDER / "layer.mlir").read_text()


def test_a_layer_of_linalg() -> None:
    def expected(x: Array, w: Array, b: Array) -> Array:
        return np.tanh(x @ w + b)

    sizes = [(1, 1), (5, 7), (64, 32), (0, 3), (3, 0)]
    check(LAYER, expected, *((numbers(n, k), numbers(k, 4), numbers(4)) for n, k in sizes))
    for model in both(LAYER):
        with pytest.raises(BraidError):
            model(numbers(5, 7), numbers(6, 4), numbers(4))


SLICES = (FOLDER / "slices.mlir").read_text()


def test_slices_of_linalg() -> None:
    def expected(x: Array) -> Array:
        half = -(-len(x) // 2)
        return np.concatenate([x[:half], np.zeros((half, 6), np.float32)]).reshape(-1, 3, 2)

    check(SLICES, expected, *((numbers(n, 6),) for n in (1, 2, 7, 0)))


def test_sizes_are_fixed() -> None:
    by_shape = braid.compile(LAYER.encode(), shapes={"input0": (5, 7)}, jobs=1)
    by_dim = braid.compile(LAYER.encode(), dims={"input0[0]": 5}, jobs=1)
    arrays = numbers(5, 7), numbers(7, 4), numbers(4)
    for model in (by_shape, by_dim):
        np.testing.assert_allclose(
            model(*arrays), np.tanh(arrays[0] @ arrays[1] + arrays[2]), rtol=1e-4, atol=1e-5
        )
        with pytest.raises(BraidError):
            model(numbers(6, 7), *arrays[1:])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shapes": {"input0": (5,)}}, r"shape \[5\] of input 'input0' has 1 dims, expected 2"),
        ({"shapes": {"input1": (7, 5)}}, "dim 1 of input 'input1' is 4, and cannot be 5"),
        ({"shapes": {"x": (5, 7)}}, "there is no input 'x'"),
        ({"dims": {"n": 5}}, "there is no size 'n' to bind"),
        ({"dims": {"input0[0]": "n"}}, "at the name of another dim in ONNX models"),
        ({"constants": {"input0": 1}}, "can only be given for ONNX models"),
        (
            {"shapes": {"input0": (5, 7)}, "dims": {"input0[0]": 6}},
            r"cannot be 5: size 'input0\[0\]' is 6 elsewhere",
        ),
    ],
)
def test_what_cannot_be_fixed(options: dict[str, object], message: str) -> None:
    with pytest.raises(BraidError, match=message):
        braid.compile(LAYER.encode(), **options)


def test_sizes_of_data_are_refused() -> None:
    text = """
func.func @main(%x: tensor<?xf32>, %s: tensor<2xi32>) -> tensor<?x?xf32> {
  %y = "stablehlo.dynamic_broadcast_in_dim"(%x, %s) <{broadcast_dimensions = array<i64: 1>}>
    : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}"""
    with pytest.raises(UnsupportedError, match="operand 1 is computed from data"):
        braid.compile(text.encode())


def doubled(times: int, first: str, op: str, type: str) -> str:
    """Return lines that add a value to itself, and the sum to itself, and so on."""
    lines = [f"  %a0 = {first}"]
    lines += [f"  %a{i + 1} = {op.format(a=f'%a{i}')} : {type}" for i in range(times)]
    return "\n".join(lines)


@pytest.mark.timeout(60)
def test_sizes_that_are_shared_are_computed_once() -> None:
    """Each of 60 sums is read twice: looked up anew, the last one takes 2^60 steps."""
    index = doubled(60, "arith.constant 0 : index", "arith.addi {a}, {a}", "index")
    linalg = f"""func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {{
{index}
  %y = tensor.extract_slice %x[%a60] [0] [1] : tensor<?xf32> to tensor<0xf32>
  return %x : tensor<?xf32>
}}"""
    of = "(tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>"
    constant = '"stablehlo.constant"() <{value = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>'
    values = doubled(60, constant, '"stablehlo.add"({a}, {a})', of)
    stablehlo = f"""func.func @main(%x: tensor<?xf32>) -> tensor<0xf32> {{
{values}
  %y = "stablehlo.real_dynamic_slice"(%x, %a60, %a60, %one) : (tensor<?xf32>, tensor<1xi32>,
    tensor<1xi32>, tensor<1xi32>) -> tensor<0xf32>
  func.return %y : tensor<0xf32>
}}""".replace("  %a0 =", f"  %one = {constant.replace('dense<0>', 'dense<1>')}\n  %a0 =", 1)
    assert braid.interpret(linalg.encode())(numbers(3)).shape == (3,)
    assert braid.interpret(stablehlo.encode())(numbers(3)).shape == (0,)


def test_index_values_that_are_too_large() -> None:
    products = doubled(50, "tensor.dim %x, %c0 : tensor<?xf32>", "arith.muli {a}, {a}", "index")
    text = f"""func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {{
  %c0 = arith.constant 0 : index
{products}
  %y = tensor.empty(%a50) : tensor<?xf32>
  return %y : tensor<?xf32>
}}"""
    with pytest.raises(BraidError) as raised:
        braid.compile(text.encode())
    assert raised.value.location is not None
