"""Compiled models called from Python: arguments, buffers, threads, artifacts."""

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import braid
from braid.frontends.onnx import import_onnx
from braid.runtime.binding import as_array
from braid.runtime.manifest import TensorSpec
from braid.support.errors import BraidError
from braid.universe import make_context

Expected = Callable[[np.ndarray], np.ndarray]


@pytest.fixture(scope="module")
def model(affine: onnx.ModelProto) -> braid.Model:
    return braid.compile(affine, jobs=1)


class Exported:
    """An array of some other library."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: object) -> object:
        return self._array.__dlpack__(**options)  # pyright: ignore

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


class Convertible:
    """An array of a library without DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return self._array


def check(results: object, x: np.ndarray, expected: Expected) -> None:
    y, total = results  # pyright: ignore
    np.testing.assert_allclose(y, expected(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(total, expected(x).sum(), rtol=1e-5)
    assert total.shape == ()


@pytest.mark.parametrize("wrap", [np.asarray, np.asfortranarray, Exported, Convertible, list])
def test_kinds_of_arrays(
    model: braid.Model, x: np.ndarray, expected: Expected, wrap: Callable[..., object]
) -> None:
    check(model(wrap(x)), x, expected)
    check(model(x=wrap(x)), x, expected)


def test_the_interpreter_agrees(affine: onnx.ModelProto, x: np.ndarray, expected: Expected) -> None:
    check(braid.interpret(affine)(x), x, expected)


@pytest.mark.parametrize("kind", ["path", "module", "mlir"])
def test_kinds_of_sources(
    affine: onnx.ModelProto,
    affine_path: Path,
    kind: str,
    x: np.ndarray,
    expected: Expected,
) -> None:
    imported = import_onnx(affine)
    if kind == "path":
        compiled = braid.compile(affine_path, jobs=1)
    elif kind == "module":
        before = str(imported.module)
        compiled = braid.compile(imported.module, parameters=imported.parameters, jobs=1)
        assert str(imported.module) == before
    else:
        from braid.tools.cli import main

        path = affine_path.with_suffix(".mlir")
        assert main(["import", str(affine_path), "-o", str(path)]) == 0
        compiled = braid.compile(path, jobs=1)
    check(compiled(x), x, expected)


def test_a_single_output_is_an_array(affine: onnx.ModelProto, x: np.ndarray) -> None:
    single = onnx.ModelProto()
    single.CopyFrom(affine)
    del single.graph.output[1]
    assert isinstance(braid.interpret(single)(x), np.ndarray)


def test_description(model: braid.Model) -> None:
    assert [(s.name, s.dtype, s.shape) for s in model.inputs] == [("x", "float32", (4, 8))]
    assert [s.name for s in model.outputs] == ["y", "total"]
    assert (
        repr(model) == "<braid.Model (x: float32[4, 8]) -> (y: float32[4, 16], total: float32[])>"
    )
    assert model.profile() == {}


@pytest.mark.parametrize("form", ["sequence", "mapping"])
def test_output_buffers(model: braid.Model, x: np.ndarray, expected: Expected, form: str) -> None:
    y, total = np.empty((4, 16), np.float32), np.empty((), np.float32)
    out = [y, total] if form == "sequence" else {"total": total, "y": y}
    results = model(x, out=out)
    assert results[0] is y and results[1] is total
    check((y, total), x, expected)


@pytest.mark.parametrize("begin", [0, 8, 5000])
def test_an_input_in_the_memory_of_an_output(begin: int) -> None:
    text = """func.func @main(%x: tensor<96x96xf32>) -> tensor<96x96xf32> {
        %y = braid.transpose %x {permutation = array<i64: 1, 0>}
            : (tensor<96x96xf32>) -> tensor<96x96xf32>
        func.return %y : tensor<96x96xf32> }"""
    model = braid.compile(Parser(make_context(), text).parse_module())
    memory = np.arange(2 * 9216, dtype=np.float32)
    x, y = memory[begin : begin + 9216].reshape(96, 96), memory[:9216].reshape(96, 96)
    expected = x.T.copy()
    assert model(x, out=y) is y
    np.testing.assert_array_equal(y, expected)


def test_outputs_that_share_memory(model: braid.Model, x: np.ndarray) -> None:
    y = np.empty((4, 16), np.float32)
    with pytest.raises(BraidError, match="outputs 'y' and 'total' share memory"):
        model(x, out=[y, y[3, 15:].reshape(())])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, x: m(), "no value for input 'x'"),
        (lambda m, x: m(x, x), "the model has 1 inputs, got 2 positional"),
        (lambda m, x: m(z=x), "the model has no input 'z'"),
        (lambda m, x: m(x, x=x), "given by position and by name"),
        (lambda m, x: m(x.T), r"shape \(8, 4\), expected \(4, 8\)"),
        (lambda m, x: m(x.astype(np.float64)), "dtype float64, expected float32"),
        (lambda m, x: m("text"), "is a str that is not an array"),
        (lambda m, x: m(x, out=np.empty((4, 16), np.float32)), "2 outputs, got 1 buffer"),
        (lambda m, x: m(x, out={"y": x}), "expected one for each output: 'y', 'total'"),
        (lambda m, x: m(x, out=["a", "b"]), "is a str, expected a numpy array"),
        (lambda m, x: m(x, out=[x, x]), "the buffer for output 'y' has shape"),
    ],
)
def test_wrong_calls(
    model: braid.Model, x: np.ndarray, call: Callable[..., object], message: str
) -> None:
    with pytest.raises(BraidError, match=message):
        call(model, x)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (["1.0"], "float32"),
        ([[1.0], [None]], "float32"),
        ("text", "bool"),
        (300, "uint8"),
        (2**70, "int64"),
        ([[1.0], []], "float32"),
    ],
)
def test_values_that_are_no_numbers_of_the_type(value: object, dtype: str) -> None:
    """Numpy would convert some of them to numbers by mistake."""
    with pytest.raises(BraidError, match=r"input 'x' is a .* that is not an array"):
        as_array(TensorSpec("x", dtype, (), ()), value)


def test_missing_parameters(affine: onnx.ModelProto) -> None:
    imported = import_onnx(affine)
    with pytest.raises(BraidError, match=r"parameter '[wb]' has no value"):
        braid.compile(imported.module, jobs=1)
    wrong = {**imported.parameters, "w": np.zeros((2, 2), np.float32)}
    with pytest.raises(BraidError, match=r"parameter 'w' is .*float32\[2, 2\], expected"):
        braid.compile(imported.module, parameters=wrong, jobs=1)


def test_threads(model: braid.Model, expected: Expected) -> None:
    """Many threads call one model at once, each with different inputs."""
    failures: list[object] = []
    start = threading.Barrier(8)

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        start.wait()
        for _ in range(200):
            x = rng.standard_normal((4, 8)).astype(np.float32)
            y, _ = model(x)
            if not np.allclose(y, expected(x), rtol=1e-4, atol=1e-5):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_save_and_load(
    model: braid.Model, tmp_path: Path, x: np.ndarray, expected: Expected
) -> None:
    model.save(tmp_path / "m.braid")
    loaded = braid.load(tmp_path / "m.braid")
    check(loaded(x), x, expected)
    assert (loaded.inputs, loaded.outputs) == (model.inputs, model.outputs)
    loaded.save(tmp_path / "again.braid")
    assert (tmp_path / "again.braid").read_bytes() == (tmp_path / "m.braid").read_bytes()


def test_the_interpreter_has_no_code(affine: onnx.ModelProto, tmp_path: Path) -> None:
    with pytest.raises(BraidError, match="has no code to save"):
        braid.interpret(affine).save(tmp_path / "m.braid")


def test_profile(affine: onnx.ModelProto, x: np.ndarray) -> None:
    profiled = braid.compile(affine, jobs=1, profile=True)
    for _ in range(3):
        profiled(x)
    entries = profiled.profile()
    assert entries and all(entry.count == 3 for entry in entries.values())
    assert all(entry.seconds >= 0 for entry in entries.values())


def test_run_passes() -> None:
    from braid.frontends.mlir import parse_mlir
    from braid.universe import make_context

    text = "func.func @main(%x: i64) -> i64 {\n  %a = arith.addi %x, %x : i64\n  return %x : i64\n}"
    module = parse_mlir(make_context(), text, "m.mlir").module
    assert braid.run_passes(module, "canonicalize") is module
    assert isinstance(module, ModuleOp) and "arith.addi" not in str(module)


def test_the_face_is_lazy() -> None:
    assert {"compile", "load", "interpret"} <= set(dir(braid))
    with pytest.raises(AttributeError, match="no attribute 'frobnicate'"):
        braid.frobnicate  # noqa: B018  # pyright: ignore


def test_a_model_takes_tensors_alone() -> None:
    text = "func.func @main(%c: i1) -> i1 { func.return %c : i1 }"
    module = Parser(make_context(), text).parse_module()
    with pytest.raises(BraidError, match="'input0' of the model has type i1") as raised:
        braid.compile(module)
    assert "tensor.extract" in str(raised.value)


def test_elements_are_aligned(model: braid.Model, x: np.ndarray, expected: Expected) -> None:
    """An array may begin anywhere in a file; one for results is the caller's to make."""
    memory = np.empty(x.nbytes + 1, np.uint8)
    given = np.frombuffer(memory.data, x.dtype, x.size, 1).reshape(x.shape)
    given[...] = x
    assert not given.flags.aligned
    check(model(given), x, expected)
    shape = model.outputs[0].shape
    elements = 4 * int(np.prod(shape))
    result = np.frombuffer(bytearray(elements + 1), np.float32, elements // 4, 1).reshape(shape)
    with pytest.raises(BraidError, match="not contiguous, aligned and writeable"):
        model(x, out=(result, np.empty((), x.dtype)))


def test_interpreted_results_are_the_callers_own() -> None:
    """Ops that move no elements give views of inputs in numpy, and of each other."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    of = "tensor<2x3xf32>"
    text = f"""func.func @main(%x: {of}) -> ({of}, {of}, tensor<3x2xf32>) {{
  %y = braid.transpose %x {{permutation = array<i64: 1, 0>}} : ({of}) -> tensor<3x2xf32>
  func.return %x, %x, %y : {of}, {of}, tensor<3x2xf32>
}}"""
    results = braid.interpret(text.encode())(x)
    kept = [result.copy() for result in results]
    x[:] = -1
    results[0][:] = -2
    np.testing.assert_array_equal(results[1], kept[1])
    np.testing.assert_array_equal(results[2], kept[2])
