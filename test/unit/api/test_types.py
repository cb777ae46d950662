"""A user's type checker on the public API."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
from typing import Any
import numpy as np
import braid
import braid.onnxruntime as ort

class Tensor:
    ...

model = braid.compile("model.onnx", threads=2, dims={"batch": 4}, progress=print)
reveal_type(model)  # braid.runtime.model.Model
reveal_type(model.threads)  # int
reveal_type(model.run([np.zeros(3)]))  # list[numpy.ndarray[tuple[Any, ...], numpy.dtype[Any]]]
reveal_type(model.profile()["conv"].seconds)  # float
x = np.zeros((2, 3), np.float32)
reveal_type(model(x, {"y": x}, z=1.5) is None)  # bool
array: np.ndarray[tuple[int, ...], np.dtype[np.float32]] | tuple[Any, ...] = model(x)
wrong: str = model({"x": x})  # error: Incompatible types in assignment
tensor: Tensor = model(Tensor(), out=x)
results: list[Tensor] = model.run([Tensor()])
reveal_type(model.inputs[0].shape)  # tuple[int, ...]
reveal_type(braid.load("model.braid"))  # braid.runtime.model.Model
reveal_type(braid.__version__)  # str
with braid.interpret("model.onnx") as interpreted:
    reveal_type(interpreted)  # braid.runtime.model.Model
session = ort.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
reveal_type(session.get_inputs()[0].name)  # str
reveal_type(session.io_binding())  # braid.onnxruntime.binding.IOBinding
reveal_type(braid.InferenceSession(b""))  # braid.onnxruntime.session.InferenceSession
braid.compile("model.onnx", thread=2)  # error: Unexpected keyword argument "thread"
braid.compile(3)  # error: Argument 1 to "compile" has incompatible type "int"
model.threads = "two"  # error: Incompatible types in assignment
braid.no_such_name  # error: Module has no attribute "no_such_name"
"""


@pytest.mark.slow
def test_mypy(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(program)]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    said = {
        int(line.split(":")[1]): line
        for line in result.stdout.splitlines()
        if " error: " in line or "Revealed type" in line
    }
    for number, line in enumerate(PROGRAM.splitlines(), 1):
        _, _, expected = line.partition("  # ")
        if expected.startswith("error: "):
            assert f" {expected}" in said.pop(number), line
        elif expected:
            assert f'Revealed type is "{expected}"' in said.pop(number), line
    assert not said, result.stdout


def test_the_package_says_that_it_has_types() -> None:
    assert (ROOT / "braid" / "py.typed").is_file()
