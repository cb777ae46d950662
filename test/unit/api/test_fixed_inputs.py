"""Open dims that are fixed by name, inputs that are fixed at a value, and contradictions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import braid
from braid.interpreted import interpret
from braid.support.diagnostics import Diagnostic, handle_diagnostics
from braid.support.errors import BraidError, UnsupportedError
from braid.tools.cli import main

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
Shape = list[int | str | None]


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[int, Shape]],
    weights: Mapping[str, np.ndarray] | None = None,
) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "open",
        [helper.make_tensor_value_info(name, *how) for name, how in inputs.items()],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def relu(*shape: int | str | None) -> ModelProto:
    return model([helper.make_node("Relu", ["x"], ["y"])], {"x": (FLOAT, list(shape))})


def add(*names: str) -> ModelProto:
    """Return the sum of two inputs, whose first dims have these names."""
    inputs: dict[str, tuple[int, Shape]] = {
        n: (FLOAT, [d, 3]) for n, d in zip("ab", names, strict=True)
    }
    return model([helper.make_node("Add", ["a", "b"], ["y"])], inputs)


def shapes(proto: ModelProto, **how: Any) -> list[tuple[int, ...]]:
    return [spec.shape for spec in interpret(proto, **how).inputs]


@pytest.mark.parametrize("name", [-1, "-1", "?", "", None])
def test_dims_without_a_name_are_open_and_distinct(name: int | str | None) -> None:
    proto = relu(1, name, name)
    assert shapes(proto) == [(1, -1, -1)]
    assert shapes(proto, shapes={"x": (1, 2, 6)}) == [(1, 2, 6)]
    assert shapes(proto, dims={"x[1]": 2, "x[2]": 6}) == [(1, 2, 6)]
    compiled = braid.compile(proto, shape_buckets={"x[1]": [2, 3], "x[2]": [6]})
    x = np.ones((1, 3, 6), np.float32)
    np.testing.assert_array_equal(compiled(x), x)


def test_a_size_holds_wherever_its_name_stands() -> None:
    assert shapes(add("batch", "batch"), dims={"batch": 5}) == [(5, 3), (5, 3)]
    assert shapes(add("batch", "batch"), shapes={"b": (5, 3)}) == [(5, 3), (5, 3)]
    assert shapes(add("n", "m"), dims={"n": "m", "m": 5}) == [(5, 3), (5, 3)]
    assert shapes(add("n", "m"), dims={"n": 1}, shapes={"b": (5, 3)}) == [(1, 3), (5, 3)]


def test_interpreted_models_take_any_size_that_is_one() -> None:
    interpreted = interpret(add("n", "n"))
    x = np.ones((4, 3), np.float32)
    out = np.zeros_like(x)
    interpreted.run([x, x], out=out)
    np.testing.assert_array_equal(out, x + x)
    with pytest.raises(BraidError, match="dim 'n' is 1 in input 'b', and 4 in an input before it"):
        interpreted.run([x, x[:1]])
    with pytest.raises(BraidError, match=r"output 'y' has shape \(3, 3\), expected \(4, 3\)"):
        interpreted.run([x, x], out=np.empty((3, 3), np.float32))


def test_a_value_fixes_the_dims_of_its_input() -> None:
    b = np.full((4, 3), 2, np.float32)
    compiled = braid.compile(add("batch", "batch"), constants={"b": b})
    assert [spec.shape for spec in compiled.inputs] == [(4, 3)]
    np.testing.assert_array_equal(compiled(b), b + b)


def test_equal_dims_are_checked_when_the_model_runs() -> None:
    compiled = braid.compile(add("n", "m"), dims={"m": "n"}, shape_buckets={"n": [1, 2]})
    a, b = np.ones((1, 3), np.float32), np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(compiled(b, b), b + b)
    with pytest.raises(BraidError, match="dim 'n' is 2 in input 'b', and 1 in an input before it"):
        compiled(a, b)


def test_dims_that_can_only_be_equal_are_one() -> None:
    said: list[Diagnostic] = []
    with handle_diagnostics(said.append):
        compiled = braid.compile(add("n", "m"), shape_bounds={"n": 4, "m": 4}, cache=False)
    assert [each.message[:18] for each in said] == ["dims 'n', 'm' are "]
    for size in (1, 2, 3, 4):
        x = np.full((size, 3), size, np.float32)
        np.testing.assert_array_equal(compiled(x, x), x + x)
    with pytest.raises(BraidError, match="dim 'n' is 4 in input 'b', and 3"):
        compiled(np.ones((3, 3), np.float32), np.ones((4, 3), np.float32))


def test_sides_that_happen_to_be_equal_stay_two() -> None:
    proto = relu(1, "height", "width")
    compiled = braid.compile(proto, shape_bounds={"height": 2, "width": 2})
    for height in (1, 2):
        for width in (1, 2):
            x = np.ones((1, height, width), np.float32)
            np.testing.assert_array_equal(compiled(x), x)


def test_sizes_at_which_the_model_is_not_valid_are_left_out() -> None:
    """A window of 3 with a padding of 1 fits from 1 on; three more rows that are sliced do not."""
    nodes = [
        helper.make_node("Slice", ["x", "three", "most", "one"], ["rest"]),
        helper.make_node("MaxPool", ["rest"], ["pooled"], kernel_shape=[3]),
        helper.make_node("ReduceMax", ["pooled", "last"], ["m"]),
        helper.make_node("Add", ["z", "m"], ["y"]),
    ]
    weights = {
        "three": np.array([3], np.int64),
        "most": np.array([6], np.int64),
        "one": np.array([2], np.int64),
        "last": np.array([2], np.int64),
    }
    proto = model(nodes, {"x": (FLOAT, [1, 1, "n"]), "z": (FLOAT, [1, 1, "n"])}, weights)
    said: list[Diagnostic] = []
    with handle_diagnostics(said.append):
        compiled = braid.compile(proto, shape_bounds={"n": 8}, cache=False)
    skipped = [each.message for each in said if each.severity == "remark"]
    assert len(skipped) == 3 and all("no variant with n=" in message for message in skipped)
    for size in (6, 7, 8):
        x = np.arange(size, dtype=np.float32).reshape(1, 1, size)
        np.testing.assert_array_equal(compiled(x, x), x + 5)
    with pytest.raises(BraidError, match="no variant for n=5"):
        compiled(np.ones((1, 1, 5), np.float32), np.ones((1, 1, 5), np.float32))
    with pytest.raises(BraidError, match=r"with n=4: node 'pooled' \(MaxPool\)"):
        braid.compile(proto, shape_buckets={"n": [4, 8]})
    with pytest.raises(BraidError, match="with n=1: "):
        braid.compile(proto, shape_bounds={"n": 4})


CONTRADICTIONS: list[tuple[dict[str, Any], str]] = [
    ({"dims": {"rows": 1}}, "no open dim 'rows'.*its open dims are 'n'"),
    ({"dims": {"n": "m"}}, "no open dim 'm'"),
    ({"dims": {"n": "n"}}, "'n' is said to equal itself"),
    ({"dims": {"n": -1}}, "size of dim 'n' is -1, expected a number of at least 0"),
    ({"dims": {"n": 1.5}}, "size of dim 'n' is 1.5"),
    ({"dims": [1]}, r"dims is \[1\], expected a size by the name of each dim"),
    ({"dims": {"n": 2}, "shapes": {"a": (3, 3)}}, "'n' is given as 2, but it is 3 in input 'a'"),
    ({"dims": {"n": 2}, "constants": {"b": np.ones((4, 3), np.float32)}}, "it is 4 in input 'b'"),
    ({"dims": {"n": 2}, "shape_buckets": {"n": [1, 2]}}, "dim 'n' is fixed at 2, and has other"),
    ({"shapes": {"a": (2, 3)}, "shape_bounds": {"n": 4}}, "dim 'n' is fixed at 2, and has other"),
    ({"shapes": {"a": (2, 3)}, "constants": {"a": 1.0}}, "'a' is given both a shape and a value"),
    ({"constants": {"c": 1}}, "no input 'c' to give a value to"),
    ({"constants": {"a": np.ones((2, 3))}}, "element type float64, expected float32"),
    ({"constants": {"a": "one"}}, "'one', expected numbers"),
    ({"constants": {"a": [[1, 2], [3]]}}, "expected numbers"),
    ({"constants": {"a": np.ones((2, 4), np.float32)}}, r"shape \[2, 4\], expected \[n, 3\]"),
]  # fmt: skip


@pytest.mark.parametrize(("how", "message"), CONTRADICTIONS)
def test_contradictions_are_errors(how: dict[str, Any], message: str) -> None:
    with pytest.raises(BraidError, match=f"(?s){message}"):
        braid.compile(add("n", "n"), **how)


@pytest.mark.parametrize(
    ("type", "value", "message"),
    [
        (INT64, 1.5, "element type float64, expected int64"),
        (INT64, True, "element type bool, expected int64"),
        (TensorProto.BOOL, 2, "is 2, expected true, false, 1 or 0"),
        (TensorProto.BOOL, 1.0, "element type float64, expected bool"),
        (TensorProto.INT8, 300, "is 300, expected int8"),
    ],
)
def test_values_have_the_type_of_the_input(type: int, value: object, message: str) -> None:
    nodes = [
        helper.make_node("Cast", ["k"], ["f"], to=FLOAT),
        helper.make_node("Add", ["x", "f"], ["y"]),
    ]
    proto = model(nodes, {"x": (FLOAT, [2]), "k": (type, [])})
    with pytest.raises(BraidError, match=message):
        interpret(proto, constants={"k": value})


@pytest.mark.parametrize("interpret", [[], ["--interpret"]])
def test_random_inputs_agree_about_the_sizes_of_a_name(
    interpret: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its position would make the dim a batch of 1 in one input, a sequence of 128 in another
    one."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"]),
        helper.make_node("Mul", ["t", "m"], ["y"]),
    ]
    path, x = tmp_path / "two.onnx", tmp_path / "x.npy"
    onnx.save(model(nodes, {"x": (FLOAT, ["n", 8]), "m": (FLOAT, ["n"])}), path)
    np.save(x, np.ones((7, 8), np.float32))
    for options, size in (([], 1), (["--at=n=5"], 5), ([f"--input=x={x}"], 7)):
        assert main(["run", str(path), "--random", *interpret, *options]) == 0
        assert f"[8, {size}]" in capsys.readouterr().out
        for command in ("verify", "bench"):
            assert main([command, str(path), *interpret, *options]) == 0
    artifact = str(tmp_path / "two.braid")
    assert main(["compile", str(path), "-o", artifact]) == 0
    for options in (["--dim=n=4"], ["--shape=m=4"], ["--at=n=4", "--dim=n=4"]):
        assert main(["run", artifact, "--random", *options]) == 0
    capsys.readouterr()
    assert main(["run", artifact, "--random", "--at=n=4", "--dim=n=3"]) == 1
    assert "dim 'n' is 3 by --dim, and 4 by --at" in capsys.readouterr().err


def test_the_example_of_a_message_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sides of 1 are invalid here, because of two consecutive windows of 5. An axis is an open
    size."""
    constants = {"w": np.ones((1, 3, 5, 5), np.float32), "first": np.array([0])}
    nodes = [
        helper.make_node("Conv", ["images", "w"], ["c"]),
        helper.make_node("MaxPool", ["c"], ["p"], kernel_shape=[5, 5]),
        helper.make_node("Shape", ["images"], ["shape"]),
        helper.make_node("Gather", ["shape", "first"], ["k"]),
        helper.make_node("ReduceSum", ["p", "k"], ["y"]),
    ]
    proto = model(nodes, {"images": (FLOAT, ["batch", 3, "?", "?"])}, constants)
    with pytest.raises(UnsupportedError) as caught:
        interpret(proto)
    given = '{"batch": 1, "images[2]": 224, "images[3]": 224}'
    assert f"such as dims={given}" in (caught.value.hint or "")
    path = tmp_path / "open.onnx"
    onnx.save(proto, path)
    assert main(["run", str(path), "--random", "--interpret"]) == 1
    flags = "--dim batch=1 --dim 'images[2]=224' --dim 'images[3]=224'"
    assert f"such as {flags}" in capsys.readouterr().err
    assert main(["run", str(path), "--random", *flags.replace("'", "").split()]) == 0
    capsys.readouterr()
    assert main(["inspect", str(path)]) == 0
    assert "batch, 3, images[2], images[3]" in capsys.readouterr().out


def test_commands_take_dims_and_constants(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, values = tmp_path / "add.onnx", tmp_path / "b.npy"
    onnx.save(add("n", "n"), rows)
    np.save(values, np.ones((2, 3), np.float32))
    constant, artifact = f"--constant=b={values}", str(tmp_path / "add.braid")
    assert main(["compile", str(rows), constant, "-o", artifact]) == 0
    for command in (["run", artifact, "--random"], ["run", str(rows), constant, "--random"]):
        assert main(command) == 0
    for command in (
        "verify",
        "explain --memory",
        "run --random",
        "run --random --interpret",
        "bench",
    ):
        name, *flags = command.split()
        assert main([name, str(rows), *flags, "--at=n=2"]) == 0
    for command in ("verify", "inspect", "explain"):
        assert main([command, str(rows), constant]) == 0
        assert main([command, str(rows), "--dim=n=2"]) == 0
    assert main(["bench", str(rows), "--dim=n=2", "--runs=1"]) == 0
    assert main(["compile", str(rows), "--shape-buckets=n=1,4", "-o", artifact]) == 0
    capsys.readouterr()
    assert main(["run", artifact, "--random", "--dim=n=3"]) == 0
    assert "[3, 3]" in capsys.readouterr().out
    for arguments, message in (
        (["--dim=m=3"], "--dim m=3 names no open dim of the model"),
        (["--dim=n=3", "--shape=a=2,3"], "but dim 'n' is given as 3"),
        ([constant], "--constant is for what is compiled"),
    ):
        assert main(["run", artifact, "--random", *arguments]) == 1
        assert message in capsys.readouterr().err
    assert main(["run", str(rows), "--constant=b=one", "--random"]) == 1
    assert "'one', expected numbers" in capsys.readouterr().err


def test_what_is_compiled_of_other_values_is_another_artifact(tmp_path: Path) -> None:
    path = tmp_path / "add.onnx"
    onnx.save(add("n", "n"), path)
    x = np.ones((2, 3), np.float32)
    for value in (1, 2, 1):
        result = braid.compile(path, constants={"b": x * value})(x)
        np.testing.assert_array_equal(result, x * (1 + value))
