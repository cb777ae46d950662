"""Linear algebra of StableHLO, and as JAX calls LAPACK for it, computes what numpy does."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import braid
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.universe import make_context

Array = NDArray[Any]


def outputs(text: str, *inputs: Array, is_compiled: bool = False) -> list[Array]:
    """Return the results of a module in generic form, interpreted or compiled."""
    model: Any = braid.compile(text.encode()) if is_compiled else braid.interpret(converted(text))
    results = model(*inputs)
    return list(results) if isinstance(results, tuple | list) else [results]


def converted(text: str) -> Any:
    """Return the module after the conversion."""
    context = make_context()
    module = parse_mlir(context, text, "model.mlir").module
    run_pipeline(context, module, "convert-stablehlo-to-braid")
    return module


def function(types: list[str], op: str, results: list[str]) -> str:
    """Return a function of `%0`, `%1`, … that returns what the op, in generic form, does."""
    arguments = ", ".join(f"%{number}: {type}" for number, type in enumerate(types))
    names = ", ".join(f"%{number}" for number in range(len(types)))
    returned = ", ".join(f"%y#{number}" for number in range(len(results)))
    listed = ", ".join(results)
    return f"""func.func @main({arguments}) -> ({listed}) {{
  %y:{len(results)} = {op.replace("OPERANDS", names)} : ({", ".join(types)}) -> ({listed})
  func.return {returned} : {listed}
}}"""


def lapack(name: str, **options: str) -> str:
    """Return a call of LAPACK with its options, letters."""
    codes = ", ".join(f"{key} = {ord(letter)} : ui8" for key, letter in options.items())
    return (
        f'"stablehlo.custom_call"(OPERANDS) <{{call_target_name = "lapack_{name}_ffi"}}> '
        f"{{mhlo.backend_config = {{{codes}}}}}"
    )


def positive_matrices(count: int, rows: int) -> Array:
    """Return symmetric matrices that are positive definite."""
    numbers = np.random.default_rng(0).standard_normal((count, rows, rows))
    return (numbers @ numbers.swapaxes(1, 2) + rows * np.eye(rows)).astype(np.float32)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("is_compiled", [True, False])
def test_cholesky(lower: bool, is_compiled: bool) -> None:
    type = "tensor<2x5x5xf32>"
    op = f'"stablehlo.cholesky"(OPERANDS) <{{lower = {str(lower).lower()}}}>'
    matrices = positive_matrices(2, 5)
    # One triangle is read alone.
    given = np.tril(matrices) + np.triu(np.full((5, 5), 99), 1) if lower else np.triu(matrices)
    (found,) = outputs(
        function([type], op, [type]), given.astype(np.float32), is_compiled=is_compiled
    )
    expected = np.linalg.cholesky(matrices)
    expected = expected if lower else expected.swapaxes(1, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_lapack_says_which_minor_is_not_positive() -> None:
    type, info = "tensor<3x4x4xf64>", "tensor<3xi32>"
    matrices = positive_matrices(3, 4).astype(np.float64)
    matrices[1, 2, 2] = -1
    matrices[2, 0, 0] = 0
    text = function([type], lapack("dpotrf", uplo="L"), [type, info])
    factors, minors = outputs(text, matrices)
    np.testing.assert_array_equal(minors, np.array([0, 3, 1], np.int32))
    np.testing.assert_allclose(np.tril(factors[0]), np.linalg.cholesky(matrices[0]))
    np.testing.assert_array_equal(np.triu(factors[0], 1), np.triu(matrices[0], 1))


CHOICES = list(itertools.product("LR", "LU", "NT", "NU"))


@pytest.mark.parametrize(("side", "uplo", "trans", "diag"), CHOICES, ids="".join)
def test_triangular_systems(side: str, uplo: str, trans: str, diag: str) -> None:
    a, b = "tensor<2x4x4xf32>", "tensor<2x4x3xf32>" if side == "L" else "tensor<2x3x4xf32>"
    flags = f"left_side = {side == 'L'}, lower = {uplo == 'L'}, unit_diagonal = {diag == 'U'}"
    word = "TRANSPOSE" if trans == "T" else "NO_TRANSPOSE"
    op = (
        f'"stablehlo.triangular_solve"(OPERANDS) <{{{flags.lower()}, '
        f"transpose_a = #stablehlo<transpose {word}>}}>"
    )
    numbers = np.random.default_rng(0)
    matrices = (numbers.standard_normal((2, 4, 4)) + 3 * np.eye(4)).astype(np.float32)
    shape = (2, 4, 3) if side == "L" else (2, 3, 4)
    right = numbers.standard_normal(shape).astype(np.float32)
    triangle = np.tril(matrices) if uplo == "L" else np.triu(matrices)
    if diag == "U":
        triangle = triangle - triangle * np.eye(4) + np.eye(4)
    applied = triangle.swapaxes(1, 2) if trans == "T" else triangle
    call = lapack("strsm", side=side, uplo=uplo, trans_x=trans, diag=diag)
    for way in (op, call):
        (found,) = outputs(function([a, b], way, [b]), matrices, right)
        product = applied @ found if side == "L" else found @ applied
        np.testing.assert_allclose(product, right, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("is_compiled", [True, False])
def test_lu_factors(rows: int, columns: int, is_compiled: bool) -> None:
    least = min(rows, columns)
    types = [f"tensor<2x{rows}x{columns}xf32>", f"tensor<2x{least}xi32>", "tensor<2xi32>"]
    matrices = np.random.default_rng(1).standard_normal((2, rows, columns)).astype(np.float32)
    matrices[1, :, 0] = 0
    text = function(types[:1], lapack("sgetrf"), types)
    factors, pivots, info = outputs(text, matrices, is_compiled=is_compiled)
    np.testing.assert_array_equal(info, np.array([0, 1], np.int32))
    for factor, swaps, matrix in zip(factors, pivots, matrices, strict=True):
        order = np.arange(rows)
        for row, other in enumerate(swaps - 1):
            order[[row, other]] = order[[other, row]]
        lower = np.tril(factor, -1)[:, :least] + np.eye(rows, least)
        product = lower @ np.triu(factor)[:least]
        np.testing.assert_allclose(product, matrix[order], rtol=1e-5, atol=1e-6)
        assert np.abs(np.tril(factor, -1)[:, :least]).max() <= 1


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("is_compiled", [True, False])
def test_qr_factors(rows: int, columns: int, is_compiled: bool) -> None:
    least = min(rows, columns)
    whole, factors = f"tensor<2x{rows}x{columns}xf32>", f"tensor<2x{least}xf32>"
    matrices = np.random.default_rng(1).standard_normal((2, rows, columns)).astype(np.float32)
    matrices[1, 1:, 0] = 0
    text = function([whole], lapack("sgeqrf"), [whole, factors])
    found, scales = outputs(text, matrices, is_compiled=is_compiled)
    square = f"tensor<2x{rows}x{least}xf32>"
    text = function([square, factors], lapack("sorgqr"), [square])
    (orthogonal,) = outputs(text, found[:, :, :least].copy(), scales, is_compiled=is_compiled)
    upper = np.triu(found)[:, :least]
    np.testing.assert_allclose(orthogonal @ upper, matrices, rtol=1e-5, atol=1e-5)
    identity = np.broadcast_to(np.eye(least), (2, least, least))
    product = orthogonal.swapaxes(1, 2) @ orthogonal
    np.testing.assert_allclose(product, identity, rtol=0, atol=1e-5)
    expected = np.linalg.qr(matrices)[1]
    np.testing.assert_allclose(np.abs(upper), np.abs(expected), rtol=1e-4, atol=1e-5)


def test_what_is_no_matrix_is_an_error() -> None:
    text = function(["tensor<4xf32>"], '"stablehlo.cholesky"(OPERANDS)', ["tensor<4xf32>"])
    with pytest.raises(braid.BraidError, match="expected matrices of floats"):
        outputs(text, np.zeros(4, np.float32))
    type = "tensor<2x2xf32>"
    text = function([type, type], lapack("strsm", side="X"), [type])
    with pytest.raises(braid.BraidError, match="option 'side' is 88, expected the code of one of"):
        outputs(text, np.zeros((2, 2), np.float32), np.zeros((2, 2), np.float32))
