"""The scalar ops of control flow, and the ops between scalars and tensors."""

import math

import numpy as np
import pytest

from braid.analysis.interpreter import interpret
from braid.frontends.mlir import parse_mlir
from braid.support.errors import BraidError
from braid.universe import make_context

DTYPES = {"i1": np.bool_, "i8": np.int8, "i32": np.int32, "i64": np.int64, "f32": np.float32}


def evaluated(line: str, operand_type: str, result_type: str, *operands: float) -> float:
    """Return the result `%r` of one line, whose operands `%a`, `%b` are elements of the inputs."""
    names = "ab"[: len(operands)]
    arguments = ", ".join(f"%t{n}: tensor<{operand_type}>" for n in names)
    extracts = "\n".join(f"%{n} = tensor.extract %t{n}[] : tensor<{operand_type}>" for n in names)
    text = f"""
func.func @main({arguments}) -> tensor<{result_type}> {{
  {extracts}
  %r = {line}
  %t = tensor.from_elements %r : tensor<{result_type}>
  func.return %t : tensor<{result_type}>
}}"""
    module = parse_mlir(make_context(), text, "scalars.mlir").module
    (result,) = interpret(module, [np.array(x, DTYPES[operand_type]) for x in operands])
    assert result.dtype == DTYPES[result_type] and result.shape == ()
    return result.item()


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("addi", 100, 100, -56),
        ("subi", 3, 5, -2),
        ("muli", -3, 5, -15),
        ("divsi", -7, 2, -3),
        ("remsi", -7, 2, -1),
        ("minsi", -1, 1, -1),
        ("minui", -1, 1, 1),
        ("maxsi", -1, 1, 1),
        ("maxui", -1, 1, -1),
        ("andi", 6, 3, 2),
        ("ori", 6, 3, 7),
        ("xori", 6, 3, 5),
    ],
)
def test_integers(op: str, a: int, b: int, expected: int) -> None:
    assert evaluated(f"arith.{op} %a, %b : i8", "i8", "i8", a, b) == expected


@pytest.mark.parametrize("op", ["divsi", "remsi"])
def test_division_by_zero(op: str) -> None:
    with pytest.raises(BraidError, match=r"scalars.mlir:5:8: error: division by zero"):
        evaluated(f"arith.{op} %a, %b : i32", "i32", "i32", 1, 0)


INTEGER_COMPARISONS = {
    "eq": "010",
    "ne": "101",
    "slt": "100",
    "sle": "110",
    "sgt": "001",
    "sge": "011",
    "ult": "001",
    "ule": "011",
    "ugt": "100",
    "uge": "110",
}
"""Whether -1 ? 1, 1 ? 1 and 1 ? -1 hold."""


@pytest.mark.parametrize("predicate", INTEGER_COMPARISONS)
def test_integer_comparisons(predicate: str) -> None:
    line = f"arith.cmpi {predicate}, %a, %b : i8"
    held = [evaluated(line, "i8", "i1", a, b) for a, b in ((-1, 1), (1, 1), (1, -1))]
    assert "".join("01"[bit] for bit in held) == INTEGER_COMPARISONS[predicate]


FLOAT_COMPARISONS = {
    "false": "0000",
    "oeq": "0100",
    "ogt": "0010",
    "oge": "0110",
    "olt": "1000",
    "ole": "1100",
    "one": "1010",
    "ord": "1110",
    "ueq": "0101",
    "ugt": "0011",
    "uge": "0111",
    "ult": "1001",
    "ule": "1101",
    "une": "1011",
    "uno": "0001",
    "true": "1111",
}
"""Whether -1 ? 1, 1 ? 1, 1 ? -1 and NaN ? 1 hold."""


@pytest.mark.parametrize("predicate", FLOAT_COMPARISONS)
def test_float_comparisons(predicate: str) -> None:
    line = f"arith.cmpf {predicate}, %a, %b : f32"
    pairs = ((-1, 1), (1, 1), (1, -1), (math.nan, 1))
    held = [evaluated(line, "f32", "i1", a, b) for a, b in pairs]
    assert "".join("01"[bit] for bit in held) == FLOAT_COMPARISONS[predicate]


@pytest.mark.parametrize(
    ("line", "operand_type", "result_type", "operand", "expected"),
    [
        ("arith.extsi %a : i1 to i8", "i1", "i8", True, -1),
        ("arith.extui %a : i1 to i8", "i1", "i8", True, 1),
        ("arith.extsi %a : i8 to i64", "i8", "i64", -2, -2),
        ("arith.extui %a : i8 to i64", "i8", "i64", -2, 254),
        ("arith.trunci %a : i32 to i8", "i32", "i8", 257, 1),
        ("arith.trunci %a : i32 to i1", "i32", "i1", 2, False),
        ("arith.trunci %a : i32 to i1", "i32", "i1", 3, True),
        ("arith.sitofp %a : i8 to f32", "i8", "f32", -2, -2.0),
        ("arith.uitofp %a : i8 to f32", "i8", "f32", -2, 254.0),
        ("arith.fptosi %a : f32 to i32", "f32", "i32", -2.75, -2),
        ("arith.negf %a : f32", "f32", "f32", 1.5, -1.5),
    ],
)
def test_conversions(
    line: str, operand_type: str, result_type: str, operand: float, expected: float
) -> None:
    assert evaluated(line, operand_type, result_type, operand) == expected


def run(text: str, *inputs: np.ndarray) -> list[np.ndarray]:
    return interpret(parse_mlir(make_context(), text, "tensors.mlir").module, inputs)


def test_between_scalars_and_tensors() -> None:
    text = """
func.func @main(%x: tensor<2x?xf32>) -> (tensor<2xi64>, tensor<3xf32>, tensor<2x?xf32>) {
  %one = arith.constant 1 : index
  %d = tensor.dim %x, %one : tensor<2x?xf32>
  %i = arith.index_cast %d : index to i64
  %e = tensor.from_elements %i, %i : tensor<2xi64>
  %v = tensor.extract %x[%one, %one] : tensor<2x?xf32>
  %s = tensor.splat %v : tensor<3xf32>
  %c = tensor.cast %x : tensor<2x?xf32> to tensor<?x2xf32>
  %r = braid.add %c, %c : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %y = tensor.cast %r : tensor<?x2xf32> to tensor<2x?xf32>
  func.return %e, %s, %y : tensor<2xi64>, tensor<3xf32>, tensor<2x?xf32>
}"""
    x = np.array([[1, 2], [3, 4]], np.float32)
    dims, splat, doubled = run(text, x)
    assert dims.tolist() == [2, 2] and splat.tolist() == [4, 4, 4]
    assert np.array_equal(doubled, 2 * x)
    wide = np.zeros((2, 3), np.float32)
    with pytest.raises(BraidError, match=r"tensors.mlir:9:8: error: a tensor of shape \[2, 3\]"):
        run(text, wide)
    narrow = np.zeros((2, 1), np.float32)
    with pytest.raises(BraidError, match=r"index 1 of dim 1 is outside of shape \[2, 1\]"):
        run(text, narrow)


def test_open_dims_take_any_extent() -> None:
    text = """
func.func @main(%x: tensor<?x4xf32>, %w: tensor<4x3xf32>) -> tensor<?xf32> {
  %0 = braid.matmul %x, %w : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
  %1 = braid.softmax %0 {dim = 1 : i64} : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %2 = braid.reduce %1 {kind = "add", dims = array<i64: 1>} : (tensor<?x3xf32>) -> tensor<?x1xf32>
  %3 = braid.broadcast %2 : (tensor<?x1xf32>) -> tensor<?x5xf32>
  %4 = braid.reshape %3 : (tensor<?x5xf32>) -> tensor<?xf32>
  func.return %4 : tensor<?xf32>
}"""
    for rows in (1, 6):
        (y,) = run(text, np.ones((rows, 4), np.float32), np.ones((4, 3), np.float32))
        np.testing.assert_allclose(y, np.ones(5 * rows), rtol=1e-6)
