"""`convert-linalg-to-braid` preserves the semantics of each op."""

from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp

import braid
from braid.analysis.interpreter.interpret import interpret
from braid.analysis.structure.loop_nests import op_name
from braid.analysis.structure.verification import verify_module
from braid.dialects.braid.dtypes import to_numpy
from braid.driver.sources.reading import read_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.universe import make_context
from test.unit.passes.linalg.cases import ARITH, CASES

Array = NDArray[Any]


def converted(text: str) -> tuple[ModuleOp, ModuleOp]:
    """Yield the module before and after the conversion."""
    context = make_context()
    module = read_mlir(context, text, "linalg.mlir")
    before = module.clone()
    run_pipeline(context, module, "convert-linalg-to-braid")
    verify_module(module)
    return before, module


def inputs_of(module: ModuleOp) -> list[Array]:
    """Numbers for each argument, NaNs and both zeros among the floats."""
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    random = np.random.default_rng(0)
    made: list[Array] = []
    for argument in function.body.block.args:
        type = cast(TensorType[Any], argument.type)
        dtype, shape = to_numpy(type.element_type), type.get_shape()
        if dtype == np.bool_:
            made.append(random.integers(0, 2, shape).astype(dtype))
        elif dtype.kind in "iu":
            made.append(random.integers(-100, 100, shape).astype(dtype))
        else:
            made.append(random.uniform(0.1, 2, shape).astype(dtype))
    return made


_UNKNOWN = {
    "arith.divui", "linalg.index", "linalg.pack", "linalg.softmax", "linalg.unpack",
    "tensor.concat", "tensor.pad",
}  # fmt: skip
"""Ops that the interpreter does not support: see the tests below."""


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_an_op_is_one_of_braid_that_computes_the_same(text: str, expected: str) -> None:
    before, module = converted(text)
    names = [op_name(op) for op in module.walk()]
    assert not any(name.startswith(("linalg.", "tensor.", "math.")) for name in names), names
    assert not expected or f"braid.{expected}" in names
    inputs = inputs_of(before)
    if _UNKNOWN.isdisjoint(op_name(op) for op in before.walk()):
        for got, want in zip(interpret(module, inputs), interpret(before, inputs), strict=True):
            assert got.dtype == want.dtype
            tolerance = 2e-2 if want.dtype == ml_dtypes.bfloat16 else 1e-5
            np.testing.assert_allclose(
                got.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=1e-5
            )


def result(name: str, *inputs: Array) -> Array:
    return interpret(converted(CASES[name][0])[1], inputs)[0]


_GENERATED = """
func.func @main(%x: tensor<5x4xf32>) -> tensor<4x5xf32> {
  %y = tensor.generate {
  ^bb0(%a: index, %b: index):
    %p = tensor.extract %x[%b, %a] : tensor<5x4xf32>
    %k = arith.index_cast %a : index to i64
    %f = arith.sitofp %k : i64 to f32
    %s = arith.addf %p, %f : f32
    tensor.yield %s : f32
  } : tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}"""


def test_generated_elements() -> None:
    """Reads at loop indices become operands, so that no part is left to upstream."""
    module = converted(_GENERATED)[1]
    assert not any(op_name(op).startswith(("linalg.", "tensor.")) for op in module.walk())
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    np.testing.assert_array_equal(interpret(module, [x])[0], x.T + np.arange(4)[:, None])


def test_elements_generated_by_data() -> None:
    """Reads at positions from data are left to upstream's lowering; here the compiled model does
    them."""
    text = _GENERATED.replace("%x: tensor<5x4xf32>", "%x: tensor<5x4xf32>, %i: tensor<4xi64>")
    text = text.replace(
        "%p = tensor.extract %x[%b, %a]",
        """%q = tensor.extract %i[%a] : tensor<4xi64>
    %r = arith.index_cast %q : i64 to index
    %p = tensor.extract %x[%b, %r]""",
    )
    x, i = np.arange(20, dtype=np.float32).reshape(5, 4), np.array([3, 0, 0, 1])
    expected = x[:, i].T + np.arange(4)[:, None]
    np.testing.assert_array_equal(braid.compile(text.encode())(x, i), expected)


def test_loop_indices_and_unsigned_division() -> None:
    a = np.arange(12, dtype=np.int32).reshape(4, 3) - 6
    sums = np.add.outer(np.arange(3), np.arange(4))
    np.testing.assert_array_equal(result("places", a, np.zeros((3, 4), np.int32)), a.T + sums)
    a, b = a.reshape(3, 4), np.full((3, 4), 7, np.int32)
    expected = (a.view(np.uint32) // 7).view(np.int32)
    np.testing.assert_array_equal(result("div_unsigned", a, b), expected)


def test_moving_elements() -> None:
    x = np.arange(63, dtype=np.float32).reshape(7, 9)
    padded = np.full((8, 12), 2.5, np.float32)
    padded[:7, :9] = x
    tiles = padded.reshape(2, 4, 3, 4).transpose(0, 2, 1, 3)

    np.testing.assert_array_equal(result("pack", x), tiles)
    np.testing.assert_array_equal(result("unpack", tiles), x)
    whole = np.arange(48, dtype=np.float32).reshape(8, 6)
    permuted = whole.reshape(2, 4, 3, 2).transpose(2, 0, 3, 1)
    np.testing.assert_array_equal(result("pack_permuted", whole), permuted)
    np.testing.assert_array_equal(result("unpack_permuted", permuted), whole)
    small = x[:3, :4]
    expected = np.pad(small, ((1, 1), (0, 3)), constant_values=1.5)
    np.testing.assert_array_equal(result("pad", small), expected)
    e = np.exp(small - small.max(1, keepdims=True))
    np.testing.assert_allclose(result("softmax", small), e / e.sum(1, keepdims=True), rtol=1e-6)


def _unsigned(a: Array) -> Array:
    return a.astype(np.uint8) if a.dtype == np.bool_ else a.view(f"u{a.dtype.itemsize}")


def _signed(a: Array) -> Array:
    return -a.astype(np.int8) if a.dtype == np.bool_ else a


def expected_arith(name: str, inputs: list[Array], dtype: Any) -> Array:
    """By numpy, from what the names of ops say."""
    op, _, rest = name.partition("_")
    a, b = inputs[0], inputs[-1]
    if op == "cmpf":
        ordered = ~(np.isnan(a) | np.isnan(b))
        if rest in ("ord", "uno"):
            return ordered if rest == "ord" else ~ordered
        plain = {"eq": a == b, "gt": a > b, "ge": a >= b, "lt": a < b, "le": a <= b, "ne": a != b}
        return plain[rest[1:]] & ordered if rest[0] == "o" else plain[rest[1:]] | ~ordered
    if op == "cmpi":
        kind = rest.partition("_")[0]
        if kind in ("eq", "ne"):
            return (a == b) == (kind == "eq")
        a, b = (_signed(a), _signed(b)) if kind[0] == "s" else (_unsigned(a), _unsigned(b))
        return {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[kind[1:]]
    if op in ("maxsi", "minsi", "maxui", "minui"):
        view = _signed if op.endswith("si") else _unsigned
        larger = view(a) > view(b)
        return np.where(larger == op.startswith("max"), a, b)
    if op in ("addi", "subi", "muli") and a.dtype == np.bool_:
        return a & b if op == "muli" else a ^ b
    functions: dict[str, Any] = {
        "addi": np.add, "subi": np.subtract, "muli": np.multiply, "andi": np.bitwise_and,
        "ori": np.bitwise_or, "xori": np.bitwise_xor, "maxnumf": np.fmax, "minnumf": np.fmin,
        "maximumf": np.maximum, "minimumf": np.minimum,
    }  # fmt: skip
    if op in functions:
        return functions[op](a, b)
    if op == "select":
        return np.where(a, inputs[1], b)
    if op == "bitcast":
        return a.view(dtype)
    if op == "trunci" and dtype == np.bool_:
        return (a & 1) != 0
    given = _signed(a) if op in ("extsi", "sitofp") else a
    return (_unsigned(a) if op in ("extui", "uitofp") else given).astype(dtype)


@pytest.mark.parametrize("name", ARITH)
def test_arith_on_tensors(name: str) -> None:
    _, module = converted(ARITH[name])
    assert {op_name(op).partition(".")[0] for op in module.walk()} <= {"braid", "func", "builtin"}
    inputs = inputs_of(module)
    for index, array in enumerate(inputs):
        if array.dtype == np.float32:
            array[index : index + 3] = [np.nan, -0.0, 1.0]
            array[5] = 3.0
        elif array.dtype.kind == "i":
            array[5:] = [np.iinfo(array.dtype).min, -1]
    if name.startswith("fptosi"):
        inputs[0] = np.array([0, -0.0, 1.5, -1.5, 7.9, 1e6, -3], np.float32)
    (got,) = interpret(module, inputs)
    want = expected_arith(name, inputs, got.dtype)
    if want.dtype == ml_dtypes.bfloat16:  # whose NaNs numpy does not know
        got, want = got.astype(np.float32), want.astype(np.float32)
    np.testing.assert_array_equal(got, want)
