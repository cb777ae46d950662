"""The op against its own `evaluate`, compiled with and without the kernel family."""

from pathlib import Path

import numpy as np
import pytest
from xdsl.parser import Parser

import braid
from braid.extend import FusedOp, kernel_families, load_target, make_context

MODULE = """
func.func @main(%x: tensor<{type}> {{braid.name = "x"}}) -> (tensor<{type}> {{braid.name = "y"}}) {{
  %y = toy.rms_norm %x {{epsilon = {epsilon} : f64, braid.name = "y"}}
      : (tensor<{type}>) -> tensor<{type}>
  func.return %y : tensor<{type}>
}}
"""
PRODUCT = """
func.func @main(%x: tensor<{type}> {{braid.name = "x"}}, %w: tensor<40x40xf32> {{braid.name = "w"}})
    -> (tensor<{type}> {{braid.name = "y"}}) {{
  %y = braid.fused(%x, %w) : (tensor<{type}>, tensor<40x40xf32>) -> tensor<{type}> {{
  ^bb0(%a: tensor<{type}>, %b: tensor<40x40xf32>):
    %p = braid.matmul %a, %b : (tensor<{type}>, tensor<40x40xf32>) -> tensor<{type}>
    %n = toy.rms_norm %p {{epsilon = {epsilon} : f64}} : (tensor<{type}>) -> tensor<{type}>
    braid.yield %n : tensor<{type}>
  }}
  func.return %y : tensor<{type}>
}}
"""


def _module(directory: Path, type: str, epsilon: str) -> Path:
    path = directory / "norm.mlir"
    path.write_text(MODULE.format(type=type, epsilon=epsilon))
    return path


# f32 is for the family, f64 for the structure; 1 and 40 do not fill a vector.
@pytest.mark.parametrize("element_type", ["f32", "f64"])
@pytest.mark.parametrize("shape", [(3, 1), (2, 8, 40), (5, 64)])
def test_compiled_is_what_evaluate_says(
    tmp_path: Path, shape: tuple[int, ...], element_type: str
) -> None:
    path = _module(tmp_path, "x".join(map(str, shape)) + f"x{element_type}", "1.0e-5")
    dtype = {"f32": np.float32, "f64": np.float64}[element_type]
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    expected = braid.interpret(path)(x)
    assert np.abs(braid.compile(path)(x) - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize(("text", "inputs"), [(MODULE, 1), (PRODUCT, 2)], ids=["op", "group"])
def test_parts_make_the_whole(tmp_path: Path, text: str, inputs: int) -> None:
    path = tmp_path / "parts.mlir"
    path.write_text(text.format(type="64x40xf32", epsilon="0.5"))
    rng = np.random.default_rng(0)
    shapes = [(64, 40), (40, 40)]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes[:inputs]]
    model = braid.compile(path, passes="select-splits{memory=8KiB},apply-splits,default")
    assert np.abs(model(*arrays) - braid.interpret(path)(*arrays)).max() <= 1e-5


def test_a_group_with_it_is_computed_tile_by_tile() -> None:
    text = PRODUCT.format(type="64x40xf32", epsilon="0.5")
    module = Parser(make_context(), text).parse_module()
    (group,) = (op for op in module.walk() if isinstance(op, FusedOp))
    families = kernel_families(load_target("host").host_device)
    assert next(f.name for f in families if f.match(group) is not None) == "tiled"


def test_evaluate_is_the_formula(tmp_path: Path) -> None:
    y = braid.interpret(_module(tmp_path, "1x2xf32", "0.5"))(np.array([[3.0, 4.0]], np.float32))
    assert np.allclose(y, np.array([[3.0, 4.0]]) / np.sqrt(12.5 + 0.5))


def test_an_epsilon_below_zero_is_refused(tmp_path: Path) -> None:
    with pytest.raises(braid.BraidError, match=r"epsilon is -1.0, expected no negative number"):
        braid.compile(_module(tmp_path, "2x4xf32", "-1.0"))
