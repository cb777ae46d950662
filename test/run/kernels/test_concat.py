"""Concatenations of long pieces."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import Float64Type, IntegerType, TensorType, bf16, f32

import braid
from braid.dialects.braid.movement import ConcatOp
from braid.lowering.cpu.kernels.concat import ConcatFamily
from test.machines import HOST
from test.run.kernels.conftest import make_group

FAMILY = ConcatFamily(HOST)
LONG = 2049
"""Elements of a row: pieces of f32 are longer than the shortest that the family takes."""


def along(dim: int):
    def build(*values):
        op = ConcatOp.get(values, dim)
        return [op], [op.output]

    return build


@settings(max_examples=12, deadline=None)
@given(
    outer=st.lists(st.integers(1, 3), max_size=2),
    extents=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    row=st.sampled_from([LONG, 3 * LONG, 8192]),
)
def test_pieces(check, outer, extents, row) -> None:
    """Whole chunks, remainders of them, and pieces shorter than one."""
    check(FAMILY, [(*outer, extent, row) for extent in extents], along(len(outer)))


def test_a_key_behind_a_cache(check) -> None:
    check(FAMILY, [(1, 3, 2047, 64), (1, 3, 1, 64)], along(2))


@pytest.mark.parametrize("kind", [IntegerType(8), bf16, Float64Type()])
def test_types(check, kind) -> None:
    types = [TensorType(kind, (2, extent, 8192)) for extent in (9, 1, 2)]
    check(FAMILY, types, along(1))


def test_one_tensor_twice(check) -> None:
    def build(x, y):
        op = ConcatOp.get([x, y, x], 0)
        return [op], [op.output]

    check(FAMILY, [(3, LONG), (2, LONG)], build)


def test_strides_between_pieces_alone() -> None:
    types = [TensorType(f32, (2, 4, LONG)), TensorType(f32, (2, 1, LONG))]
    candidate = FAMILY.match(make_group(types, along(1)))
    assert candidate is not None
    (choice,) = candidate.layouts
    plain, other = choice.operands

    def takes(strides) -> bool:
        return candidate.supports_strides(
            type(choice)((plain.with_strides(strides), other), choice.results)
        )

    assert takes((9 * LONG, LONG, 1))
    assert not takes((9 * LONG, 2 * LONG, 1))
    assert not takes((9 * LONG, 2 * LONG, 2))


@pytest.mark.parametrize("shape", [(64, 8, 16), (1, 0, LONG), (2, 2, 100)])
def test_short_pieces_are_for_others(shape) -> None:
    types = [TensorType(f32, shape), TensorType(f32, shape)]
    assert FAMILY.match(make_group(types, along(1))) is None


def test_a_part_of_a_cache_is_read_where_it_lies(tmp_path) -> None:
    path = tmp_path / "part.mlir"
    path.write_text("""
      func.func @main(%x: tensor<2x9x2049xf32>, %k: tensor<2x1x2049xf32>)
          -> tensor<2x6x2049xf32> {
        %0 = braid.slice %x {
          offsets = array<i64: 0, 3, 0>, sizes = array<i64: 2, 5, 2049>,
          strides = array<i64: 1, 1, 1>
        } : (tensor<2x9x2049xf32>) -> tensor<2x5x2049xf32>
        %1 = braid.concat %0, %k {dim = 1 : i64}
          : (tensor<2x5x2049xf32>, tensor<2x1x2049xf32>) -> tensor<2x6x2049xf32>
        func.return %1 : tensor<2x6x2049xf32>
      }
    """)
    x = np.random.default_rng(0).standard_normal((2, 9, LONG), np.float32)
    k = np.random.default_rng(1).standard_normal((2, 1, LONG), np.float32)
    model = braid.compile(path)
    assert model.arena_bytes == 0
    np.testing.assert_array_equal(model(x, k), np.concatenate([x[:, 3:8], k], 1))
