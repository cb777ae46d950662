"""Arrays of other packages in the memory of a GPU: taken and filled by DLPack, without copies."""

import gc
from collections.abc import Callable, Generator

import numpy as np
import onnx
import pytest

import braid
from braid.frontends.mlir import parse_mlir
from braid.support.errors import BraidError
from braid.universe import make_context
from test.run.cuda.conftest import TARGET, Driver
from test.run.cuda.gpu_tensors import CODES, GpuTensor, Package
from test.run.cuda.test_failures import MODEL

COPIES = {"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoD_v2", "cuMemcpyDtoD_v2"}
X = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((64, 32)).astype(np.float32)


def compiled(text: str = MODEL, target: str = TARGET) -> braid.Model:
    return braid.compile(parse_mlir(make_context(), text, "m.mlir").module, target=target)


def reference() -> np.ndarray:
    scores = X.astype(np.float64) @ W
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.fixture
def package(driver: Driver) -> Generator[Package]:
    made = Package(driver)
    yield made
    gc.collect()
    made.close()
    driver.check()


@pytest.mark.parametrize("version", [None, 1])
@pytest.mark.parametrize("offset", [0, 4])
def test_nothing_is_copied(
    driver: Driver, package: Package, version: int | None, offset: int
) -> None:
    model = compiled()
    x = package.tensor(X, offset, version=version, byte_offset=offset)
    w = package.tensor(W, version=version, strides=(32, 1))
    y = package.tensor(np.zeros((8, 32), np.float32), version=version)
    before = driver.calls()
    for _ in range(3):
        assert model(x, w=w, out=y) is y
    between = driver.calls()[len(before) :]
    assert not COPIES & set(between)
    assert between.count("cuGraphInstantiateWithFlags") == 1
    np.testing.assert_allclose(package.values(y), reference(), rtol=1e-5)
    for one in (x, w, y):
        assert one.streams == [1, 1, 1]
        assert one.exported == one.deleted == 3


def test_some_are_there_and_others_here(driver: Driver, package: Package) -> None:
    model = compiled()
    np.testing.assert_allclose(model(package.tensor(X), W), reference(), rtol=1e-5)
    y = package.tensor(np.zeros((8, 32), np.float32))
    assert model(X, W, out={"y": y}) is y
    np.testing.assert_allclose(package.values(y), reference(), rtol=1e-5)


@pytest.mark.parametrize("order", ["late", "early", "7"])
def test_what_others_have_begun_is_waited_for(
    package: Package, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_ORDER", order)
    model = compiled()
    x, source = package.tensor(np.zeros_like(X)), package.tensor(X)
    for _ in range(3):
        package.begin_copy(x, source)
        np.testing.assert_allclose(model(x, W), reference(), rtol=1e-5)
    y = package.tensor(np.zeros((8, 32), np.float32))
    kept = package.tensor(np.zeros((8, 32), np.float32))
    package.begin_copy(kept, y)  # reads the buffer before it is written
    model(X, W, out=y)
    package.begin_copy(y, y)
    np.testing.assert_array_equal(package.values(kept), 0)
    np.testing.assert_allclose(package.values(y), reference(), rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "message", "hint"),
    [
        (lambda p: p.tensor(X, strides=(1, 8)), r"strides \(1, 8\)", r"x\.contiguous\(\)"),
        (lambda p: p.tensor(X, strides=(128, 1)), r"strides \(128, 1\)", r"contiguous"),
        (lambda p: p.tensor(X, 2), "no multiple of its elements' 4 bytes", "copy it"),
        (lambda p: p.tensor(X.astype(np.float64)), "dtype float64, expected float32", "convert"),
        (lambda p: p.tensor(X[:4]), r"shape \(4, 64\), expected \(8, 64\)", ""),
        (lambda p: p.tensor(X, exports={"lanes": 2}), "elements of 2 times 32 bits", "convert"),
        (lambda p: p.tensor(X, exports={"code": 3}), "DLPack's type 3", "convert"),
        (lambda p: p.tensor(X, exports={"type": 10}), "of a device of DLPack's type 10", ""),
        (lambda p: p.tensor(X, version=2), "version 2 of DLPack, expected 1", "max_version"),
        (lambda p: p.tensor(X, exports={"id": 1}), "memory of GPU 1, and GPU 0 uses", "of GPU 0"),
    ],
)
def test_what_it_does_not_take(
    driver: Driver, package: Package, make: Callable[[Package], GpuTensor], message: str, hint: str
) -> None:
    model, tensor = compiled(), make(package)
    with pytest.raises(BraidError, match=message) as caught:
        model(tensor, W)
    assert "'x'" in caught.value.message
    assert hint.replace("\\", "") in (caught.value.hint or "")
    del caught
    gc.collect()
    assert tensor.exported == tensor.deleted == 1


def test_results_go_where_they_may(package: Package) -> None:
    model = compiled()
    zeros = np.zeros((8, 32), np.float32)
    for flags, message in ((1, "read-only"), (2, "a copy")):
        with pytest.raises(BraidError, match=f"'y' is {message}"):
            model(X, W, out=package.tensor(zeros, flags=flags))
        x = package.tensor(X, flags=flags)  # which is only read
        np.testing.assert_allclose(model(x, W), reference(), rtol=1e-5)
    square = compiled(MODEL.replace("64x32", "64x64").replace("8x32", "8x64"))
    x = package.tensor(X)
    with pytest.raises(BraidError, match="'x' shares memory of GPU 0 with an output's buffer"):
        square(x, np.zeros((64, 64), np.float32), out=x)


def test_a_capsule_is_used_once(package: Package) -> None:
    model, x = compiled(), package.tensor(X)
    capsule = x.capsule()

    class Again(GpuTensor):
        def __dlpack__(self, **_: object) -> object:
            return capsule

    again = Again(x.address, x.dtype, x.shape)
    np.testing.assert_allclose(model(again, W), reference(), rtol=1e-5)
    assert x.deleted == 1
    with pytest.raises(BraidError, match="still to be used"):
        model(again, W)
    unused = x.capsule()
    del unused
    assert x.deleted == 2


def test_what_cannot_be_exported(package: Package) -> None:
    class NeedsGradients(GpuTensor):
        def __dlpack__(self, **_: object) -> object:
            raise BufferError("it needs gradients")

    x = package.tensor(X)
    with pytest.raises(BraidError, match="cannot be exported by DLPack: it needs gradients") as own:
        compiled()(NeedsGradients(x.address, x.dtype, x.shape), W)
    assert "detach" in (own.value.hint or "")


def test_open_dims_are_the_hosts(package: Package) -> None:
    """Includes sizes that need no padding."""
    given, made = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["rows", 64])
        for name in "xy"
    )
    node = onnx.helper.make_node("Exp", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "m", [given], [made])
    source = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)])
    model = braid.compile(source, target=TARGET, shape_bounds={"rows": 8})
    np.testing.assert_allclose(model(X[:3]), np.exp(X[:3]), rtol=1e-5)
    message = "is in the memory of GPU 0, and has open dims"
    with pytest.raises(BraidError, match=f"input 'x' {message}") as own:
        model(package.tensor(X))
    with pytest.raises(BraidError, match=f"output 'y' {message}"):
        model(X, out=package.tensor(np.zeros_like(X)))
    assert "shapes" in (own.value.hint or "")


def test_what_the_host_uses_is_the_hosts(package: Package) -> None:
    returned = MODEL.replace('"y"})', '"y"}, tensor<8x64xf32> {braid.name = "z"})').replace(
        "return %1 : tensor<8x32xf32>", "return %1, %x : tensor<8x32xf32>, tensor<8x64xf32>"
    )
    with pytest.raises(BraidError, match="'x' is in the memory of GPU 0, and the host uses") as own:
        compiled(returned)(package.tensor(X), W)
    assert "this computer's memory" in (own.value.hint or "")
    for target in ("host", "gpu-emulated"):
        model = compiled(target=target)
        with pytest.raises(BraidError, match="'x' is in the memory of GPU 0"):
            model(package.tensor(X), W)
        with pytest.raises(BraidError, match="'y' is in the memory of GPU 0"):
            model(X, W, out=package.tensor(np.zeros((8, 32), np.float32)))
    module = parse_mlir(make_context(), MODEL, "m.mlir").module
    with pytest.raises(BraidError, match="an interpreted model has its inputs"):
        braid.interpret(module)(package.tensor(X), W)
    with pytest.raises(BraidError, match="a stream has its inputs"):
        list(compiled().stream([(package.tensor(X), W)]))


@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "bool"])
def test_element_types(package: Package, dtype: str) -> None:
    kind = {"bool": "i1", "float16": "f16"}.get(dtype, f"i{dtype[3:]}")
    ty = f"tensor<3x5x{kind}>"
    model = compiled(
        f'func.func @main(%x: {ty} {{braid.name = "x"}}) -> ({ty} {{braid.name = "y"}}) {{\n'
        f"  %0 = braid.maximum %x, %x : ({ty}, {ty}) -> {ty}\n  func.return %0 : {ty}\n}}"
    )
    values = np.random.default_rng(2).integers(0, 2, (3, 5)).astype(dtype)
    assert values.dtype.kind in CODES
    y = package.tensor(np.zeros_like(values))
    model(package.tensor(values), out=y)
    np.testing.assert_array_equal(package.values(y), values)
