"""Kernels that call oneDNN are right, in models, in artifacts and beside generated ones."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

import braid
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.frontends.mlir import parse_mlir
from braid.lowering.cpu.call import call_kernel
from braid.lowering.cpu.library.calls import make_calls
from braid.lowering.cpu.library.family import OneDnnFamily
from braid.lowering.cpu.library.groups import match_library
from braid.lowering.cpu.library.primitives import Primitive, description_of
from braid.passes.infrastructure.manager import run_pipeline
from braid.runtime.artifact import read_artifact
from braid.support import shared_objects
from braid.support.errors import BraidError
from braid.support.shared_objects import ONEDNN, loaded_library
from braid.tuning.kernel_runs import Reference
from braid.tuning.layout_candidates import in_layouts
from braid.universe import make_context
from test.machines import AVX2, HOST
from test.schedules import emitted

needs_library = pytest.mark.skipif(loaded_library(ONEDNN) is None, reason="oneDNN is not installed")

WINDOW = "dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>"


def convolution(channels: int, outputs: int, groups: int, strides: int, size: int = 3) -> str:
    x, w = f"tensor<2x{channels}x15x15xf32>", f"{outputs}x{channels // groups}x{size}x{size}xf32"
    extent = (15 - size) // strides + 1
    y = f"tensor<2x{outputs}x{extent}x{extent}xf32>"
    return f"""
func.func @main(%x: {x}, %w: tensor<{w}>, %b: tensor<1x{outputs}x1x1xf32>, %r: {y}) -> {y} {{
  %zero = braid.constant {{value = dense<0.0> : tensor<1x1x1x1xf32>}} : tensor<1x1x1x1xf32>
  %c = braid.conv %x, %w {{strides = array<i64: {strides}, {strides}>, {WINDOW},
      groups = {groups} : i64}} : ({x}, tensor<{w}>) -> {y}
  %s = braid.add %c, %b : ({y}, tensor<1x{outputs}x1x1xf32>) -> {y}
  %t = braid.add %s, %r : ({y}, {y}) -> {y}
  %u = braid.maximum %t, %zero : ({y}, tensor<1x1x1x1xf32>) -> {y}
  func.return %u : {y}
}}"""


def pool(kind: str) -> str:
    x, y = "tensor<1x32x13x13xf32>", "tensor<1x32x6x6xf32>"
    return f"""
func.func @main(%x: {x}) -> {y} {{
  %share = braid.constant {{value = dense<0.125> : tensor<1x1x1x1xf32>}} : tensor<1x1x1x1xf32>
  %p = braid.pool %x {{kind = "{kind}", window = array<i64: 3, 3>, strides = array<i64: 2, 2>,
      {WINDOW}}} : ({x}) -> {y}
  %y = braid.mul %p, %share : ({y}, tensor<1x1x1x1xf32>) -> {y}
  func.return %y : {y}
}}"""


PRODUCT = """
func.func @main(%x: tensor<3x20x40xf32>, %w: tensor<1x40x72xf32>, %b: tensor<1x1x72xf32>)
    -> tensor<3x20x72xf32> {
  %m = braid.matmul %x, %w : (tensor<3x20x40xf32>, tensor<1x40x72xf32>) -> tensor<3x20x72xf32>
  %s = braid.add %m, %b : (tensor<3x20x72xf32>, tensor<1x1x72xf32>) -> tensor<3x20x72xf32>
  %root = braid.constant {value = dense<0.70710678> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %one = braid.constant {value = dense<1.0> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %half = braid.constant {value = dense<0.5> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %d = braid.mul %s, %root : (tensor<3x20x72xf32>, tensor<1x1x1xf32>) -> tensor<3x20x72xf32>
  %e = braid.erf %d : (tensor<3x20x72xf32>) -> tensor<3x20x72xf32>
  %f = braid.add %e, %one : (tensor<3x20x72xf32>, tensor<1x1x1xf32>) -> tensor<3x20x72xf32>
  %g = braid.mul %s, %f : (tensor<3x20x72xf32>, tensor<3x20x72xf32>) -> tensor<3x20x72xf32>
  %h = braid.mul %g, %half : (tensor<3x20x72xf32>, tensor<1x1x1xf32>) -> tensor<3x20x72xf32>
  func.return %h : tensor<3x20x72xf32>
}"""
SOFTMAX = """
func.func @main(%x: tensor<4x33x50xf32>) -> tensor<4x33x50xf32> {
  %y = braid.softmax %x {dim = 2 : i64} : (tensor<4x33x50xf32>) -> tensor<4x33x50xf32>
  func.return %y : tensor<4x33x50xf32>
}"""
NORM = """
func.func @main(%x: tensor<33x50xf32>, %s: tensor<1x50xf32>, %b: tensor<1x50xf32>)
    -> tensor<33x50xf32> {
  %y = braid.layer_norm %x, %s, %b {first_dim = 1 : i64, epsilon = 1.0e-5 : f64}
      : (tensor<33x50xf32>, tensor<1x50xf32>, tensor<1x50xf32>) -> tensor<33x50xf32>
  func.return %y : tensor<33x50xf32>
}"""
SHAPES = [
    *((32, 48, 1, 3), (1, 8, 1, 11), (3, 32, 1, 7), (64, 64, 64, 3), (16, 16, 16, 15)),
    *((32, 32, 2, 3), (8, 8, 1, 1), (1, 1, 1, 3), (8, 1, 1, 3), (24, 24, 24, 1), (5, 40, 1, 1)),
]
"""Channels in and out, groups, extent of the window."""
IMPLEMENTATION = 8
"""What `dnnl_query_t` calls `impl_info_str`."""
MODELS = {
    "convolution": convolution(32, 48, 1, 1),
    "strided": convolution(5, 7, 1, 2),
    "pointwise": convolution(32, 64, 1, 1, 1),
    "groups": convolution(32, 32, 2, 1),
    "depthwise": convolution(32, 32, 32, 1),
    "max": pool("max"),
    "average": pool("add"),
    "product": PRODUCT,
    "softmax": SOFTMAX,
    "norm": NORM,
}


def groups_of(text: str) -> list[FusedOp]:
    context = make_context()
    module = parse_mlir(context, text, "m.mlir").module
    run_pipeline(context, module, "select-fusion,apply-fusion")
    return [op for op in module.walk() if isinstance(op, FusedOp)]


@needs_library
@pytest.mark.parametrize("name", MODELS)
def test_right_in_all_layouts(name: str) -> None:
    family = OneDnnFamily(HOST)
    group = next(group for group in groups_of(MODELS[name]) if family.match(group) is not None)
    found = family.match(group)
    assert found is not None and found.layouts
    for choice in found.layouts:
        stored = in_layouts(group, choice)
        candidate = family.match(stored)
        assert candidate is not None and candidate.seconds(choice) > 0
        reference = Reference.of(stored, choice)
        assert reference is not None
        results = reference.unwritten()
        call_kernel(emitted(candidate), [*reference.operands, *results])
        assert reference.agrees(results), choice


@needs_library
def test_images_come_in_three_layouts() -> None:
    (group,) = groups_of(MODELS["convolution"])
    found = OneDnnFamily(HOST).match(group)
    assert found is not None
    tags = {choice.results[0].tag for choice in found.layouts}
    assert {"acdb", "abcd"} < tags and len(tags) == 3


@needs_library
@pytest.mark.parametrize("channels, outputs, groups, size", SHAPES)
def test_preferred_weights_are_those_of_fast_kernels(
    channels: int, outputs: int, groups: int, size: int
) -> None:
    """A weight with another stride, if only of a dim of extent 1, gets a reference kernel."""
    group = next(iter(groups_of(convolution(channels, outputs, groups, 1, size))))
    found = OneDnnFamily(HOST).match(group)
    assert found is not None
    for choice in found.layouts:
        if choice.results[0] != Layout.row_major(4):
            name = implementation(found.primitive(choice))
            assert "ref" not in name, (name, [layout.tag for layout in choice.operands])


def implementation(primitive: Primitive) -> str:
    """Return oneDNN's name of the kernel that it takes."""
    library = loaded_library(ONEDNN)
    assert library is not None
    program = description_of(primitive)
    values = make_calls(library, program.calls, program.slots)
    name = ctypes.c_char_p()
    query = library["dnnl_primitive_desc_query"]
    description = ctypes.c_void_p(values[program.description.number])
    assert query(description, IMPLEMENTATION, 0, ctypes.byref(name)) == 0
    return (name.value or b"").decode()


def test_nothing_for_another_machine() -> None:
    (group,) = groups_of(MODELS["softmax"])
    assert OneDnnFamily(AVX2).match(group) is None


def test_what_follows_becomes_post_ops() -> None:
    (group,) = groups_of(PRODUCT)
    found = match_library(group)
    assert found is not None
    assert [step.name for step in found.steps] == ["add", "gelu"]


def test_what_the_library_lacks_is_no_match() -> None:
    """The sum is read twice, and the two do not make one known function."""
    text = PRODUCT.replace("braid.erf", "braid.sin")
    assert all(match_library(group) is None for group in groups_of(text))


def test_quantized_numbers_are_no_match() -> None:
    text = """
func.func @main(%x: tensor<20x40xf32>, %w: tensor<40x72xf32>) -> tensor<20x72xf32> {
  %m = braid.matmul %x, %w : (tensor<20x40xf32>, tensor<40x72xf32>) -> tensor<20x72xf32>
  %s = braid.constant {value = dense<0.2> : tensor<1x1xf32>} : tensor<1x1xf32>
  %z = braid.constant {value = dense<5> : tensor<1x1xi8>} : tensor<1x1xi8>
  %q = braid.quantize %m, %s, %z
    : (tensor<20x72xf32>, tensor<1x1xf32>, tensor<1x1xi8>) -> tensor<20x72xi8>
  %y = braid.dequantize %q, %s, %z
    : (tensor<20x72xi8>, tensor<1x1xf32>, tensor<1x1xi8>) -> tensor<20x72xf32>
  func.return %y : tensor<20x72xf32>
}"""
    assert all(match_library(group) is None for group in groups_of(text))


@needs_library
@pytest.mark.parametrize("name", ["convolution", "depthwise", "product"])
def test_models(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAID_CACHE_DIR", str(tmp_path))
    module = parse_mlir(make_context(), MODELS[name], "m.mlir").module
    generated = braid.compile(module, jobs=1)
    called = braid.compile(module, jobs=1, kernels="library")
    again = braid.compile(module, jobs=1, kernels="library")  # from the object cache
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal(spec.shape, np.float32) for spec in generated.inputs]
    expected = generated(*inputs)
    np.testing.assert_allclose(called(*inputs), expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(again(*inputs), called(*inputs))
    generated.save(tmp_path / "generated.braid")
    called.save(tmp_path / "called.braid")
    assert read_artifact(tmp_path / "generated.braid").manifest.libraries == ()
    assert ONEDNN in read_artifact(tmp_path / "called.braid").manifest.libraries
    loaded = braid.load(tmp_path / "called.braid", threads=2)
    np.testing.assert_array_equal(loaded(*inputs), called(*inputs))


@needs_library
def test_a_missing_library_is_said_at_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse_mlir(make_context(), SOFTMAX, "m.mlir").module
    braid.compile(module, jobs=1, kernels="library").save(tmp_path / "m.braid")
    monkeypatch.setattr(shared_objects, "loaded_library", lambda name: None)
    with pytest.raises(BraidError, match=r"m\.braid' needs the library 'libdnnl.so.3'") as caught:
        braid.load(tmp_path / "m.braid")
    assert "pip install 'braid-compiler[onednn]'" in (caught.value.hint or "")


def test_kernels_of_nobody() -> None:
    module = parse_mlir(make_context(), SOFTMAX, "m.mlir").module
    with pytest.raises(BraidError, match="kernels are 'mine', expected one of generated, library"):
        braid.compile(module, jobs=1, kernels="mine")
