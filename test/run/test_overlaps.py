"""Models whose products are written over their left operands, on one thread and on several."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import braid
from braid.frontends.mlir import parse_mlir
from braid.universe import make_context

Floats = NDArray[np.float32]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRAID_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def text_of(rows: int, depth: int, columns: int, more: int) -> str:
    """Return a softmax and a matmul; the function returns its result or, with `more` columns,
    another matmul of its hyperbolic tangent."""
    x, w = f"tensor<{rows}x{depth}xf32>", f"tensor<{depth}x{columns}xf32>"
    y, v = f"tensor<{rows}x{columns}xf32>", f"tensor<{columns}x{more}xf32>"
    z = f"tensor<{rows}x{more}xf32>"
    body = f"""
  %w = braid.parameter {{key = "w"}} : {w}
  %a = braid.softmax %x {{dim = 1 : i64}} : ({x}) -> {x}
  %b = braid.matmul %a, %w : ({x}, {w}) -> {y}"""
    if not more:
        return f"func.func @main(%x: {x}) -> {y} {{{body}\n  func.return %b : {y}\n}}"
    return f"""func.func @main(%x: {x}) -> {z} {{{body}
  %v = braid.parameter {{key = "v"}} : {v}
  %t = braid.tanh %b : ({y}) -> {y}
  %c = braid.matmul %t, %v : ({y}, {v}) -> {z}
  func.return %c : {z}
}}"""


def expected(x: Floats, w: Floats, v: Floats | None) -> Floats:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    y = powers / powers.sum(axis=1, keepdims=True) @ w
    return y if v is None else np.tanh(y) @ v


def check(rows: int, depth: int, columns: int, more: int, threads: int) -> int:
    """Compare with numpy; return the bytes of arena and output."""
    rng = np.random.default_rng(rows)
    x, w, v = (
        rng.normal(size=s).astype(np.float32)
        for s in ((rows, depth), (depth, columns), (columns, more))
    )
    module = parse_mlir(make_context(), text_of(rows, depth, columns, more), "f.mlir").module
    parameters = {"w": w, "v": v} if more else {"w": w}
    model = braid.compile(module, parameters=parameters, threads=threads)
    reference = expected(x, w, v if more else None)
    for _ in range(2):
        np.testing.assert_allclose(model(x), reference, atol=1e-5 * np.abs(reference).max())
    return model.memory[0].activation_bytes


@pytest.mark.parametrize("threads", [1, 2])
def test_output_is_all_there_is(threads: int) -> None:
    rows, depth, columns = 61, 77, 5000
    taken = check(rows, depth, columns, 0, threads)
    assert taken <= 4 * rows * columns + 4 * 8 * depth + 64 < 4 * rows * (columns + depth)


@settings(max_examples=8, deadline=None)
@given(
    rows=st.integers(1, 40),
    depth=st.integers(1, 40),
    columns=st.integers(1, 90),
    more=st.sampled_from([0, 1, 23, 150]),
    threads=st.sampled_from([1, 3]),
)
def test_any_shape(rows: int, depth: int, columns: int, more: int, threads: int) -> None:
    check(rows, depth, columns, more, threads)
