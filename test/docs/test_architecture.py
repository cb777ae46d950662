"""The tables of `docs/architecture.md`: files exist, and steps are called in their order."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

import braid

ROOT = Path(braid.__file__).resolve().parents[1]
Step = tuple[str, str]
"""A file, and the qualified name of a function in it."""

TRACED = {
    "A Conv's way from ONNX to machine code": "conv",
    "A layout decision's way": "conv",
    "A setting's way": "conv",
    "A request's sizes": "rows",
}
"""Walks by the model that is compiled; `test_cost_path.py` of the targets traces another walk."""


def walks() -> dict[str, list[Step]]:
    """Return the steps of each walk by its heading: rows of a table with a file and a function."""
    found: dict[str, list[Step]] = {}
    for title, section in re.findall(r"^## ([^\n]+)\n((?:(?!^## ).*\n?)*)", text(), re.M):
        if steps := re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", section, re.M):
            found[title] = steps
    return found


def text(page: str = "docs/architecture.md") -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def functions(tree: ast.AST, prefix: str = "") -> Iterator[str]:
    """Return the qualified names of all functions of a file."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")


def defines(path: Path, name: str) -> bool:
    """Return whether a file of Python or C defines the function `name`."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".c":
        pattern = rf"^[a-z][\w *]*\b{name}\([^;{{]*\)\s*{{"
        return re.search(pattern, source, re.M) is not None
    return name in functions(ast.parse(source))


def test_each_step_is_a_function() -> None:
    shown = walks()
    assert {*TRACED, "One kernel's seconds"} == shown.keys()
    for title, steps in shown.items():
        for file, name in steps:
            assert (ROOT / file).is_file(), f"{title}: there is no {file}"
            assert defines(ROOT / file, name), f"{title}: no {name} in {file}"


def test_files_that_are_named_exist() -> None:
    named = re.findall(r"`([a-z][\w./-]*/[\w.-]*)`", text())
    assert len(named) > 100 and [path for path in named if not (ROOT / path).exists()] == []


def test_the_picture_shows_all_packages() -> None:
    shown = set(re.findall(r">([\w/, ]+)</text>", text("docs/pictures/packages.svg")))
    names = {name for each in shown for name in each.split(", ")}
    linked = {path.name for path in (ROOT / "braid").iterdir() if path.is_symlink()}
    assert len(linked) > 8 and linked <= names
    assert {"braid", "braid/driver", "braid/onnxruntime"} <= names


def conv() -> ModelProto:
    weight = np.random.default_rng(0).standard_normal((16, 16, 3, 3)).astype(np.float32)
    nodes = [
        make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        make_node("Relu", ["a"], ["y"]),
    ]
    x, y = (make_tensor_value_info(n, TensorProto.FLOAT, [1, 16, 14, 14]) for n in "xy")
    graph = make_graph(nodes, "conv", [x], [y], [numpy_helper.from_array(weight, "w")])
    return make_model(graph, opset_imports=[make_opsetid("", 17)], ir_version=8)


def rows() -> ModelProto:
    """Return a matmul with any number of rows."""
    weight = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
    nodes = [make_node("MatMul", ["x", "w"], ["y"])]
    x = make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])
    y = make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 16])
    graph = make_graph(nodes, "rows", [x], [y], [numpy_helper.from_array(weight, "w")])
    return make_model(graph, opset_imports=[make_opsetid("", 17)], ir_version=8)


def compilation(model: str) -> list[Step]:
    """Each function that is called, as a model is compiled and run, in the order of first calls."""
    calls: dict[Step, None] = {}
    files: dict[str, str] = {}
    root = f"{ROOT}{os.sep}"

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call":
            if code.co_filename not in files:
                files[code.co_filename] = os.path.realpath(code.co_filename).removeprefix(root)
            calls.setdefault((files[code.co_filename], code.co_qualname))

    sys.setprofile(note)
    try:
        if model == "conv":
            braid.compile(conv(), jobs=1, numerics="strict")
        else:
            braid.compile(rows(), jobs=1)(np.ones((3, 8), np.float32))
    finally:
        sys.setprofile(None)
    return list(calls)


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[Step, int]]:
    """Return the position of each function's first call, in a process without any family yet."""

    @cache
    def trace(model: str) -> dict[Step, int]:
        environment = {**os.environ, "BRAID_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}
        command = [sys.executable, __file__, model]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return {(file, name): place for place, (file, name) in enumerate(json.loads(done.stdout))}

    return trace


@pytest.mark.parametrize("title", TRACED)
def test_steps_are_called_in_their_order(
    title: str, called: Callable[[str], dict[Step, int]]
) -> None:
    places = called(TRACED[title])
    steps = [step for step in walks()[title] if not step[0].endswith(".c")]
    assert [step for step in steps if step not in places] == []
    assert steps == sorted(steps, key=lambda step: places[step])


if __name__ == "__main__":
    print(json.dumps(compilation(sys.argv[1])))
