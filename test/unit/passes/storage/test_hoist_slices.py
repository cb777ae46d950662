"""Tensors that are split in many parts: one kernel for all readers, which read what they should."""

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

import braid
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.outlining.outline_kernels import KERNEL_PREFIX
from braid.passes.storage.hoist_slices import FEWEST
from braid.universe import make_context


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))


def split_model(parts: int, dim: int, step: int, op: str) -> str:
    """Every `step`-th row or column of `x` but the outermost goes through `op`; all are joined."""
    shape = [3, 3]
    shape[dim] = parts * step + 2
    sizes = [3 if d != dim else 1 for d in range(2)]
    x, part = (f"tensor<{s[0]}x{s[1]}xf32>" for s in (shape, sizes))
    joined = [3, 3]
    joined[dim] = parts
    y = f"tensor<{joined[0]}x{joined[1]}xf32>"
    lines: list[str] = []
    for i in range(parts):
        offsets = ", ".join(str(i * step + 1 if d == dim else 0) for d in range(2))
        lines.append(
            f"%s{i} = braid.slice %x {{offsets = array<i64: {offsets}>, sizes = array<i64: "
            f"{sizes[0]}, {sizes[1]}>, strides = array<i64: 1, 1>}} : ({x}) -> {part}"
        )
        lines.append(f"%e{i} = braid.{op} %s{i} : ({part}) -> {part}")
    operands = ", ".join(f"%e{i}" for i in range(parts))
    types = ", ".join([part] * parts)
    lines.append(f"%y = braid.concat {operands} {{dim = {dim} : i64}} : ({types}) -> {y}")
    body = "\n  ".join(lines)
    return f"func.func @main(%x: {x}) -> {y} {{\n  {body}\n  func.return %y : {y}\n}}"


def kernels_of(text: str) -> int:
    """Return how many kernels the default pipeline makes."""
    context = make_context()
    module = parse_mlir(context, text, "parts.mlir").module
    run_pipeline(context, module, "default")
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    return sum(function.sym_name.data.startswith(KERNEL_PREFIX) for function in functions)


@pytest.mark.parametrize("dim", [0, 1])
def test_as_many_kernels_for_twice_as_many_parts(dim) -> None:
    assert kernels_of(split_model(8, dim, 1, "exp")) == kernels_of(split_model(16, dim, 1, "exp"))


def test_a_few_kernels_stay_as_they_are() -> None:
    assert kernels_of(split_model(FEWEST - 1, 0, 1, "exp")) == FEWEST - 1
    assert kernels_of(split_model(FEWEST, 0, 1, "exp")) == 1


@pytest.mark.parametrize(("dim", "step"), [(0, 1), (0, 3), (1, 1), (1, 2)])
def test_each_part_is_what_it_was(dim, step) -> None:
    extents = [3, 3]
    extents[dim] = 9 * step + 2
    x = np.random.default_rng(0).standard_normal(extents).astype(np.float32)
    read = np.take(x, range(1, 9 * step + 1, step), axis=dim)
    y = braid.compile(split_model(9, dim, step, "exp").encode(), jobs=1)(x)
    assert np.allclose(y, np.exp(read), rtol=1e-5)


def test_copies_of_parts_are_one_kernel() -> None:
    """Columns are copied for a table that is read by them, each by one kernel."""
    parts = 6
    part, x = "tensor<4x1xi64>", f"tensor<4x{parts}xi64>"
    lines: list[str] = []
    for i in range(parts):
        lines += [
            f"%s{i} = braid.slice %x {{offsets = array<i64: 0, {i}>, sizes = array<i64: 4, 1>, "
            f"strides = array<i64: 1, 1>}} : ({x}) -> {part}",
            f"%r{i} = braid.reshape %s{i} : ({part}) -> tensor<4xi64>",
            f"%g{i} = braid.gather %t, %r{i} {{dim = 0 : i64}} : (tensor<5x2xf32>, tensor<4xi64>)"
            " -> tensor<4x2xf32>",
        ]
    operands = ", ".join(f"%g{i}" for i in range(parts))
    types = ", ".join(["tensor<4x2xf32>"] * parts)
    y = f"tensor<4x{2 * parts}xf32>"
    lines.append(f"%y = braid.concat {operands} {{dim = 1 : i64}} : ({types}) -> {y}")
    text = (
        f"func.func @main(%x: {x}, %t: tensor<5x2xf32>) -> {y} {{\n  "
        + "\n  ".join(lines)
        + f"\n  func.return %y : {y}\n}}"
    )
    assert kernels_of(text) == 2
    random = np.random.default_rng(0)
    rows, table = random.integers(0, 5, (4, parts)), random.standard_normal((5, 2)).astype("f")
    y = braid.compile(text.encode(), jobs=1)(rows, table)
    assert np.array_equal(y, table[rows].reshape(4, 2 * parts))
