"""Damaged files: a diagnostic and status 1, or they still work; never a traceback."""

import contextlib
import io
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto

from benchmarks.generators.random_models import Draft, drafts
from braid.tools.braid_opt import main as braid_opt
from braid.tools.cli import main as braid

EXAMPLES = int(os.environ.get("BRAID_FUZZ_EXAMPLES", "25"))
ROOT = Path(__file__).parents[1]
MODULES = sorted(
    file
    for room in ("dialects", "passes")
    for file in (ROOT / room).rglob("*.mlir")
    if file.stat().st_size < 20_000
)
QUICKLY = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def check(main: Any, arguments: list[str]) -> None:
    """Run a tool in this process: status 0, or 1 with a diagnostic that is not a crash."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(arguments)
    said = err.getvalue()
    assert status in (0, 1), said
    assert "Traceback" not in said and "internal error" not in said, said
    assert "crashed" not in said, said
    assert status == 0 or "error:" in said, said


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Return `data` with a few bytes changed, removed, doubled, or cut off."""
    damaged = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        if not damaged:
            break
        at = draw(st.integers(0, len(damaged) - 1))
        length = draw(st.integers(1, 12))
        match draw(st.integers(0, 4)):
            case 0:
                damaged[at] = draw(st.integers(0, 255))
            case 1:
                del damaged[at : at + length]
            case 2:
                damaged[at:at] = damaged[at : at + length]
            case 3:
                other = draw(st.integers(0, len(damaged) - 1))
                damaged[at : at + length] = damaged[other : other + length]
            case _:
                del damaged[at + 1 :]
    return bytes(damaged)


@QUICKLY
@given(drafts(most_ops=3), st.data())
def test_damaged_bytes_of_models(draft: Draft, data: st.DataObject) -> None:
    content = data.draw(damaged(draft.model().SerializeToString()))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.onnx"
        path.write_bytes(content)
        check(braid, ["import", str(path), "-o", f"{directory}/model.mlir"])


@QUICKLY
@given(drafts(most_ops=4), st.data())
def test_models_with_parts_in_the_wrong_place(draft: Draft, data: st.DataObject) -> None:
    """Valid protobuf, wrong model: ops, names, attributes and shapes are exchanged."""
    model = draft.model()
    for _ in range(data.draw(st.integers(1, 3))):
        exchange(model, data.draw)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.onnx"
        path.write_bytes(model.SerializeToString())
        check(braid, ["import", str(path), "-o", f"{directory}/model.mlir"])


def exchange(model: ModelProto, draw: Any) -> None:
    graph = model.graph
    if not graph.node:
        return
    node = draw(st.sampled_from(list(graph.node)))
    other = draw(st.sampled_from(list(graph.node)))
    match draw(st.integers(0, 6)):
        case 0:
            node.op_type = other.op_type
        case 1 if node.input:
            names = [n for x in graph.node for n in (*x.input, *x.output)]
            node.input[draw(st.integers(0, len(node.input) - 1))] = draw(st.sampled_from(names))
        case 2 if node.input:
            del node.input[draw(st.integers(0, len(node.input) - 1))]
        case 3 if node.attribute:
            del node.attribute[draw(st.integers(0, len(node.attribute) - 1))]
        case 4 if other.attribute:
            node.attribute.append(draw(st.sampled_from(list(other.attribute))))
        case 5 if graph.input:
            given = draw(st.sampled_from(list(graph.input)))
            dims = given.type.tensor_type.shape.dim
            if dims:
                dims[0].dim_value = draw(st.sampled_from((0, 1, 7, -1)))
        case _ if graph.initializer:
            weight = draw(st.sampled_from(list(graph.initializer)))
            weight.data_type = draw(st.sampled_from((1, 2, 6, 7, 9, 11, 99)))
        case _:
            node.output[0] = other.output[0]


@QUICKLY
@given(st.sampled_from(MODULES), st.data())
def test_damaged_text_of_modules(path: Path, data: st.DataObject) -> None:
    content = data.draw(damaged(path.read_bytes()))
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "module.mlir"
        file.write_bytes(content)
        arguments = ["--split-input-file", "--allow-unregistered-dialect", str(file)]
        check(braid_opt, [*arguments, "-o", f"{directory}/out.mlir", "-p", "canonicalize,cse"])


@pytest.mark.parametrize("size", [0, 1, 40])
def test_noise(size: int, tmp_path: Path) -> None:
    for name, main in (("noise.onnx", braid), ("noise.mlir", braid)):
        file = tmp_path / name
        file.write_bytes(os.urandom(size))
        check(main, ["import", str(file), "-o", str(tmp_path / "out.mlir")])
