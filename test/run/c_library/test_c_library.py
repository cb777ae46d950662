"""Models as C libraries: programs in C link with them and run them, without anything of braid."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import braid
from braid.driver.packaging.c_interface import identifiers
from braid.support.errors import BraidError
from test.c_programs import build

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
WEIGHT = np.arange(8, dtype=np.float32)
PROGRAM = Path(__file__).parent / "two_models.c"


def classify() -> ModelProto:
    """Two inputs and two outputs with names that C does not take."""
    nodes = [
        helper.make_node("Greater", ["input.1", "w"], ["2nd"]),
        helper.make_node("Add", ["int", "int"], ["input_1"]),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "classify",
        [info("input.1", FLOAT, [3, 8]), info("int", INT64, [5])],
        [info("2nd", BOOL, [3, 8]), info("input_1", INT64, [5])],
        [numpy_helper.from_array(WEIGHT, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def scale() -> ModelProto:
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["y"])],
        "scale",
        [info("x", FLOAT, ["batch", 8])],
        [info("y", FLOAT, ["batch", 8])],
        [numpy_helper.from_array(WEIGHT, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with both libraries and the program."""
    path = tmp_path_factory.mktemp("library")
    braid.compile(classify(), jobs=1).save_c_library(path / "classify.so")
    compiled = braid.compile(scale(), shape_buckets={"batch": [2, 4]}, jobs=1)
    compiled.save_c_library(path / "scale.so")
    build_with_libraries(path, PROGRAM).rename(path / "program")
    return path


def build_with_libraries(directory: Path, source: Path) -> Path:
    libraries = [directory / "classify.so", directory / "scale.so"]
    flags = (f"-I{directory}", "-Wl,-rpath,$ORIGIN")
    return build(directory / source.stem, source, *libraries, flags=flags)


def run(directory: Path, batch: int, data: bytes) -> subprocess.CompletedProcess[bytes]:
    command = [directory / "program", str(batch)]
    return subprocess.run(command, input=data, capture_output=True, check=False, env={})


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_results(directory: Path, batch: int) -> None:
    rng = np.random.default_rng(batch)
    x = rng.standard_normal((3, 8)).astype(np.float32) * 4
    numbers = rng.integers(-9, 9, 5)
    rows = rng.standard_normal((batch, 8)).astype(np.float32)
    result = run(directory, batch, x.tobytes() + numbers.tobytes() + rows.tobytes())
    assert result.returncode == 0, result.stderr
    greater, doubled, scaled = np.split(np.frombuffer(result.stdout, np.uint8), [24, 64])
    np.testing.assert_array_equal(greater.view(np.bool_).reshape(3, 8), x > WEIGHT)
    np.testing.assert_array_equal(doubled.view(np.int64), 2 * numbers)
    np.testing.assert_array_equal(scaled.view(np.float32).reshape(batch, 8), rows * WEIGHT)


def test_a_size_that_is_too_large(directory: Path) -> None:
    result = run(directory, 5, bytes(3 * 8 * 4 + 5 * 8 + 5 * 8 * 4))
    assert result.returncode == 1
    assert result.stderr == b"scale: input 'x': dim 0 ('batch') is 5, expected at most 4\n"


def test_null_pointers_are_refused(directory: Path) -> None:
    program = build_with_libraries(directory, PROGRAM.with_name("null_pointers.c"))
    result = subprocess.run([program], capture_output=True, text=True, check=False)
    assert result.stdout.splitlines() == [
        "the context is NULL",
        "the buffer for input 'input.1' is NULL",
        "the buffer for output '2nd' is NULL",
        "the buffer for input 'int' is NULL",
        "the buffer for output '2nd' is NULL",
        "the context is NULL",
        "input 'x': its shape is NULL",
        "the context is NULL",
        "the buffer for output 'y' is NULL",
    ]
    assert result.returncode == 0


def test_only_the_interface_is_exported(directory: Path) -> None:
    result = subprocess.run(
        ["nm", "-D", "--defined-only", directory / "scale.so"], capture_output=True, text=True
    )
    names = {line.split()[-1] for line in result.stdout.splitlines()}
    functions = ("create", "run", "output_shape", "error", "destroy")
    assert names == {f"scale_{name}" for name in functions}


def test_the_header_is_cpp_too(directory: Path) -> None:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    source = '#include "classify.h"\n#include "scale.h"\nint main() { return 0; }\n'
    flags = ["-Wall", "-Werror", f"-I{directory}", "-fsyntax-only", "-x", "c++", "-"]
    subprocess.run([compiler, *flags], input=source, text=True, check=True)


def test_a_loaded_model_cannot_be_linked_again(tmp_path: Path) -> None:
    braid.compile(scale(), shape_buckets={"batch": [1]}, jobs=1).save(tmp_path / "m.braid")
    with pytest.raises(BraidError, match="loaded from an artifact cannot become a C library"):
        braid.load(tmp_path / "m.braid").save_c_library(tmp_path / "m.so")


def test_identifiers() -> None:
    names = ["input.1", "input_1", "int", "2nd", "", "größe", "a::b/c:0"]
    expected = ["input_1", "input_1_2", "m_int", "m_2nd", "m_", "gr_e", "a_b_c_0"]
    assert identifiers(names) == expected


def test_any_size(tmp_path: Path) -> None:
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Concat", ["x", "x"], ["y"], axis=0)],
        "twice",
        [info("x", FLOAT, ["batch", 8])],
        [info("y", FLOAT, [None, 8])],
    )
    opsets = [helper.make_opsetid("", 18)]
    model = braid.compile(helper.make_model(graph, opset_imports=opsets, ir_version=9), jobs=1)
    assert repr(model) == ("<braid.Model (x: float32[batch, 8]) -> (y: float32[2 * batch, 8])>")
    model.save_c_library(tmp_path / "twice.so")
    flags = (f"-I{tmp_path}", "-Wl,-rpath,$ORIGIN")
    source = Path(__file__).with_name("any_size.c")
    program = build(tmp_path / "any_size", source, tmp_path / "twice.so", flags=flags)
    command = [program, "1", "7", "0", "1000", "2", "7"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env={})
    assert result.returncode == 0, result.stderr
    result = subprocess.run([program, "-3"], capture_output=True, text=True, check=False, env={})
    assert result.returncode == 1
    assert result.stderr == "-3: input 'x': dim 0 ('batch') is -3, expected at least 0\n"
