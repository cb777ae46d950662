"""Files that a model names are in its directory: weights of ONNX and of `.mlir`, and targets."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from braid.driver.read_source import read_source
from braid.frontends.parameters import write_parameters
from braid.support.errors import BraidError
from braid.targets.machines.resolve import target_name, target_of
from braid.universe import make_context

SECRET = b"root:$6$secret:19000:0:99999:7:::\n" * 3
WEIGHT = np.arange(64, dtype=np.float32)


def onnx_model(folder: Path, named: str) -> Path:
    tensor = numpy_helper.from_array(WEIGHT, "w")
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [64]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [tensor])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    external_data_helper.set_external_data(model.graph.initializer[0], named)
    model.graph.initializer[0].ClearField("raw_data")
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder / "model.onnx"


def module(folder: Path, attributes: str) -> Path:
    (folder / "model.mlir").write_text(f"""
builtin.module attributes {{{attributes}}} {{
  func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {{
    %y = braid.exp %x : (tensor<64xf32>) -> tensor<64xf32>
    func.return %y : tensor<64xf32>
  }}
}}
""")
    return folder / "model.mlir"


def with_parameters(folder: Path, named: str) -> Path:
    return module(folder, f'braid.parameters = "{named}"')


def with_target(folder: Path, named: str) -> Path:
    return module(folder, f'braid.target = #braid.target<"{named}">')


KINDS = {"onnx": onnx_model, "parameters": with_parameters, "target": with_target}
Kind = Callable[[Path, str], Path]


@pytest.fixture(params=sorted(KINDS))
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory of models, next to which there are secrets."""
    (tmp_path / "secret.toml").write_bytes(SECRET)
    inside = tmp_path / "models"
    (inside / "deep").mkdir(parents=True)
    (inside / "link.toml").symlink_to(tmp_path / "secret.toml")
    (inside / "up").symlink_to(tmp_path)
    (inside / "zero.toml").symlink_to("/dev/zero")
    os.mkfifo(inside / "pipe.toml")
    (inside / "folder.toml").mkdir()
    return inside


@pytest.mark.parametrize(
    "named",
    [
        "{outside}/secret.toml",
        "../secret.toml",
        "deep/../../secret.toml",
        "./../secret.toml",
        "link.toml",
        "up/secret.toml",
        "zero.toml",
        "/dev/stdin.toml",
        "/proc/self/environ.toml",
        "",
    ],
)
def test_files_elsewhere_are_refused(kind: Kind, folder: Path, named: str) -> None:
    if kind is with_target and not named:
        pytest.skip("a target of no name is not a file")
    path = kind(folder, named.format(outside=folder.parent))
    with pytest.raises(BraidError) as caught:
        read_source(make_context(), path)
    said = str(caught.value)
    assert re.search(r"is outside the model's directory|is a link out of the model's", said), said
    assert "hint:" in said
    assert not any(word in said for word in ("root:", "secret:", str(len(SECRET)), "byte"))


@pytest.mark.parametrize("named", ["pipe.toml", "folder.toml", "missing.toml"])
def test_what_is_no_file_is_not_waited_for(kind: Kind, folder: Path, named: str) -> None:
    with pytest.raises(BraidError, match=r"a pipe|a directory|[Nn]o such file|there is no target"):
        target_of(read_source(make_context(), kind(folder, named)).module)


def test_files_that_are_not_beside_but_in_a_folder_there(folder: Path) -> None:
    with (folder / "deep" / "w").open("wb") as file:
        write_parameters(file, {"w": WEIGHT})
    found = read_source(make_context(), with_parameters(folder, "deep/w")).parameters
    np.testing.assert_array_equal(found["w"], WEIGHT)
    (folder / "deep" / "raw").write_bytes(WEIGHT.tobytes())
    found = read_source(make_context(), onnx_model(folder, "deep/raw")).parameters
    np.testing.assert_array_equal(found["w"], WEIGHT)
    (folder / "deep" / "t.toml").write_text("[target]\n")
    source = read_source(make_context(), with_target(folder, "deep/t.toml"))
    with pytest.raises(BraidError, match=r"deep/t\.toml"):  # it is read, and is no target
        target_of(source.module)


def test_models_and_data_behind_links_into_one_directory(folder: Path, tmp_path: Path) -> None:
    """As hubs keep them, whose files have the names of their digests."""
    hub, blobs = tmp_path / "snapshot", tmp_path / "blobs"
    hub.mkdir()
    blobs.mkdir()
    with (blobs / "0a1b").open("wb") as file:
        write_parameters(file, {"w": WEIGHT})
    with_parameters(folder, "w.safetensors").rename(blobs / "2c3d")
    (hub / "model.mlir").symlink_to(blobs / "2c3d")
    (hub / "w.safetensors").symlink_to(blobs / "0a1b")
    found = read_source(make_context(), hub / "model.mlir").parameters
    np.testing.assert_array_equal(found["w"], WEIGHT)


def test_a_path_that_is_given_may_be_anywhere(folder: Path, tmp_path: Path) -> None:
    with (tmp_path / "w").open("wb") as file:
        write_parameters(file, {"w": WEIGHT})
    path = with_target(folder, "../elsewhere.toml")
    source = read_source(make_context(), path, parameters=tmp_path / "w", target="host")
    np.testing.assert_array_equal(source.parameters["w"], WEIGHT)
    assert target_name(source.module) == "host"


def test_a_model_in_memory_names_no_files(folder: Path) -> None:
    text = with_target(folder, "secret.toml").read_bytes()
    with pytest.raises(BraidError, match="the model came from memory"):
        read_source(make_context(), text)
    with pytest.raises(BraidError, match="the model came from memory"):
        read_source(make_context(), onnx.load(onnx_model(folder, "x"), load_external_data=False))


def test_messages_do_not_quote_the_file(tmp_path: Path) -> None:
    (tmp_path / "hidden").write_bytes(SECRET)
    with pytest.raises(BraidError) as caught:
        read_source(make_context(), with_parameters(tmp_path, "hidden"))
    first = int.from_bytes(SECRET[:8], "little")
    assert not any(word in str(caught.value) for word in ("root:", "secret:", str(first)))
