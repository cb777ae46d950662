"""Typical mistakes: each message has the place, the expected and actual values, and the way out.

They are messages of Python: no options of a command line, and no names from inside of braid. Those
with PyTorch are in `test_torch_mistakes.py`.
"""

import copy
import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import onnx.parser
import pytest

import braid
from braid import onnxruntime as ort

Call = Callable[["Bench"], object]

SCALED = """<ir_version: 10, opset_import: ["": 18]>
scaled (float[2,3] image, float[3] scale) => (float[2,3] y) { y = Mul(image, scale) }"""
OPEN = """<ir_version: 10, opset_import: ["": 18]>
open (float[batch,3] image) => (float[batch,3] y) { y = Relu(image) }"""
RESHAPED = """<ir_version: 10, opset_import: ["": 18]>
reshaped (float[batch,4] x, int64[2] shape) => (float[a,b] y) { y = Reshape(x, shape) }"""
COMPUTED = """<ir_version: 10, opset_import: ["": 18]>
computed (float[batch,4] x) => (float[] y) <int64[1] flat = {-1}> {
  all = Reshape (x, flat)  shape = Cast <to = 7> (all)
  y = Expand (x, shape) }"""
IMAGE, SCALE = np.ones((2, 3), np.float32), np.ones(3, np.float32)


@dataclass(frozen=True)
class Bench:
    """Objects for mistakes: models in files of `directory`, and compiled ones."""

    directory: Path
    scaled: braid.Model
    open: braid.Model
    closed: braid.Model
    session: ort.InferenceSession

    def file(self, name: str, content: bytes = b"") -> Path:
        path = self.directory / name
        path.write_bytes(content)
        return path

    @property
    def artifact(self) -> bytes:
        return (self.directory / "scaled.braid").read_bytes()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    directory = tmp_path_factory.mktemp("mistakes")
    scaled, opened = (braid.compile(parsed(text)) for text in (SCALED, OPEN))
    closed = copy.copy(scaled)
    closed.close()
    scaled.save(directory / "scaled.braid")
    onnx.save(parsed(SCALED), directory / "scaled.onnx")
    session = ort.InferenceSession(str(directory / "scaled.onnx"))
    return Bench(directory, scaled, opened, closed, session)


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def compile(text: str, **options: Any) -> Call:
    """Compile a model with options that may not be."""
    return lambda _: braid.compile(parsed(text), **options)


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def flipped(data: bytes) -> bytes:
    """With one byte changed, in the middle of the code."""
    place = len(data) // 3
    return data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :]


COMPILING: dict[str, tuple[Call, str]] = {
    "no model": (lambda _: braid.compile(cast(Any, None)), r"from a NoneType\nhint: give the path"),
    "a dictionary": (
        lambda _: braid.compile(cast(Any, {})),
        r"from a dict\nhint: give the path of",
    ),
    "a file that is not there": (
        lambda b: braid.compile(b.directory / "scalde.onnx"),
        r"cannot read '.*/scalde.onnx': No such file.*\nhint: did you mean 'scaled.onnx'\?",
    ),
    "a directory that is not there": (
        lambda b: braid.compile(b.directory / "models" / "scaled.mlir"),
        r"cannot read .*\nhint: there is no directory '.*/models'",
    ),
    "an empty file": (
        lambda b: braid.compile(b.file("empty.onnx")),
        r"empty.onnx: error: the file is empty\nhint: export the model again",
    ),
    "no ONNX": (
        lambda b: braid.compile(b.file("html.onnx", b"<!doctype html>")),
        r"html.onnx: error: not an ONNX model: .*\nhint: export the model again",
    ),
    "a file of PyTorch": (
        lambda b: braid.compile(b.file("net.pt")),
        r"net.pt' is a '.pt' file, expected a model: .onnx or .mlir\nhint: braid.from_torch takes",
    ),
    "an artifact": (
        lambda b: braid.compile(b.directory / "scaled.braid"),
        r"'.braid' file, expected a model.*\nhint: artifacts .* are loaded with braid.load",
    ),
    "text of a module": (
        lambda _: braid.compile("func.func @main() {\n  return\n}"),
        r"expected a model.*\nhint: the text of a module is given as bytes: text.encode\(\)",
    ),
    "a misspelled option": (
        compile(SCALED, shape={"image": (2, 3)}),
        r"braid.compile has no option 'shape'\nhint: did you mean 'shapes'\?",
    ),
    "an option by position": (
        lambda _: cast(Any, braid.compile)(parsed(SCALED), "host"),
        r"braid.compile takes a model, and options by keyword; .* 1 more.*\nhint: .* target=.host.",
    ),
    "an unknown target": (
        compile(SCALED, target="hots"),
        r"there is no target 'hots'\nhint: did you mean 'host'\?",
    ),
    "a target that is a number": (
        compile(SCALED, target=5),
        r"target is 5, expected the name of a target.*\nhint: such as target=.host.",
    ),
    "a misspelled setting": (
        compile(SCALED, numerics="strickt"),
        r"numerics are 'strickt', expected one of strict, fast\nhint: did you mean 'strict'",
    ),
    "shapes of another input": (
        compile(OPEN, shapes={"imgae": (1, 3)}),
        r"no input 'imgae' to give a shape to\nhint: did you mean 'image'",
    ),
    "shapes of another rank": (
        compile(OPEN, shapes={"image": (1, 3, 3)}),
        r"'image' was given shape \[1, 3, 3\], expected \[batch, 3\]\nhint: the model fixes",
    ),
    "a negative size": (
        compile(OPEN, shapes={"image": (-1, 3)}),
        r"shape of 'image' is \(-1, 3\), expected a list of sizes of at least 0\nhint: such as",
    ),
    "shapes without names": (
        compile(OPEN, shapes=(1, 3)),
        r"shapes is \(1, 3\), expected a shape by each input's name\nhint: such as shapes=\{",
    ),
    "an unknown dim": (
        compile(OPEN, dims={"bacth": 1}),
        r"the model has no open dim 'bacth'\nhint: did you mean 'batch'",
    ),
    "a size that is no whole number": (
        compile(OPEN, dims={"batch": 2.5}),
        r"size of dim 'batch' is 2.5, expected a number of at least 0.*\nhint: such as dims=\{",
    ),
    "dims without sizes": (
        compile(OPEN, dims=["batch"]),
        r"dims is \['batch'\], expected a size by the name of each dim\nhint: such as dims=\{",
    ),
    "buckets without names": (
        compile(OPEN, shape_buckets=[1, 2]),
        r"shape_buckets is \[1, 2\], expected sizes by the name.*\nhint: such as shape_buckets=\{",
    ),
    "buckets of another dim": (
        compile(OPEN, shape_buckets={"bach": [1, 2]}),
        r"no open dim 'bach'\nhint: did you mean 'batch'",
    ),
    "a bound below 1": (
        compile(OPEN, shape_bounds={"batch": -3}),
        r"the bound of dim 'batch' is -3, expected a size of at least 1\nhint: such as",
    ),
    "a value of another input": (
        compile(RESHAPED, constants={"shpae": [1, 4]}),
        r"no input 'shpae' to give a value to\nhint: did you mean 'shape'",
    ),
    "a value of another type": (
        compile(RESHAPED, constants={"shape": [1.5, 2.5]}),
        r"value of input 'shape' has element type float64, expected int64\nhint: convert it",
    ),
    "a value of another shape": (
        compile(SCALED, constants={"image": 1.0}),
        r"value of input 'image' has shape \[\], expected \[2, 3\]\nhint: give constants an array",
    ),
    "a rank that depends on data": (
        compile(COMPUTED),
        r"node 'y' \(Expand\): input 1 \('shape'\) is computed.*expected a constant\nhint: give",
    ),
    "threads below 0": (
        compile(SCALED, threads=-1),
        r"threads is -1, expected at least 0\nhint: 0 stands for all CPUs",
    ),
    "threads as text": (compile(SCALED, threads="4"), r"threads is '4', expected a whole number"),
    "a budget that is no size": (
        compile(SCALED, memory_budget="lots"),
        r"the memory budget 'lots' is not a size; write bytes, or a unit as in 64MiB",
    ),
    "a threshold that is no number": (
        compile(SCALED, untuned_seconds=float("nan")),
        r"untuned_seconds is nan, expected a number of seconds",
    ),
    "an unknown pass": (
        compile(SCALED, passes="default,canonicalise"),
        r"<pass-pipeline>:1:9: error: unknown pass 'canonicalise'\nhint: did you mean .*canonical",
    ),
    "a pass like no other": (
        compile(SCALED, passes="nope"),
        r"unknown pass 'nope'\nhint: such as 'canonicalize,cse'",
    ),
    "a flag that is text": (
        compile(SCALED, cache="yes"),
        r"cache is 'yes', expected True or False",
    ),
}

CALLING: dict[str, tuple[Call, str]] = {
    "an input is missing": (
        lambda b: b.scaled(IMAGE),
        r"no value for input 'scale'\nhint: the inputs are 'image', 'scale'",
    ),
    "an input too many": (
        lambda b: b.scaled(IMAGE, SCALE, SCALE),
        r"the model has 2 inputs, got 3 positional arguments\nhint: the inputs are",
    ),
    "a misspelled input": (
        lambda b: b.scaled(IMAGE, scal=SCALE),
        r"the model has no input 'scal'\nhint: did you mean 'scale'",
    ),
    "an input twice": (
        lambda b: b.scaled(IMAGE, SCALE, image=IMAGE),
        r"input 'image' is given by position and by name\nhint: give it once",
    ),
    "None": (
        lambda b: b.scaled(IMAGE, None),
        r"input 'scale' is None, expected an array of float32\nhint: ",
    ),
    "text": (
        lambda b: b.scaled("image.png", SCALE),
        r"input 'image' is a str .*\nhint: give a num",
    ),
    "another type": (
        lambda b: b.scaled(IMAGE.astype(np.float64), SCALE),
        r"input 'image' has dtype float64, expected float32\nhint: convert it with .astype",
    ),
    "dims in another order": (
        lambda b: b.scaled(IMAGE.T, SCALE),
        r"input 'image' has shape \(3, 2\), expected \(2, 3\)\nhint: .*transpose it",
    ),
    "a flat array": (
        lambda b: b.scaled(IMAGE.ravel(), SCALE),
        r"input 'image' has shape \(6,\), expected \(2, 3\)\nhint: .*reshape\(\(2, 3\)\)",
    ),
    "no batch": (
        lambda b: b.open(SCALE),
        r"input 'image' has shape \(3,\), expected \(batch, 3\)\nhint: add the first dim: x",
    ),
    "another size": (
        lambda b: b.scaled(np.ones((2, 4), np.float32), SCALE),
        r"input 'image' has shape \(2, 4\), expected \(2, 3\)\nhint: .*compile it again",
    ),
    "run with one array": (
        lambda b: b.scaled.run(cast(Any, IMAGE)),
        r"inputs are a ndarray, expected a sequence in the model's order\nhint: such as \[x\]",
    ),
    "a buffer of another shape": (
        lambda b: b.scaled(IMAGE, SCALE, out=np.empty((2, 4), np.float32)),
        r"buffer for output 'y' has shape \(2, 4\), expected \(2, 3\)\nhint: give np.empty",
    ),
    "a buffer of another type": (
        lambda b: b.scaled(IMAGE, SCALE, out=np.empty((2, 3))),
        r"buffer for output 'y' has dtype float64, expected float32\nhint: give np.empty",
    ),
    "a buffer that is read-only": (
        lambda b: b.scaled(IMAGE, SCALE, out=read_only(np.empty((2, 3), np.float32))),
        r"buffer for output 'y' is not .*writeable\nhint: give an array as np.empty",
    ),
    "a buffer of another name": (
        lambda b: b.scaled(IMAGE, SCALE, out={"z": IMAGE}),
        r"buffers are given for 'z', expected one for each output: 'y'\nhint: a mapping",
    ),
    "buffers too many": (
        lambda b: b.scaled(IMAGE, SCALE, out=[IMAGE, IMAGE]),
        r"the model has 1 output, got 2 buffers\nhint: give an array for each of 'y'",
    ),
    "a closed model": (lambda b: b.closed(IMAGE, SCALE), r"the model is closed\nhint: .*load it"),
    "threads of a closed model": (
        lambda b: b.closed.threads,
        r"the model is closed\nhint: compile it or load it again; .*only inputs, outputs",
    ),
    "a pickle of a closed model": (
        lambda b: pickle.dumps(b.closed),
        r"the model is closed\nhint: .*load it again",
    ),
    "threads of a model": (
        lambda b: setattr(b.scaled, "threads", -2),
        r"threads is -2, expected at least 0\nhint: 0 stands for all CPUs",
    ),
    "a stream of a number": (
        lambda b: list(b.scaled.stream(cast(Any, 5))),
        r"requests are of type int, expected an iterable\nhint: each request is",
    ),
    "to save to nowhere": (
        lambda b: b.scaled.save(b.directory / "no" / "m.braid"),
        r"cannot write '.*/no/m.braid': No such file.*\nhint: make the directory",
    ),
    "to save without a name": (
        lambda b: b.scaled.save(cast(Any, None)),
        r"Model.save takes the path of a .braid file, got NoneType\nhint: such as",
    ),
    "a C library without a name": (
        lambda b: b.scaled.save_c_library(cast(Any, None)),
        r"Model.save_c_library takes the path of a .so file, got NoneType\nhint: such as",
    ),
    "a misspelled argument of a method": (
        lambda b: cast(Any, b.scaled).save(pth="m.braid"),
        r"Model.save has no option 'pth'\nhint: did you mean 'path'\?",
    ),
    "a method without its argument": (
        lambda b: cast(Any, b.scaled).save(),
        r"Model.save was not given 'path'\nhint: it takes path",
    ),
    "to save what is interpreted": (
        lambda b: braid.interpret(parsed(SCALED)).save(b.directory / "i.braid"),
        r"an interpreted model has no code to save\nhint: use braid.compile",
    ),
}

LOADING: dict[str, tuple[Call, str]] = {
    "no artifact there": (
        lambda b: braid.load(b.directory / "scaledd.braid"),
        r"cannot open .*scaledd.braid': No such file.*\nhint: did you mean 'scaled.braid'",
    ),
    "a model": (
        lambda b: braid.load(b.directory / "scaled.onnx"),
        r"scaled.onnx' is not a braid artifact.*\nhint: use braid.compile",
    ),
    "other text": (
        lambda b: braid.load(b.file("text.braid", b"hello")),
        r"text.braid' is not a braid artifact: .*\nhint: compile the model again",
    ),
    "half an artifact": (
        lambda b: braid.load(b.file("half.braid", b.artifact[: len(b.artifact) // 2])),
        r"half.braid' is not .*truncated: expected at least \d+ bytes.*\nhint: compile the model",
    ),
    "a damaged artifact": (
        lambda b: braid.load(b.file("flip.braid", flipped(b.artifact))),
        r"flip.braid' is .*digest.*\nhint: compile the model again",
    ),
    "bytes": (
        lambda b: braid.load(cast(Any, b.artifact)),
        r"braid.load takes the path of a .braid file, got bytes\nhint: braid.compile takes models",
    ),
}

ARGUMENTS: dict[str, tuple[Call, str]] = {
    "an option that loading has not": (
        lambda b: cast(Any, braid.load)(b.directory / "scaled.braid", foo=1),
        r"braid.load has no option 'foo'\nhint: its options are path, threads, emulate",
    ),
    "a misspelled option of loading": (
        lambda b: cast(Any, braid.load)(b.directory / "scaled.braid", thread=2),
        r"braid.load has no option 'thread'\nhint: did you mean 'threads'\?",
    ),
    "an option of loading by position": (
        lambda b: cast(Any, braid.load)(b.directory / "scaled.braid", 2),
        r"braid.load takes 1 argument by position, it was given 2\nhint: give threads, emulate by",
    ),
    "a path by position and by name": (
        lambda b: cast(Any, braid.load)("a.braid", path="b.braid"),
        r"braid.load was given 'path' by position and by keyword\nhint: give it once",
    ),
    "nothing to load": (
        lambda _: cast(Any, braid.load)(),
        r"braid.load was not given 'path'\nhint: it takes path, threads, emulate",
    ),
    "nothing to compile": (
        lambda _: cast(Any, braid.compile)(),
        r"braid.compile was not given 'source'\nhint: it takes source, target",
    ),
    "an option that interpreting has not": (
        lambda _: cast(Any, braid.interpret)(parsed(SCALED), threads=2),
        r"braid.interpret has no option 'threads'\nhint: its options are source, shapes",
    ),
    "passes without a pipeline": (
        lambda _: cast(Any, braid.run_passes)(None),
        r"braid.run_passes was not given 'pipeline'\nhint: it takes module, pipeline",
    ),
    "a misspelled argument of passes": (
        lambda _: cast(Any, braid.run_passes)(None, pipelin="cse"),
        r"braid.run_passes has no option 'pipelin'\nhint: did you mean 'pipeline'\?",
    ),
    "two contexts": (
        lambda _: cast(Any, braid.load_irdl)(None, None),
        r"braid.load_irdl takes 1 argument by position, it was given 2\nhint: it takes context",
    ),
    "a misspelled argument of a client": (
        lambda _: cast(Any, braid.Client)("http://127.0.0.1:9", tokn="t"),
        r"Client has no option 'tokn'\nhint: did you mean 'token'\?",
    ),
    "inputs of a client without names": (
        lambda _: braid.Client("http://127.0.0.1:9").run("t", cast(Any, np.ones(3))),
        r"Client.run takes inputs by name, got ndarray\nhint: such as client.run",
    ),
    "a model of a client that is none": (
        lambda _: braid.Client("http://127.0.0.1:9").submit(cast(Any, None)),
        r"Client.submit takes the path of an .onnx or .mlir file, got NoneType\nhint: such as",
    ),
}

SERVICES: dict[str, tuple[Call, str]] = {
    "no URL": (
        lambda _: braid.Client("localhost:8017"),
        r"'localhost:8017' is not the address of a server\nhint: such as http://localhost:8017",
    ),
    "None for a URL": (
        lambda _: braid.Client(cast(Any, None)),
        r"address.* is not a URL\nhint: su",
    ),
    "no server": (
        lambda _: braid.Client("http://127.0.0.1:9").task("t"),
        r"the server at 'http://127.0.0.1:9' cannot be reached: .*\nhint: `braid serve` starts one",
    ),
    "a model that is not there": (
        lambda b: braid.Client("http://127.0.0.1:9").submit(b.directory / "scale.onnx"),
        r"cannot read '.*scale.onnx': No such file.*\nhint: did you mean 'scaled.onnx'",
    ),
    "an unknown provider": (
        lambda b: ort.InferenceSession(
            str(b.directory / "scaled.onnx"), providers=["CPUExecutonProvider"]
        ),
        r"no execution provider 'CPUExecutonProvider'\nhint: did you mean 'CPUExecutionProvider'",
    ),
    "an unknown option of sessions": (
        lambda _: setattr(ort.SessionOptions(), "intra_op_num_thread", 2),
        r"SessionOptions has no option 'intra_op_num_thread'\nhint: did you mean 'intra_op_num_t",
    ),
    "an unknown argument of a session": (
        lambda b: ort.InferenceSession(str(b.directory / "scaled.onnx"), provider=["x"]),
        r"InferenceSession has no argument 'provider'\nhint: did you mean 'providers'",
    ),
    "an unknown output": (
        lambda b: b.session.run(["z"], {"image": IMAGE, "scale": SCALE}),
        r"Invalid output name:z\nhint: the outputs are y",
    ),
    "a feed without an input": (
        lambda b: b.session.run(None, {"image": IMAGE}),
        r"Required inputs \(\['scale'\]\) are missing.*\nhint: the inputs are image, scale",
    ),
    "a feed of another type": (
        lambda b: b.session.run(None, {"image": IMAGE.astype(np.float64), "scale": SCALE}),
        r"Actual: \(tensor\(double\)\) , expected: \(tensor\(float\)\)\nhint: convert input",
    ),
    "a feed that is a list": (
        lambda b: b.session.run(None, cast(Any, [IMAGE, SCALE])),
        r"input_feed is a list, expected a mapping of names to arrays\nhint: such as \{'image': x",
    ),
    "a binding of an unknown output": (
        lambda b: b.session.io_binding().bind_output("z"),
        r"NodeArg with name: z .*\nhint: the model has y",
    ),
}

ENVIRONMENT = {
    "numerics": (
        "BRAID_NUMERICS",
        "quick",
        r"BRAID_NUMERICS .*'quick', expected one of strict, fas",
    ),
    "precision": (
        "BRAID_PRECISION",
        "int4",
        r"BRAID_PRECISION .*'int4', expected one of model, bf",
    ),
    "records": (
        "BRAID_RECORDS",
        "records.db",
        r"'records.db:…' is not.*\nhint: BRAID_RECORDS is sq",
    ),
    "a database": (
        "BRAID_RECORDS",
        "mysql://u@h/x",
        r"databases of 'mysql'\nhint: BRAID_RECORDS is",
    ),
}

ALL = COMPILING | CALLING | LOADING | ARGUMENTS | SERVICES
MISTAKES, NAMES = [*ALL.values()], [*ALL]


def message_of(call: Callable[[], object], expected: str) -> str:
    """Return the message about the mistake, which contains `expected`."""
    with pytest.raises(braid.BraidError) as caught:
        call()
    message = str(caught.value)
    assert re.search(expected, message), message
    # Neither options of commands nor names from inside.
    assert not re.search(r"(^|[\s`('])--?[a-z]", message), message
    assert not re.search(r"__init__|\.py\b|Traceback|0x[0-9a-f]{6}|<lambda>", message), message
    return message


@pytest.mark.parametrize(("call", "expected"), MISTAKES, ids=NAMES)
def test_a_mistake_is_told(bench: Bench, call: Call, expected: str) -> None:
    message_of(lambda: call(bench), expected)


@pytest.mark.parametrize("name", ENVIRONMENT)
def test_nonsense_in_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variable, value, expected = ENVIRONMENT[name]
    monkeypatch.setenv(variable, value)
    message_of(lambda: braid.compile(parsed(SCALED), cache=False), expected)


def test_most_messages_tell_the_way_out() -> None:
    told = [expected for _, expected in MISTAKES if "hint: " in expected]
    assert len(MISTAKES) >= 60 and len(told) >= 0.9 * len(MISTAKES)
