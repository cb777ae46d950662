"""Invalid models are rejected at the import, with the location of the invalid node."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, ModuleOp, TensorType, f32
from xdsl.utils.exceptions import VerifyException

import braid
from braid.analysis.structure.verification import InvalidIRError
from braid.dialects.braid.base import TensorOp, set_result_types
from braid.dialects.braid.movement import ReshapeOp
from braid.frontends.mlir import parse_mlir
from braid.support.errors import BraidError
from braid.universe import make_context

node = helper.make_node
Constants = dict[str, Any]


def model_of(
    nodes: list[Any], shape: list[Any], constants: Constants, kind: int = TensorProto.FLOAT
) -> onnx.ModelProto:
    """Return a model with the input x and the output y, whose type is left to be inferred."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


LSTM = {"w": zeros(1, 12, 4), "r": zeros(1, 12, 3)}
SUSPECTS: dict[str, tuple[list[Any], list[int], Constants]] = {
    "more elements": ([node("Reshape", ["x", "s"], ["y"])], [4], {"s": [12]}),
    "fewer elements": ([node("Reshape", ["x", "s"], ["y"])], [400], {"s": [4]}),
    "negative extents": ([node("Reshape", ["x", "s"], ["y"])], [6], {"s": [-2, -3]}),
    "a dim that is kept": ([node("Reshape", ["x", "s"], ["y"])], [4, 4], {"s": [0, 9]}),
    "more than memory": ([node("Expand", ["x", "s"], ["y"])], [1], {"s": [2**40, 2**40]}),
    "a product that wraps around": (
        [node("Reshape", ["x", "s"], ["y"])],
        [2**20, 0],
        {"s": [2**32, 2**32]},
    ),
    "channels in groups": (
        [node("GroupNormalization", ["x", "o", "z"], ["y"], num_groups=4)],
        [1, 6, 4],
        {"o": zeros(4), "z": zeros(4)},
    ),
    "blocks of Col2Im": (
        [node("Col2Im", ["x", "s", "b"], ["y"])],
        [1, 4, 5],
        {"s": [4, 4], "b": [2, 2]},
    ),
    "the batch of a state": (
        [node("LSTM", ["x", "w", "r", "", "", "h"], ["y"], hidden_size=3)],
        [5, 2, 4],
        {**LSTM, "h": zeros(1, 3, 3)},
    ),
    "the batch of lengths": (
        [node("LSTM", ["x", "w", "r", "", "l"], ["y"], hidden_size=3)],
        [5, 2, 4],
        {**LSTM, "l": np.array([5, 5, 5], np.int32)},
    ),
    "pixels in blocks": ([node("SpaceToDepth", ["x"], ["y"], blocksize=2)], [1, 1, 3, 2], {}),
    "channels in blocks": ([node("DepthToSpace", ["x"], ["y"], blocksize=2)], [1, 6, 2, 2], {}),
    "sizes of parts": ([node("Split", ["x", "s"], ["y", "z"])], [4], {"s": [3, 3]}),
    "too short a permutation": ([node("Transpose", ["x"], ["y"], perm=[0])], [2, 3], {}),
    "an empty part of another rank": (
        [node("Concat", ["x", "e"], ["y"], axis=0)],
        [2, 3],
        {"e": zeros(0)},
    ),
    "a direction that is not there": (
        [node("LSTM", ["x", "w", "r"], ["y"], hidden_size=3, direction="bidirectional")],
        [5, 2, 4],
        LSTM,
    ),
}


@pytest.mark.parametrize("what", SUSPECTS)
def test_invalid_nodes_are_refused(what: str) -> None:
    (suspect, *_), shape, constants = SUSPECTS[what]
    for enter in (braid.compile, braid.interpret):
        with pytest.raises(BraidError, match=rf"node 'y' \({suspect.op_type}\)"):
            enter(model_of([suspect], shape, constants))


def test_nodes_after_the_wrong_one_do_not_hide_it() -> None:
    nodes = [
        node("MatMul", ["x", "w"], ["a"], name="product"),
        node("Reshape", ["a", "s"], ["b"], name="wrong"),
        node("Relu", ["b"], ["y"], name="after"),
    ]
    constants = {"w": np.ones((4, 4), np.float32), "s": [3, 1, 4]}
    with pytest.raises(BraidError, match=r"node 'wrong'.*8 elements cannot take shape"):
        braid.compile(model_of(nodes, [2, 4], constants))


@pytest.mark.parametrize(
    "sizes",
    [
        {"shape_buckets": {"n": [3, 4]}},
        {"shape_bounds": {"n": 4}},
        {"shapes": {"x": [4, 4]}},
    ],
)
def test_each_size_is_checked(sizes: Any) -> None:
    model = model_of([node("Reshape", ["x", "s"], ["y"])], ["n", 4], {"s": [3, 4]})
    np.testing.assert_array_equal(
        braid.compile(model, shapes={"x": [3, 4]})(np.ones((3, 4), np.float32)), np.ones((3, 4))
    )
    with pytest.raises(BraidError, match=r"'y' .*elements cannot take shape"):
        braid.compile(model, **sizes)


def test_commands_exit_with_status_1(tmp_path: Path) -> None:
    (suspect, *_), shape, constants = SUSPECTS["more elements"]
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of([suspect], shape, constants).SerializeToString())
    command = [sys.executable, "-m", "braid.tools.cli", "compile", path, "-o", tmp_path / "o"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and not (tmp_path / "o").exists()
    assert "node 'y' (Reshape): 4 elements cannot take shape [12]" in done.stderr
    assert "Traceback" not in done.stderr


TEXT = """
func.func @main(%x: tensor<4xf32> {braid.name = "x"}) -> tensor<4xf32> {
  %y = braid.neg %x {braid.name = "layer"} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
"""


def wrong_module() -> ModuleOp:
    """Return a module that was valid when it was read, and whose op was changed since."""
    module = parse_mlir(make_context(), TEXT, "m.mlir").module
    op = next(op for op in module.walk() if isinstance(op, TensorOp))
    set_result_types(op, [TensorType(f32, [5])])
    return module


def test_modules_in_memory_are_checked() -> None:
    with pytest.raises(InvalidIRError, match=r"result 0 has type tensor<5xf32>"):
        braid.compile(wrong_module())
    with pytest.raises(InvalidIRError, match=r"result 0 has type tensor<5xf32>"):
        braid.interpret(wrong_module())
    with pytest.raises(InvalidIRError, match=r"result 0 has type tensor<5xf32>"):
        braid.run_passes(wrong_module(), "canonicalize")


@pytest.mark.parametrize("name", ["arith.constant", "braid.constant"])
def test_constants_have_the_bytes_of_their_type(name: str) -> None:
    text = f"""
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %c = {"arith.constant" if name[0] == "a" else "braid.constant {value ="}
    dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>{"} : tensor<4xf32>" if name[0] == "b" else ""}
  %y = braid.add %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}}
"""
    module = parse_mlir(make_context(), text, "m.mlir").module
    op = next(op for op in module.walk() if op.name == name)
    fields = op.properties if name == "arith.constant" else op.attributes
    fields["value"] = DenseIntOrFPElementsAttr(TensorType(f32, [4]), BytesAttr(b"\0" * 12))
    with pytest.raises(InvalidIRError, match="12 bytes of elements, expected 16 for tensor<4xf32>"):
        braid.compile(module)


def test_an_op_without_a_place_is_named() -> None:
    """Ops with a name only, such as those that an importer makes, are found by it."""
    module = wrong_module()
    for each in module.walk():
        each.location = ModuleOp([]).location
    with pytest.raises(InvalidIRError, match="note: the op computes 'layer' of the model"):
        braid.compile(module)


def test_ops_that_declare_their_shape_are_checked_when_they_are_built() -> None:
    op = next(op for op in wrong_module().walk() if isinstance(op, TensorOp))
    with pytest.raises(VerifyException, match="4 elements cannot take shape"):
        ReshapeOp.get(op.operands[0], [5])


YIELD = '"scf.yield"({}) : ({}) -> ()'
HALF, FULL = "tensor<2xf32>", "tensor<4xf32>"
LOOP = '"scf.for"(%i, %i, %i, %x) ({{^bb0(%k: index, %a: tensor<4xf32>): {0}}})'
WHILE = (
    '"scf.while"(%x) ({{^bb0(%a: tensor<4xf32>): "scf.condition"(%t, {0}) : (i1, {1}) -> ()}},'
    " {{^bb0(%a: {1}): {2}}}) : (tensor<4xf32>) -> {1}"
)
IF = '"scf.if"(%t) ({{{0}}}, {{{1}}}) : (i1) -> tensor<4xf32>'
WHOLE, PART = YIELD.format("%x", FULL), YIELD.format("%h", HALF)


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (LOOP.format(WHOLE) + f": (index, index, index, {FULL}) -> tensor<400xf32>", "carries"),
        (IF.format(WHOLE, PART), "a region yields"),
        (IF.format(WHOLE, ""), "expected an else region"),
        (IF.format(YIELD.format("", ""), WHOLE), "a region yields"),
        (WHILE.format("%x", FULL, PART), "second region yields"),
        (
            WHILE.format("%h", HALF, WHOLE).replace(f"-> {HALF}", f"-> {FULL}"),
            "expected tensor<4xf32>, got tensor<2xf32>",
        ),
        ('"tensor.extract"(%x, %i, %i) : (tensor<4xf32>, index, index) -> f32', "2 indices"),
        ('"tensor.from_elements"(%e, %e) : (f32, f32) -> tensor<4xf32>', "2 elements"),
        ('"tensor.cast"(%x) : (tensor<4xf32>) -> tensor<40xf32>', "tensor.cast"),
        (
            '"tensor.collapse_shape"(%m) <{reassociation = [[0, 1]]}> : (tensor<2x2xf32>) -> '
            "tensor<40xf32>",
            "4 elements cannot take",
        ),
    ],
)
def test_regions_and_elements_have_the_types_of_their_op(op: str, message: str) -> None:
    text = f"""
func.func @main(%x: tensor<4xf32>, %h: tensor<2xf32>, %m: tensor<2x2xf32>) -> tensor<4xf32> {{
  %i = arith.constant 1 : index
  %t = arith.constant true
  %e = arith.constant 1.0 : f32
  %y = {op}
  return %x : tensor<4xf32>
}}
"""
    with pytest.raises(BraidError, match=message) as raised:
        braid.compile(text.encode())
    assert raised.value.location is not None and raised.value.location.line == 6


def test_ranks_that_no_layout_has_are_refused() -> None:
    model = model_of([node("Relu", ["x"], ["y"])], [1] * 27, {})
    with pytest.raises(BraidError, match="input 'x' has 27 dims, expected at most 26"):
        braid.compile(model, jobs=1, cache=False)
    model = model_of([node("Reshape", ["x", "s"], ["y"])], [1], {"s": np.ones(27, np.int64)})
    with pytest.raises(BraidError, match="27 dims, expected at most 26"):
        braid.compile(model, jobs=1, cache=False)


def test_a_value_may_be_several_outputs() -> None:
    model = model_of([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y_2"])], [4], {})
    added = [helper.make_empty_tensor_value_info(name) for name in ("y", "y_2", "y_2")]
    model.graph.output.extend(added)
    compiled = braid.compile(model, jobs=1, cache=False)
    assert [spec.name for spec in compiled.outputs] == ["y", "y_3", "y_2", "y_2_4"]
    x = np.array([-1, 0, 1, 2], np.float32)
    right = 2 * [np.maximum(x, 0)] + 2 * [-x]
    for found, expected in zip(compiled(x), right, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["Relu", "the_node", "given", "made"])
def test_names_that_are_no_text_are_refused(name: str, tmp_path: Path) -> None:
    chain = [node("Relu", ["x"], ["given"]), node("Neg", ["given"], ["made"], name="the_node")]
    model = model_of([*chain, node("Abs", ["made"], ["y"])], [4], {})
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString().replace(name.encode(), b"\xff" + name[1:].encode()))
    with pytest.raises(BraidError, match="expected text in UTF-8"):
        braid.compile(path, jobs=1, cache=False)
