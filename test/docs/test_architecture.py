"""The pictures of `docs/architecture.md`: steps are called in the order in which they stand."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
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

TRACED = (
    "A Conv's way from ONNX to machine code",
    "A layout decision's way",
    "A setting's way",
)
"""Pictures of one compilation; `test/unit/targets/test_cost_path.py` traces the other one."""


def pictures() -> dict[str, list[Step]]:
    """The steps of each picture by its heading."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    found = re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?```text\n(.*?)```", text, re.S | re.M)
    return {title: [tuple(line.split()[:2]) for line in body.splitlines()] for title, body in found}


def functions(tree: ast.AST, prefix: str = "") -> Iterator[str]:
    """The qualified names of all functions of a file."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")


def test_each_step_is_a_function() -> None:
    shown = pictures()
    assert {*TRACED, "One kernel's seconds"} == shown.keys()
    for title, steps in shown.items():
        for file, name in steps:
            path = ROOT / file
            assert path.is_file(), f"{title}: there is no {file}"
            assert name in functions(ast.parse(path.read_text())), f"{title}: no {name} in {file}"


def conv() -> ModelProto:
    weight = np.random.default_rng(0).standard_normal((16, 16, 3, 3)).astype(np.float32)
    nodes = [
        make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        make_node("Relu", ["a"], ["y"]),
    ]
    x, y = (make_tensor_value_info(n, TensorProto.FLOAT, [1, 16, 14, 14]) for n in "xy")
    graph = make_graph(nodes, "conv", [x], [y], [numpy_helper.from_array(weight, "w")])
    return make_model(graph, opset_imports=[make_opsetid("", 17)], ir_version=8)


def compilation() -> list[Step]:
    """Each function that is called, as a convolution is compiled, in the order of first calls."""
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
        braid.compile(conv(), jobs=1, numerics="strict")
    finally:
        sys.setprofile(None)
    return list(calls)


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> dict[Step, int]:
    """The place of each function's first call, in a process that has made no family yet."""
    environment = {**os.environ, "BRAID_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}
    done = subprocess.run(
        [sys.executable, __file__], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {(file, name): place for place, (file, name) in enumerate(json.loads(done.stdout))}


@pytest.mark.parametrize("title", TRACED)
def test_steps_are_called_in_their_order(title: str, called: dict[Step, int]) -> None:
    steps = pictures()[title]
    assert [step for step in steps if step not in called] == []
    assert steps == sorted(steps, key=lambda step: called[step])


if __name__ == "__main__":
    print(json.dumps(compilation()))
