"""Bad input to each command: one diagnostic, status 1, no file, no traceback."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from braid.tools.cli import main

X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])

COMMANDS: dict[str, list[str]] = {
    "import": ["-o", "out.mlir"],
    "compile": ["-o", "out.braid"],
    "run": ["--random", "--output-dir", "out"],
    "bench": ["--runs", "1"],
    "verify": [],
    "explain": ["--html", "out.html"],
}


def model(nodes: list[onnx.NodeProto], **fields: object) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", [X], [Y], **fields)  # pyright: ignore
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def good() -> onnx.ModelProto:
    weight = numpy_helper.from_array(np.ones((2, 3), np.float32) * 2, "w")
    return model([helper.make_node("Mul", ["x", "w"], ["y"])], initializer=[weight])


def write_garbage(path: Path) -> None:
    path.write_bytes(b"\x00garbage\xff" * 40)


def write_truncated(path: Path) -> None:
    path.write_bytes(good().SerializeToString()[:-7])


def write_empty(path: Path) -> None:
    path.write_bytes(b"")


def write_unknown_op(path: Path) -> None:
    path.write_bytes(model([helper.make_node("Frobnicate", ["x"], ["y"])]).SerializeToString())


def write_cycle(path: Path) -> None:
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["b"], "second"),
        helper.make_node("Relu", ["b"], ["y"], "third"),
    ]
    path.write_bytes(model(nodes).SerializeToString())


def write_without_external_data(path: Path) -> None:
    proto = good()
    onnx.save(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (path.parent / "weights.bin").unlink()


def write_open_dims(path: Path) -> None:
    proto = good()
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    path.write_bytes(proto.SerializeToString())


ONNX_FILES: dict[str, tuple[Callable[[Path], None], str]] = {
    "garbage": (write_garbage, "not an ONNX model"),
    "truncated": (write_truncated, "not an ONNX model"),
    "empty": (write_empty, "empty"),
    "unknown op": (write_unknown_op, "Frobnicate"),
    "cycle": (write_cycle, "cycle: "),
    "no external data": (write_without_external_data, "weights.bin"),
}

MLIR_FILES = {
    "garbage": (b"\x00\xff\x80", "not UTF-8"),
    "truncated": (b"func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n", "bad.mlir:"),
    "unknown op": (b"builtin.module {\n  braid.frobnicate\n}\n", "bad.mlir:2:3"),
    "no model": (b"builtin.module {\n}\n", "one public function"),
}


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run the command; check the form of the diagnostic, and return it."""
    before = set(Path.cwd().iterdir())
    status = main(arguments)
    out, err = capsys.readouterr()
    assert status == 1
    assert out == "" and err.count("error: ") == 1
    assert "Traceback" not in err and "internal error" not in err
    assert set(Path.cwd().iterdir()) == before, "left a file behind"
    return err


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", ONNX_FILES)
def test_onnx(command: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    write, message = ONNX_FILES[kind]
    write(Path("bad.onnx"))
    assert message in refused(capsys, command, "bad.onnx", *COMMANDS[command])


def test_sizes_of_dims_that_there_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    write_open_dims(Path("open.onnx"))
    commands = (["run", "--random"], ["bench", "--runs=1"], ["verify"], ["explain", "--memory"])
    for command, *options in commands:
        said = refused(capsys, command, "open.onnx", *options, "--at", "batch=3,width=2")
        assert re.search("--at width=2 names no open dim|there is no size 'width'", said)
        said = refused(capsys, command, "open.onnx", *options, "--at=batch=many")
        assert "--at for 'batch' is 'many', expected a size" in said
    said = refused(capsys, "run", "open.onnx", "--random", "--at=batch=3", "--at=batch=3")
    assert "--at is given twice for 'batch'" in said
    assert "--at is for kernels and the plan of memory" in refused(
        capsys, "explain", "open.onnx", "--layouts", "--at=batch=3"
    )


@pytest.mark.parametrize(
    "option", ["--at=batch={}", "--dim=batch={}", "--shape=x=1,{}", "--shape-buckets=batch=1,{}"]
)
@pytest.mark.parametrize("size", [2**63 - 1, "9" * 5000], ids=["2^63 - 1", "5000 digits"])
def test_sizes_beyond_64_bits(
    option: str, size: object, capsys: pytest.CaptureFixture[str]
) -> None:
    write_open_dims(Path("open.onnx"))
    is_of_run = "buckets" not in option
    command = ["run", "--random"] if is_of_run else ["compile", "-o", "open.braid"]
    said = refused(capsys, *command, "open.onnx", option.format(size))
    assert "expected a size below 9223372036854775807" in said


def test_open_dims_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    write_open_dims(Path("open.onnx"))
    for options in ([], ["--memory"], ["--html", "page.html"]):
        assert main(["explain", "open.onnx", *options]) == 0
    assert "arena" in capsys.readouterr().out and Path("page.html").stat().st_size


def test_sizes_that_no_memory_holds(capsys: pytest.CaptureFixture[str]) -> None:
    write_open_dims(Path("open.onnx"))
    assert main(["compile", "open.onnx", "-o", "open.braid"]) == 0
    said = refused(capsys, "run", "open.braid", "--random", "--dim", f"batch={2**62}")
    assert "input 'x'" in said and "does not fit in memory" in said


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "import"])
@pytest.mark.parametrize("kind", MLIR_FILES)
def test_mlir(command: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    text, message = MLIR_FILES[kind]
    Path("bad.mlir").write_bytes(text)
    assert message in refused(capsys, command, "bad.mlir", *COMMANDS[command])


@pytest.mark.parametrize("command", COMMANDS)
def test_missing_and_unknown_files(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = COMMANDS[command]
    assert "No such file" in refused(capsys, command, "none.onnx", *options)
    assert "No such file" in refused(capsys, command, "none.mlir", *options)
    assert "expected a model" in refused(capsys, command, "model.txt", *options)


@pytest.mark.parametrize("command", ["run", "bench"])
def test_more_than_the_memory(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    proto = model([helper.make_node("Relu", ["x"], ["y"])])
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    proto.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(proto, "open.onnx")
    shape = f"x={10**15},3"  # more than can be addressed
    assert "out of memory" in refused(
        capsys, command, "open.onnx", "--shape", shape, *COMMANDS[command]
    )


@pytest.mark.parametrize("command", ["run", "bench"])
def test_artifacts(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = COMMANDS[command]
    assert "No such file" in refused(capsys, command, "none.braid", *options)
    Path("bad.braid").write_bytes(b"BRAIDART")
    assert "is not a braid artifact: shorter than its header" in refused(
        capsys, command, "bad.braid", *options
    )
    assert "cannot be interpreted" in refused(capsys, command, "bad.braid", "--interpret", *options)


def save_arrays() -> None:
    np.save("x.npy", np.ones((2, 3), np.float32))
    np.save("long.npy", np.ones((2, 4), np.float32))
    np.save("double.npy", np.ones((2, 3)))
    Path("text.npy").write_text("no array")


@pytest.mark.parametrize("command", ["run", "bench", "verify"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("z=x.npy", "no input 'z'"),
        ("x=long.npy", "shape (2, 4), expected (2, 3)"),
        ("x=double.npy", "dtype float64, expected float32"),
        ("x=none.npy", "cannot read 'none.npy'"),
        ("x=text.npy", "'text.npy' is not a .npy file"),
        ("x.npy", "expected NAME=VALUE"),
    ],
)
def test_inputs(command: str, value: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    save_arrays()
    onnx.save(good(), "good.onnx")
    arguments = [command, "good.onnx", "--interpret", "--input", value]
    assert message in refused(capsys, *arguments)


def test_a_missing_input(capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(good(), "good.onnx")
    err = refused(capsys, "run", "good.onnx", "--interpret")
    assert "no value for input 'x'" in err
    assert "--input x=FILE gives one, --random takes random ones" in err


def test_an_input_given_twice(capsys: pytest.CaptureFixture[str]) -> None:
    save_arrays()
    onnx.save(good(), "good.onnx")
    twice = ["--input", "x=x.npy", "--input", "x=x.npy"]
    assert "given twice" in refused(capsys, "run", "good.onnx", "--interpret", *twice)


@pytest.mark.parametrize(
    "encoding", ["", ', #braid.sizes<["n"]>', ', #braid.sized_layout<"ba", ["n"]>']
)
def test_random_values_have_likely_sizes(encoding: str, tmp_path: Path) -> None:
    type, model = f"tensor<?x8xf32{encoding}>", tmp_path / "open.mlir"
    model.write_text(f"func.func @main(%x: {type}) -> {type} {{ return %x : {type} }}")
    assert main(["run", str(model), "--random", "--interpret"]) == 0
    assert main(["run", str(model), "--random"]) == 0


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("x", "expected NAME=VALUE"),
        ("x=2,a", "expected sizes separated by commas"),
        ("z=2,3", "no input 'z'"),
        ("x=2,4", "expected [2, 3]"),
    ],
)
def test_shapes(shape: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(good(), "good.onnx")
    assert message in refused(capsys, "import", "good.onnx", "--shape", shape)


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["run"],
        ["run", "good.onnx", "--frobnicate"],
        ["bench", "good.onnx", "--runs", "many"],
        ["compile", "good.onnx", "--emit", "poetry"],
    ],
)
def test_command_lines(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "--help" in refused(capsys, *arguments)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments",
    [
        ["import", "-o", "/dev/full"],
        ["compile", "-o", "/dev/full"],
        ["compile", "-o", "out.braid", "--memory-json", "/dev/full"],
        ["compile", "--emit=so", "-o", "out.so", "--memory-json", "/dev/full"],
        ["simulate", "-o", "out.bin", "--html", "/dev/full"],
    ],
)
def test_a_full_disk_leaves_nothing(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(good(), "good.onnx")
    command, *options = arguments
    err = refused(capsys, command, "good.onnx", *options)
    assert "cannot write '/dev/full': No space left on device" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["import", "-o", "none/out"],
        ["compile", "-o", "none/out"],
        ["compile", "--memory-json", "none/out"],
        ["compile", "--target=npu-small", "-o", "none/out"],
        ["run", "--profile", "none/out"],
        ["explain", "--html", "none/out"],
        ["simulate", "-o", "none/out"],
        ["simulate", "--html", "none/out"],
        ["reduce", "--command=true", "-o", "none/out"],
    ],
)
def test_an_output_that_cannot_be_made_is_found_before_any_work(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command, *options = arguments
    err = refused(capsys, command, "no-such-model.onnx", *options)
    assert "cannot write 'none/out': No such file or directory" in err


def test_a_directory_that_cannot_be_made(capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").touch()
    err = refused(capsys, "run", "none.onnx", "--output-dir", "file/deep/out")
    assert "cannot make the directory 'file/deep/out': '" in err and "file' is a file" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["import", "-o"],
        ["compile", "-o"],
        ["compile", "--memory-json"],
        ["compile", "--emit=so", "-o"],
        ["run", "--random", "--profile"],
        ["run", "--random", "--trace"],
        ["explain", "--html"],
        ["explain", "--trace"],
        ["simulate", "-o"],
    ],
)
def test_a_model_is_not_overwritten(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(good(), "good.onnx")
    before = Path("good.onnx").read_bytes()
    Path("link.onnx").symlink_to("good.onnx")
    command, *options = arguments
    for name in ("./good.onnx", "link.onnx"):
        err = refused(capsys, command, "good.onnx", *options, name)
        assert f"'{Path(name)}' is the model, and would be overwritten" in err
    assert Path("good.onnx").read_bytes() == before


@pytest.mark.parametrize("name", [".", "/"])
def test_a_model_is_no_directory(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is a directory, expected a model" in refused(capsys, "compile", name)


@pytest.mark.parametrize("command", ["run", "verify", "bench"])
def test_a_seed_is_not_negative(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(good(), "good.onnx")
    assert "--seed" in refused(capsys, command, "good.onnx", "--seed", "-1")


def test_a_time_limit_ends_the_interpreter(capsys: pytest.CaptureFixture[str]) -> None:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["d"], ["d2"]),
            helper.make_node("Neg", ["v"], ["w"]),
        ],
        "b",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("d", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [2, 3]),
        ],
        [
            helper.make_tensor_value_info("d2", TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [2, 3]),
        ],
    )
    count = numpy_helper.from_array(np.array(2**62), "k")
    loop = helper.make_node("Loop", ["k", "", "x"], ["y"], body=body)
    onnx.save(model([loop], initializer=[count]), "loop.onnx")
    arguments = ["run", "loop.onnx", "--random", "--interpret", "--time-limit", "0.5"]
    assert "the run takes longer than 0.5 s" in refused(capsys, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["compile", "-o", "out", "--memory-json", "./out"],
        ["compile", "--emit=so", "-o", "library.h"],
        ["import", "-o", "out.safetensors"],
        ["simulate", "-o", "out", "--html", "out"],
    ],
)
def test_two_outputs_of_one_name(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    command, *options = arguments
    err = refused(capsys, command, "no-such-model.onnx", *options)
    assert "two outputs would be written to '" in err


def test_a_profile_that_nobody_counted_leaves_no_outputs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    onnx.save(good(), "good.onnx")
    options = ["--interpret", "--random", "--output-dir", "out", "--profile", "out.json"]
    assert "no profile counters" in refused(capsys, "run", "good.onnx", *options)


def test_outputs_whose_files_have_one_name(capsys: pytest.CaptureFixture[str]) -> None:
    proto = model(
        [helper.make_node("Relu", ["x"], ["a/b"]), helper.make_node("Neg", ["x"], ["a:b"])]
    )
    del proto.graph.output[:]
    for name in ("a/b", "a:b"):
        proto.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]))
    onnx.save(proto, "good.onnx")
    options = ["--interpret", "--random", "--output-dir", "out"]
    assert "'a:b'" in refused(capsys, "run", "good.onnx", *options)


def test_weights_that_do_not_fit_leave_no_module(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("braid.frontends.parameters.write_parameters", fail)
    weights = [
        numpy_helper.from_array(np.arange(30, dtype=np.float32).reshape(3, 10), "u"),
        numpy_helper.from_array(np.arange(30, dtype=np.float32).reshape(10, 3), "v"),
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "u"], ["h"]),
        helper.make_node("MatMul", ["h", "v"], ["y"]),
    ]
    proto = model(nodes, initializer=weights)
    onnx.save(proto, "good.onnx")
    err = refused(capsys, "import", "good.onnx", "-o", "out.mlir")
    assert "No space left" in err


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_without_standard_files(closed: tuple[int, ...]) -> None:
    """Files that are opened later do not take their places."""
    Path("model.mlir").write_text(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"
    )
    close = "; ".join(f"os.close({number})" for number in closed)
    command = (sys.executable, "-m", "braid.tools.cli", "import", "model.mlir")
    for arguments, expected in ((("-o", "out.mlir"), 0), ((), int(1 in closed))):
        program = f"import os; {close}; os.execv({command[0]!r}, {(*command, *arguments)!r})"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert done.returncode == expected, done.stderr
        assert "internal error" not in done.stderr
    assert Path("out.mlir").read_text().count("func.func") == 1
