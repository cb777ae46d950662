"""Whole models: names, shapes, functions, order, and errors in invalid ones."""

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from xdsl.dialects.func import FuncOp

from braid.analysis.interpreter import interpret
from braid.dialects.braid.base import TensorOp
from braid.frontends.onnx import import_onnx
from braid.support.errors import BraidError, UnsupportedError

node = helper.make_node


def model_of(nodes: list[Any], shape: list[Any] | None = None, opset: int = 18) -> ModelProto:
    """Return a model with input x and output y."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape or [2, 3])],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.ones(1, np.float32), "one")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def _text(attribute: Any) -> str:
    return attribute.data


def names_in(model: ModelProto) -> list[str]:
    function = next(iter(import_onnx(model).module.ops))
    assert isinstance(function, FuncOp)
    return [
        _text(op.attributes["braid.name"])
        for op in function.body.ops
        if isinstance(op, TensorOp) and op.operands
    ]


def test_ops_are_named_after_the_values_that_they_give() -> None:
    nodes = [
        node("Gelu", ["x"], ["a"], name="activation"),
        node("Split", ["a"], ["b", "c"], axis=0, num_outputs=2),
        node("Add", ["b", "c"], ["y"]),
    ]
    assert names_in(model_of(nodes, opset=20)) == [
        "a/mul",
        "a/erf",
        "a/mul#2",
        "a/add",
        "a",
        "b",
        "c",
        "y",
    ]


def test_what_is_known_at_import_uses_nothing() -> None:
    """An op that is computed at import must not be left behind as a user of its operands."""
    nodes = [node("Add", ["one", "one"], ["two"]), node("Mul", ["x", "one"], ["z"])]
    nodes += [node("Slice", ["x", "from", "from"], ["none"]), node("Mul", ["z", "two"], ["y"])]
    nodes += [node("Exp", ["none"], ["e"])]
    model = model_of(nodes)
    model.graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), "from"))
    module = import_onnx(model).module
    ops = set(module.walk())
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    values = [*function.body.block.args, *(result for op in ops for result in op.results)]
    assert all(use.operation in ops for value in values for use in value.uses)


def test_inputs_and_outputs_keep_their_names() -> None:
    function = next(iter(import_onnx(model_of([node("Relu", ["x"], ["y"])])).module.ops))
    assert isinstance(function, FuncOp) and function.arg_attrs and function.res_attrs
    assert [_text(a.data["braid.name"]) for a in function.arg_attrs] == ["x"]
    assert [_text(a.data["braid.name"]) for a in function.res_attrs] == ["y"]


def test_open_dims_need_shapes() -> None:
    model = model_of([node("Relu", ["x"], ["y"])], ["batch", 3])
    with pytest.raises(BraidError, match=r"left open: 'x' \[batch, 3\]") as caught:
        import_onnx(model)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("give sizes of 'batch' (dims), or compile for several")
    imported = import_onnx(model, shapes={"x": [5, 3]})
    assert interpret(imported.module, [np.zeros((5, 3), np.float32)])[0].shape == (5, 3)
    with pytest.raises(BraidError, match=r"was given shape \[5, 4\], expected \[batch, 3\]"):
        import_onnx(model, shapes={"x": [5, 4]})
    with pytest.raises(BraidError, match="there is no input 'z'"):
        import_onnx(model, shapes={"z": [5, 4]})


def test_inputs_may_be_fixed() -> None:
    x = np.array([[1, -2]], np.float32)
    imported = import_onnx(model_of([node("Relu", ["x"], ["y"])], [1, 2]), constants={"x": x})
    np.testing.assert_array_equal(interpret(imported.module, [])[0], [[1, 0]])


def test_nodes_may_stand_in_any_order_but_not_in_a_circle() -> None:
    imported = import_onnx(model_of([node("Neg", ["a"], ["y"]), node("Relu", ["x"], ["a"])]))
    x = np.full((2, 3), 2, np.float32)
    np.testing.assert_array_equal(interpret(imported.module, [x])[0], -x)
    cyclic = [node("Add", ["x", "y"], ["a"]), node("Relu", ["a"], ["y"])]
    with pytest.raises(BraidError, match=r"has a cycle: (a -> y -> a|y -> a -> y)"):
        import_onnx(model_of(cyclic))


def test_local_functions_are_inlined() -> None:
    function = helper.make_function(
        "local", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 18)],
    )  # fmt: skip
    model = model_of([node("Twice", ["x"], ["y"], domain="local")])
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("local", 1))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(interpret(import_onnx(model).module, [x])[0], 2 * x)


def test_ops_without_an_importer_are_expanded_by_onnx() -> None:
    nodes = [
        node("Constant", [], ["labels"], value_ints=[2, 0]),
        node("NegativeLogLikelihoodLoss", ["x", "labels"], ["y"]),
    ]
    x = np.arange(6, dtype=np.float32).reshape(2, 3) ** 2
    imported = import_onnx(model_of(nodes))
    result = interpret(imported.module, [x], parameters=imported.parameters)[0]
    np.testing.assert_allclose(result, -(x[0, 2] + x[1, 0]) / 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "initializers", "name"),
    [
        ([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])], (), "y"),
        ([node("Split", ["x"], ["y", "y"], num_outputs=2)], (), "y"),
        ([node("Relu", ["x"], ["x"]), node("Neg", ["x"], ["y"])], (), "x"),
        ([node("Neg", ["x"], ["w"]), node("Add", ["x", "w"], ["y"])], ("w",), "w"),
        ([node("Add", ["x", "w"], ["y"])], ("w", "w"), "w"),
    ],
)
def test_a_name_has_one_meaning(nodes: Any, initializers: tuple[str, ...], name: str) -> None:
    model = model_of(nodes)
    arrays = [numpy_helper.from_array(np.full(1, 2, np.float32), n) for n in initializers]
    model.graph.initializer.extend(arrays)
    with pytest.raises(BraidError, match=f"'{name}' is defined several times in graph"):
        import_onnx(model)


def test_outputs_have_the_element_types_that_are_declared() -> None:
    model = model_of([node("Shape", ["x"], ["y"])])
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.INT64, [2]))
    import_onnx(model)
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    with pytest.raises(BraidError, match="'y' is declared as float32, but is int64"):
        import_onnx(model)


def test_an_input_is_not_larger_than_any_memory() -> None:
    model = model_of([node("Relu", ["x"], ["y"])])
    shape = model.graph.input[0].type.tensor_type.shape
    del shape.dim[1:]
    shape.dim[0].dim_value = 2**63 - 1
    with pytest.raises(BraidError, match=r"input 'x' has shape \[9223372036854775807\], expected"):
        import_onnx(model)


def test_all_unsupported_ops_are_listed_at_once() -> None:
    nodes = [node("Foo", ["x"], ["a"]), node("Bar", ["a"], ["b"]), node("Foo", ["b"], ["y"])]
    with pytest.raises(UnsupportedError, match=r"node 'a' \(Foo\): the op Foo is not") as caught:
        import_onnx(model_of(nodes))
    (note,) = caught.value.notes
    assert note.message == "2 more nodes of the model would still be missing: Bar (1), Foo (1)"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (node("Conv", ["x", "one"], ["y"], name="c"), r"node 'c' \(Conv\): "),
        (node("Relu", ["x"], ["y"]).__class__(), "not supported"),
        (
            node("Add", ["x", "z"], ["y"], name="a"),
            r"node 'a' \(Add\) uses 'z', which nothing produces",
        ),
        (node("Concat", ["x", "x"], ["y"], name="c"), r"\(Concat\): attribute 'axis' is missing"),
        (node("Softmax", ["x"], ["y"], axis=7), r"node 'y' \(Softmax\): "),
        (node("Flatten", ["x"], ["y"], axis=1.5), "has type FLOAT, expected INT"),
        (
            node("Reshape", ["x", "x"], ["y"]),
            r"input 1 \('shape'\) has element type float, which ONNX does not allow in opset 18",
        ),
        (node("Relu", [""], ["y"]), r"node 'y' \(Relu\): input 0 \('X'\) is missing"),
        (node("Relu", ["x"], ["z"]), "graph 'g' gives 'y', which it does not define"),
    ],
)
def test_bad_nodes(bad: Any, message: str) -> None:
    with pytest.raises(BraidError, match=message):
        import_onnx(model_of([bad]))


def test_what_a_shape_is_computed_from_is_named() -> None:
    nodes = [node("Cast", ["x"], ["s"], to=TensorProto.INT64), node("Reshape", ["x", "s"], ["y"])]
    message = (
        r"input 1 \('s'\) is computed while the model runs.*\n"
        "hint: it depends on the data of 'x', whatever the shapes are"
    )
    with pytest.raises(UnsupportedError, match=message):
        import_onnx(model_of(nodes))


def test_bad_models() -> None:
    with pytest.raises(UnsupportedError, match="the model uses opset 999, expected 1 to"):
        import_onnx(model_of([node("Relu", ["x"], ["y"])], opset=999))
    with pytest.raises(UnsupportedError, match="the op Reshape is not supported"):
        import_onnx(model_of([node("Reshape", ["x"], ["y"], shape=[1])], opset=4))
    text = helper.make_graph(
        [node("Cast", ["x"], ["y"], to=1)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.STRING, [1])],
        [helper.make_empty_tensor_value_info("y")],
    )
    with pytest.raises(UnsupportedError, match="its input 'x' is text"):
        import_onnx(helper.make_model(text))
    with pytest.raises(BraidError, match="it has no graph"):
        import_onnx(ModelProto())


def test_bad_files(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    with pytest.raises(BraidError, match=r"cannot read .*No such file"):
        import_onnx(path)
    good = model_of([node("Relu", ["x"], ["y"])]).SerializeToString()
    for data in (b"", b"garbage", b"\x00" * 100, b"\xff" * 100, bytes(range(256)) * 20):
        path.write_bytes(data)
        with pytest.raises(BraidError):
            import_onnx(path)
    for length in range(1, len(good)):
        path.write_bytes(good[:length])
        with pytest.raises(BraidError):
            import_onnx(path)


@pytest.mark.parametrize(
    "bad",
    [
        node("Pad", ["x"], ["y"], pads=[1], mode="constant"),
        node("Slice", ["x"], ["y"], starts=[0, 0, 0], ends=[1, 1, 1], axes=[0, 1, 5]),
        node("Transpose", ["x"], ["y"], perm=[0, 1]),
        node("DepthToSpace", ["x"], ["y"], blocksize=2),
    ],
)
def test_nodes_that_do_not_fit_together(bad: Any) -> None:
    with pytest.raises(BraidError, match=f"{bad.op_type}.: .*(fit together|expected)"):
        import_onnx(model_of([bad], shape=[4], opset=9))


@pytest.mark.parametrize("seed", range(40))
def test_damaged_files_give_diagnostics(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    whole = model_of([node("Relu", ["x"], ["z"]), node("Neg", ["z"], ["y"])]).SerializeToString()
    data = bytearray(whole)
    for place in random.integers(0, len(data), 3):
        data[place] = random.integers(256)
    path = tmp_path / "m.onnx"
    path.write_bytes(data[: len(data) - int(random.integers(3))])
    with contextlib.suppress(BraidError):
        import_onnx(path)
