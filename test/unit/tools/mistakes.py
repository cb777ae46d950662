"""Typical mistakes on the command line of `braid`, and the files that they are made with.

Each says what the diagnostic must have: where it is wrong, what was expected, what was found, and
the way out. A text may offer several words, separated by `|`.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclass(frozen=True)
class Mistake:
    """A command line, and what is said of it."""

    line: str
    where: str
    expected: str
    found: str
    way_out: str


def _m(line: str, where: str, expected: str, found: str, way_out: str) -> Mistake:
    return Mistake(line, where, expected, found, way_out)


MISTAKES = (
    # Commands and options.
    _m("complie good.onnx", "complie", "compile", "No such command", "Did you mean 'compile'"),
    _m("compile", "MODEL", "argument", "Missing", "compile --help"),
    _m("compile good.onnx good.onnx", "good.onnx", "extra", "unexpected", "compile --help"),
    _m("compile good.onnx --ouput x", "--ouput", "--output", "No such option", "--output"),
    _m("compile good.onnx -o", "-o", "requires an argument", "-o", "compile --help"),
    _m("bench good.onnx --runs many", "--runs", "integer", "many", "bench --help"),
    _m("bench good.onnx --runs 0", "--runs", "greater than or equal to 1", "0", "bench --help"),
    _m("bench good.onnx --runs -3", "--runs", "greater than or equal to 1", "-3", "bench --help"),
    _m("run good.onnx --random --seed 1.5", "--seed", "integer", "1.5", "run --help"),
    _m("verify good.onnx --tolerance few", "--tolerance", "number", "few", "verify --help"),
    _m(
        "verify good.onnx --tolerance nan",
        "--tolerance",
        "greater than or equal to 0",
        "nan",
        "verify --help",
    ),
    _m("compile good.onnx --shape x", "--shape", "NAME=VALUE", "'x'", "--shape x=8"),
    _m("inspect good.onnx --json out.json", "out.json", "takes no file", "unexpected", "> FILE"),
    _m("inspect good.onnx -q -v", "-q and -v", "exclude", "-v", "one of them"),
    _m("cache shwo", "shwo", "show", "No such command", "Did you mean 'show'"),
    _m("profile merge -o p.json", "FILE", "argument", "Missing", "profile merge --help"),
    # Models.
    _m("compile goood.onnx", "goood.onnx", "good.onnx", "No such file", "did you mean 'good.onnx'"),
    _m("compile folder", "folder", ".onnx", "directory", ".onnx"),
    _m("compile empty.onnx", "empty.onnx", "model", "empty", "export the model again"),
    _m(
        "compile truncated.onnx",
        "truncated.onnx",
        "ONNX model",
        "truncated",
        "export the model again",
    ),
    _m("compile text.onnx", "text.onnx", "binary format", "it is text", "export"),
    _m("compile model.txt", "model.txt", ".onnx or .mlir", ".txt", ".onnx"),
    _m("compile model.pt", "model.pt", ".onnx", ".pt", "torch.onnx.export|from_torch"),
    _m("compile good.braid", "good.braid", ".onnx", "compiled already", "braid run"),
    _m("compile renamed.onnx", "renamed.onnx", ".onnx", "artifact", ".braid"),
    _m("run other.braid --random", "other.braid", "artifact", "not a braid artifact", "compile"),
    _m("run short.braid --random", "short.braid", "header|bytes", "shorter", "compile"),
    _m("run version.braid --random", "version.braid", "version", "99", "compile"),
    _m("run good.braid --interpret --random", "good.braid", "interpret", "compiled", ".onnx"),
    _m("compile odd.onnx", "odd.onnx", "op", "Frobnicate", "add"),
    _m("compile weightless.onnx", "weights.bin", "read|weights.bin", "weightless.onnx", "hint"),
    _m("compile bad.mlir", "bad.mlir:1", "Expected", "func.func @main( {", "correct the file"),
    _m("compile unreadable.onnx", "unreadable.onnx", "read", "Permission denied", "permission"),
    # Targets and what is compiled.
    _m("compile good.onnx --target hots", "hots", "host", "no target", "did you mean 'host'"),
    _m("compile good.onnx --cpu haswel", "haswel", "haswell", "no CPU", "did you mean"),
    _m("compile good.onnx --cpu haswell,+avx9", "avx9", "feature", "avx9", "did you mean|such as"),
    _m("compile good.onnx --emit poetry", "--emit", "artifact, so", "poetry", "--help"),
    _m("compile good.onnx --numerics exact", "--numerics", "fast", "exact", "fast|strict"),
    _m("compile good.onnx --precision fp16", "--precision", "bf16", "fp16", "bf16"),
    _m("compile good.onnx --kernels mine", "--kernels", "generated", "mine", "generated|best"),
    _m("compile good.onnx --untuned pray", "--untuned", "probe", "pray", "probe|tune"),
    _m(
        "compile good.onnx --memory-budget lots",
        "memory budget",
        "unit",
        "lots",
        "--memory-budget 512MiB",
    ),
    _m("compile good.onnx --memory-budget 1", "1", "B", "budget", "smallest budget"),
    _m("compile good.onnx --partition latency", "host", "several", "one device", "--target"),
    _m("compile good.onnx --pin conv", "--pin", "several", "one device", "--target"),
    _m("compile good.onnx --unseen 0.1", "--unseen", "profile", "without", "--use-profile"),
    _m("compile good.onnx --use-profile good.onnx", "good.onnx", "profile", "not", "--profile"),
    _m(
        "compile good.onnx --emit asm --memory-report",
        "--emit=artifact",
        "memory",
        "--emit=asm",
        "leave out",
    ),
    # Sizes.
    _m("compile open.onnx --shape x=2,z", "--shape", "sizes separated", "2,z", "--shape x=1,3"),
    _m("compile open.onnx --shape x", "--shape", "NAME=VALUE", "x", "--shape"),
    _m("compile open.onnx --shape z=2,3", "z", "x", "no input", "x"),
    _m(
        "compile open.onnx --shape x=2,3,4", "'x'", "[batch, 3]", "[2, 3, 4]", "expected [batch, 3]"
    ),
    _m("compile open.onnx --dim bath=2", "bath", "batch", "no", "batch"),
    _m("compile open.onnx --dim batch=-1", "--dim", "size", "-1", "--dim batch=8"),
    _m("run open.onnx --random --at batch=many", "--at", "size", "many", "--at batch=8"),
    _m("compile open.onnx --shape-bound batch=1,2", "--shape-bound", "one", "2", "--shape-buckets"),
    _m("compile open.onnx --constant x=abc", "--constant", "numbers", "abc", "--constant x=16000"),
    # Inputs.
    _m("run good.onnx", "'x'", "value", "no value", "--random"),
    _m("run good.onnx --input z=x.npy", "'z'", "x", "no input", "x"),
    _m("run good.onnx --input x.npy", "--input", "NAME=VALUE", "x.npy", "--input x=x.npy"),
    _m(
        "run good.onnx --input x=none.npy",
        "none.npy",
        "read",
        "No such file",
        "did you mean|look into",
    ),
    _m("run good.onnx --input x=text.npy", "text.npy", ".npy file", "not", "numpy.save"),
    _m("run good.onnx --input x=double.npy", "'x'", "float32", "float64", "hint"),
    _m("run good.onnx --input x=long.npy", "'x'", "(2, 3)", "(2, 4)", "expected (2, 3)"),
    # Outputs.
    _m(
        "compile good.onnx -o none/out.braid", "none/out.braid", "write", "No such file", "make the"
    ),
    _m("compile good.onnx -o folder", "folder", "write", "directory", "name a file in it"),
    _m("compile good.onnx -o good.onnx", "good.onnx", "overwritten", "model", "name of its own"),
    _m("compile good.onnx -o /dev/full", "/dev/full", "write", "No space left", "hint"),
    _m(
        "run good.onnx --random --output-dir x.npy",
        "x.npy",
        "directory",
        "file",
        "a name that is free",
    ),
    _m("import good.onnx -o - --json", "--json", "standard output", "-", "write to a file"),
    # Searching and serving.
    _m("tune good.onnx --threshold nan", "--threshold", "positive", "nan", "0.7,1.0,1.1"),
    _m("tune good.onnx --final best", "--final", "fastest", "best", "--final fastest"),
    _m(
        "tune good.onnx --space none.toml",
        "none.toml",
        "space",
        "No such file",
        "look into|did you mean",
    ),
    _m("tune good.onnx -o x.braid", "--output", "--server", "for", "without it"),
    _m("tune good.onnx --server host:1", "host:1", "address", "not", "http://"),
    _m("serve --port 99999", "--port", "65535", "99999", "serve --help"),
    _m("diff good.onnx", "good.onnx", "second model", "itself", "--b"),
    _m("diff good.onnx --b '--numerisc strict'", "--b", "--numerics", "--numerisc", "--numerics"),
    _m("simulate good.onnx --target host", "'cpu'", "chips", "no units", "hint"),
    _m("records import text.npy", "text.npy", "record", "line 1", "records export"),
)


def write_files(folder: Path) -> None:
    """Write the files that the command lines name."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])
    weight = numpy_helper.from_array(np.full((2, 3), 2, np.float32), "w")
    opset = [helper.make_opsetid("", 18)]

    def model(op: str, inputs: list[str]) -> onnx.ModelProto:
        graph = helper.make_graph([helper.make_node(op, inputs, ["y"], op)], "g", [x], [y])
        graph.initializer.append(weight)
        return helper.make_model(graph, opset_imports=opset, ir_version=9)

    good = model("Mul", ["x", "w"])
    onnx.save(good, folder / "good.onnx")
    onnx.save(model("Frobnicate", ["x"]), folder / "odd.onnx")
    onnx.save(
        good,
        folder / "weightless.onnx",
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )
    (folder / "weights.bin").unlink()
    opened = model("Relu", ["x"])
    for value in (opened.graph.input[0], opened.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(opened, folder / "open.onnx")
    data = onnx.load(folder / "good.onnx").SerializeToString()
    (folder / "truncated.onnx").write_bytes(data[:-7])
    (folder / "empty.onnx").touch()
    (folder / "text.onnx").write_text("this is no model\n" * 9)
    (folder / "model.txt").write_text("a model")
    (folder / "model.pt").write_bytes(b"PK\x03\x04")
    (folder / "bad.mlir").write_text("func.func @main( {")
    (folder / "folder").mkdir()
    subprocess.run(
        [sys.executable, "-m", "braid.tools.cli", "compile", "good.onnx"], cwd=folder, check=True
    )
    artifact = (folder / "good.braid").read_bytes()
    (folder / "renamed.onnx").write_bytes(artifact)
    (folder / "other.braid").write_bytes(data)
    (folder / "short.braid").write_bytes(artifact[:10])
    (folder / "version.braid").write_bytes(artifact[:8] + b"\x63\0\0\0" + artifact[12:])
    (folder / "unreadable.onnx").write_bytes(data)
    (folder / "unreadable.onnx").chmod(0)
    np.save(folder / "x.npy", np.ones((2, 3), np.float32))
    np.save(folder / "long.npy", np.ones((2, 4), np.float32))
    np.save(folder / "double.npy", np.ones((2, 3)))
    (folder / "text.npy").write_text("no array")


def is_superuser() -> bool:
    """Return whether permissions of files keep this process from nothing."""
    return os.geteuid() == 0
