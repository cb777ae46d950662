"""Messages name options as keywords of Python, or as flags of a command: by the door they left."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import braid
from braid.driver.options import CompileOptions, options_of
from braid.support.errors import WrongArgumentError
from braid.support.option_names import (
    by_door,
    flag_of,
    former_keywords,
    naming_commands,
    naming_entries,
    naming_flags,
    option_text,
    with_current_keywords,
)
from braid.tools.cli import main

ROOT = Path(__file__).parents[3]
PACKAGES = (
    *("analysis", "braid", "dialects", "frontends", "lowering", "passes", "runtime", "solvers"),
    *("support", "targets", "tuning"),
)
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]+")
COMMAND = re.compile(
    r"\bbraid run --profile|\b(?:braid serve|braid-opt|mlir-opt|cmake|ray)\b[^,;]*--[a-z]"
)
"""A flag within a command line that has no function is named on purpose, whoever reads it."""
KEYWORD = re.compile(rf"\b(?:{'|'.join(options_of())})=")
OWN_KEYWORDS = re.compile(r"braid\.\w+\(.*=|option (?:\w+)=|such as dims=N,C|DirectML|sess_")
"""Calls that are written out, and options of passes, which both doors have."""


def messages() -> Iterator[tuple[Path, int, str]]:
    """Yield each text of an error or diagnostic outside of the commands; `{}` is what varies."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            if "wheel" in file.relative_to(ROOT).parts:
                continue
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and is_diagnostic(node.func):
                    for part in (*node.args, *(keyword.value for keyword in node.keywords)):
                        yield file, node.lineno, text_of(part)


def is_diagnostic(function: ast.expr) -> bool:
    name = getattr(function, "id", getattr(function, "attr", ""))
    return name.endswith("Error") or name in ("Diagnostic", "error")


def text_of(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(value) for value in node.values)
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    if isinstance(node, ast.IfExp | ast.BoolOp):
        return " ".join(text_of(each) for each in ast.iter_child_nodes(node) if is_text(each))
    return "{}"


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp | ast.IfExp | ast.BoolOp)


def test_no_message_names_an_option_by_hand() -> None:
    found = list(messages())
    assert len(found) > 1000
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {text}"
        for file, line, text in found
        if (FLAG.search(text) and not COMMAND.search(text))
        or (KEYWORD.search(text) and not OWN_KEYWORDS.search(text))
    ]
    assert not wrong, "name options by option_text():\n" + "\n".join(wrong)


def test_the_runtime_names_no_flag() -> None:
    """Its messages reach users of C, of Python and of commands alike."""
    wrong = [
        f"{file.name}: {text}"
        for file in sorted((ROOT / "runtime" / "native").rglob("*.[ch]"))
        if "examples" not in file.parts
        for text in re.findall(r'"(?:[^"\\]|\\.)*"', file.read_text(encoding="utf-8"))
        if FLAG.search(text)
    ]
    assert not wrong


WRONG: dict[str, tuple[object, str]] = {
    "target": ("nowhere", "nowhere"),
    "cpu": ("nothing", "nothing"),
    "gpu_arch": ("sm_1", "sm_1"),
    "threads": (-1, "-1"),
    "shapes": ({"z": (1, 2)}, "z=1,2"),
    "dims": ({"depth": 3}, "depth=3"),
    "constants": ({"z": 3}, "z=3"),
    "shape_buckets": ({"depth": (1, 2)}, "depth=1,2"),
    "state": ({"z": "y"}, "z=y"),
    "specialize": ([{"depth": 3}], "depth=3"),
    "shape_bounds": ({"depth": 3}, "depth=3"),
    "jobs": (0, "0"),
    "use_profile": ("none.json", "none.json"),
    "unseen": (0.1, "0.1"),
    "memory_budget": ("lots", "lots"),
    "recompute": ("budget=1", "budget=1"),
    "measure_orders": (-1.0, "-1"),
    "inter_op_threads": (0, "0"),
    "order_seconds": (1.0, "1"),
    "partition": ("luck", "luck"),
    "pin": (("conv=npu",), "conv=npu"),
    "kernels": ("mine", "mine"),
    "numerics": ("exact", "exact"),
    "precision": ("fp16", "fp16"),
    "untuned": ("pray", "pray"),
    "untuned_seconds": (-1.0, "-1"),
}
"""A wrong value of each option, in Python and on the command line."""
FREE = {"profile", "integers", "emulate", "cache"}
"""Options without a value, of which none is wrong on a command line."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    path = tmp_path_factory.mktemp("names") / "open.onnx"
    opset = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path


def test_every_option_is_tried() -> None:
    own = {name for name, option in options_of().items() if option.kind is not None}
    assert own == WRONG.keys() | FREE


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_option(
    name: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value, text = WRONG[name]
    known = "|".join(each for each in options_of() if "_" in each)
    flags = [flag_of(each) for each in options_of()]
    with pytest.raises(braid.BraidError) as failed:
        braid.compile(model, **{name: value})
    said = str(failed.value)
    assert not any(re.search(rf"(?<![\w-]){flag}(?![\w-])", said) for flag in flags), said
    assert main(["compile", str(model), flag_of(name), text, "-o", str(tmp_path / "m.braid")]) == 1
    said = capsys.readouterr().err
    assert not re.search(rf"\b(?:{known})\b|\b(?:{'|'.join(options_of())})=", said), said
    assert not (tmp_path / "m.braid").exists()


def test_one_text_for_all_doors() -> None:
    assert option_text("shape_bounds", {"n": 8}) == 'shape_bounds={"n": 8}'
    assert by_door("braid.load", "braid run") == "braid.load"
    with naming_flags():
        assert option_text("shape_bounds", {"n": 8}) == "--shape-bound n=8"
        assert by_door("braid.load", "braid run") == "braid run"
        with naming_flags(False):
            assert option_text("jobs") == "jobs"
    with naming_entries():
        assert option_text("shapes") == "braid.shapes"
        assert option_text("threads", 2) == "intra_op_num_threads = 2"
        bounds = option_text("shape_bounds", {"n": 8, "m": 2})
        assert bounds == 'add_session_config_entry("braid.shape_bounds", "n=8;m=2")'
        assert by_door("braid.load", "braid run") == "braid.load"
    with naming_commands():  # as for braid-opt
        assert option_text("numerics", "strict") == 'numerics="strict"'
        assert by_door("braid.load", "braid run") == "braid run"


def test_wrong_kinds_are_named(model: Path) -> None:
    options = CompileOptions(profile=np.float64(1.0))  # pyright: ignore[reportArgumentType]
    with pytest.raises(braid.BraidError, match="profile is"):
        options.check()
    with naming_flags(), pytest.raises(braid.BraidError, match="--profile is"):
        options.check()


def test_options_under_former_names() -> None:
    assert with_current_keywords({"on_miss": "tune", "jobs": 1}) == {"untuned": "tune", "jobs": 1}
    assert former_keywords("untuned") == ["on_miss"]
    with pytest.raises(WrongArgumentError, match="on_miss is the former name of untuned, and both"):
        with_current_keywords({"on_miss": "tune", "untuned": "probe"})
