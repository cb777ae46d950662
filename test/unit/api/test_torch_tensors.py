"""Tensors of PyTorch as inputs, outputs and buffers of compiled models, without copies."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import braid
from braid.runtime.binding import as_array
from braid.runtime.manifest import TensorSpec
from braid.support.errors import BraidError


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def doubled(
    element: int, shape: tuple[int | str, ...] = (2, 3), op: str = "Add"
) -> onnx.ModelProto:
    """Return a model of `x + x`."""
    x, y = (helper.make_tensor_value_info(name, element, shape) for name in "xy")
    graph = helper.make_graph([helper.make_node(op, ["x", "x"], ["y"])], "doubled", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


@pytest.fixture(scope="module")
def model() -> braid.Model:
    return braid.compile(doubled(TensorProto.FLOAT, ("rows", 3)), jobs=1)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "int64", "uint8", "bool"])
def test_types_of_numpy(torch: Any, name: str) -> None:
    element = helper.np_dtype_to_tensor_dtype(np.dtype(name))
    x = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
    op = "Or" if name == "bool" else "Add"
    y = braid.compile(doubled(element, op=op), jobs=1)(x)
    assert y.dtype == x.dtype
    assert torch.equal(y, x + x)


def test_bfloat16(torch: Any) -> None:
    x = torch.randn(2, 3).bfloat16()
    y = braid.compile(doubled(TensorProto.BFLOAT16), jobs=1)(x)
    assert y.dtype == torch.bfloat16
    assert torch.equal(y, x + x)


@pytest.mark.parametrize(
    "name", ["float32", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int16", "bool", "complex128"]
)
@pytest.mark.parametrize("transposed", [False, True])
def test_inputs_share_memory(torch: Any, name: str, transposed: bool) -> None:
    x = torch.randn(4, 3).to(getattr(torch, name))
    x = x.T if transposed else x
    array = as_array(TensorSpec("x", name, (3, 4), (3, 4)), x)
    assert isinstance(array, np.ndarray) and array.dtype.name == name
    assert array.ctypes.data == x.data_ptr() and array.shape == tuple(x.shape)
    assert np.array_equal(array.astype(complex), x.to(torch.complex128).numpy())


def test_what_requires_gradients(torch: Any, model: braid.Model) -> None:
    x = torch.randn(2, 3, requires_grad=True)
    y = model(x)
    assert not y.requires_grad
    assert torch.equal(y, (x + x).detach())
    array = as_array(TensorSpec("x", "float32", (2, 3), (2, 3)), x)
    assert isinstance(array, np.ndarray) and array.ctypes.data == x.data_ptr()


def test_views(torch: Any, model: braid.Model) -> None:
    wide = torch.randn(3, 8)
    for x in (wide.T, wide[:, ::2].T, torch.ones(3).expand(5, 3), torch.randn(0, 3)):
        assert torch.equal(model(x), x + x)
    z = torch.randn(2, 3, dtype=torch.complex64)
    conjugated = as_array(TensorSpec("z", "complex64", (2, 3), (2, 3)), z.conj())
    assert np.array_equal(conjugated, z.numpy().conj())
    negated = z.conj().imag
    assert negated.is_neg()
    assert torch.equal(model(negated), negated + negated)


def test_tensors_come_out_where_they_came_in(torch: Any, model: braid.Model) -> None:
    x = torch.randn(2, 3)
    array = x.numpy()
    assert isinstance(model(x), torch.Tensor)
    assert isinstance(model.run([x])[0], torch.Tensor)
    assert isinstance(model.run_named({"x": x})["y"], torch.Tensor)
    assert isinstance(model(x=x), torch.Tensor)
    assert [type(y) for y in model.stream([x, array])] == [torch.Tensor, np.ndarray]
    for y in (model(array), model.run([array])[0], model.run_named({"x": array})["y"]):
        assert isinstance(y, np.ndarray)


def test_interpreted(torch: Any) -> None:
    x = torch.randn(2, 3)
    y = braid.interpret(doubled(TensorProto.FLOAT))(x)
    assert torch.equal(y, x + x)


def test_tensors_as_buffers(torch: Any, model: braid.Model) -> None:
    x, out = torch.randn(2, 3), torch.empty(2, 3)
    version = out._version
    assert model(x, out=out) is out
    assert torch.equal(out, x + x)
    assert out._version > version
    assert model.run([x.numpy()], out=[out])[0] is out
    array = np.empty((2, 3), np.float32)
    assert model(x, out=array) is array
    expected = x + x
    assert model(x, out={"y": x}) is x
    assert torch.equal(x, expected)


def test_bfloat16_buffer(torch: Any) -> None:
    x, out = torch.randn(2, 3).bfloat16(), torch.empty(2, 3, dtype=torch.bfloat16)
    assert braid.compile(doubled(TensorProto.BFLOAT16), jobs=1)(x, out=out) is out
    assert torch.equal(out, x + x)


def test_autograd_sees_what_was_overwritten(torch: Any, model: braid.Model) -> None:
    w, kept = torch.randn(2, 3, requires_grad=True), torch.randn(2, 3)
    loss = (w * kept).sum()
    model(torch.randn(2, 3), out=kept)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_wrong_buffers(torch: Any, model: braid.Model) -> None:
    x = torch.randn(2, 3)
    for out, message in (
        (torch.empty(2, 3, requires_grad=True), "requires a gradient"),
        (torch.empty(3, 2).T, "not contiguous"),
        (torch.empty(2, 4), r"has shape \(2, 4\), expected \(2, 3\)"),
        (torch.empty(2, 3, dtype=torch.float64), "has dtype float64, expected float32"),
        (torch.empty(2, 3, device="meta"), "no dense tensor in this computer's memory"),
        (torch.empty(2, 3, dtype=torch.complex64).conj().imag, "conjugated or negated"),
    ):
        with pytest.raises(BraidError, match=message):
            model(x, out=out)
    with torch.no_grad():
        out = torch.empty(2, 3, requires_grad=True)
        assert model(x, out=out) is out


@pytest.mark.parametrize("kind", ["meta", "sparse"])
def test_tensors_without_dense_memory(torch: Any, model: braid.Model, kind: str) -> None:
    x = torch.ones(2, 3, device="meta") if kind == "meta" else torch.eye(3).to_sparse()
    with pytest.raises(BraidError, match="not an array in this computer's memory"):
        model(x)
