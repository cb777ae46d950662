"""Text and mappings: a caller's inputs and results, compared with ONNX Runtime's."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import InferenceSession

import braid
import braid.onnxruntime
from braid.support.errors import BraidError, UnsupportedError

ML = "ai.onnx.ml"
TEXT, INT64, FLOAT = TensorProto.STRING, TensorProto.INT64, TensorProto.FLOAT
tensor = helper.make_tensor_value_info


def mapping(name: str, key: int, value: int) -> onnx.ValueInfoProto:
    inner = helper.make_tensor_type_proto(value, [])
    return onnx.ValueInfoProto(name=name, type=helper.make_map_type_proto(key, inner))


def mappings(name: str, key: int) -> onnx.ValueInfoProto:
    inner = helper.make_map_type_proto(key, helper.make_tensor_type_proto(FLOAT, []))
    return onnx.ValueInfoProto(name=name, type=helper.make_sequence_type_proto(inner))


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: Mapping[str, Any] | None = None,
    version: int = 2,
) -> onnx.ModelProto:
    weights = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), weights)
    versions = [helper.make_opsetid("", 18), helper.make_opsetid(ML, version)]
    return helper.make_model(graph, opset_imports=versions, ir_version=9)


def encoder(x: str = "x", y: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("LabelEncoder", [x], [y], name="encoder", domain=ML, **attributes)


def both(proto: onnx.ModelProto, feed: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """Return the results of braid's session and of ONNX Runtime's."""
    data = proto.SerializeToString()
    ours = braid.onnxruntime.InferenceSession(data)
    theirs = InferenceSession(data)
    for one, other in (
        *zip(ours.get_inputs(), theirs.get_inputs(), strict=True),
        *zip(ours.get_outputs(), theirs.get_outputs(), strict=True),
    ):
        assert (one.name, one.type) == (other.name, other.type)
    return ours.run(None, feed), list(theirs.run(None, feed))


COLORS = np.array([["red", "blue"], ["green", "mauve"], ["red", "red"]], dtype=object)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"values_int64s": [7, 8, 9], "default_int64": -3}, INT64),
        ({"values_floats": [0.5, 1.5, 2.5]}, FLOAT),
        ({"values_strings": ["r", "g", "b"], "default_string": "?"}, TEXT),
    ],
)
def test_texts_are_looked_up(values: dict[str, Any], kind: int) -> None:
    node = encoder(keys_strings=["red", "green", "blue"], **values)
    proto = model([node], [tensor("x", TEXT, ["n", 2])], [tensor("y", kind, ["n", 2])])
    ours, theirs = both(proto, {"x": COLORS})
    assert ours[0].dtype == theirs[0].dtype
    np.testing.assert_array_equal(ours[0], theirs[0])


def test_texts_that_the_model_does_not_hold_are_moved_and_compared() -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["turned"]),
        helper.make_node("Gather", ["turned", "one"], ["row"]),
        helper.make_node("Gather", ["x", "one"], ["column"], axis=1),
        helper.make_node("Reshape", ["column", "flat"], ["others"]),
        helper.make_node("Equal", ["row", "others"], ["same"]),
        helper.make_node("Concat", ["row", "kept"], ["all"], axis=0),
    ]
    constants = {
        "one": np.array(1),
        "flat": np.array([-1]),
        "kept": np.array(["red", "ochre"], dtype=object),
    }
    outputs = [tensor("all", TEXT, ["m"]), tensor("same", TensorProto.BOOL, ["n"])]
    proto = model(nodes, [tensor("x", TEXT, ["n", 2])], outputs, constants)
    found = braid.compile(proto)(COLORS)
    assert found[0].tolist() == ["blue", "mauve", "red", "red", "ochre"]
    assert found[1].all()


def test_many_texts_are_looked_up_in_a_table() -> None:
    keys = [f"key {i}" for i in range(200)]
    node = encoder(keys_strings=keys, values_int64s=list(range(0, 400, 2)))
    proto = model([node], [tensor("x", TEXT, ["n"])], [tensor("y", INT64, ["n"])])
    x = np.array([keys[199], "other", keys[3]])
    ours, theirs = both(proto, {"x": x.astype(object)})
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_array_equal(braid.compile(proto)(x.tolist()), theirs[0])


def test_categories_become_columns() -> None:
    nodes = [
        helper.make_node("OneHotEncoder", ["x"], ["y"], domain=ML, cats_strings=["red", "blue"]),
        helper.make_node(
            "CategoryMapper",
            ["x"],
            ["z"],
            domain=ML,
            cats_strings=["red", "blue"],
            cats_int64s=[4, 9],
        ),
    ]
    outputs = [tensor("y", FLOAT, ["n", 2, 2]), tensor("z", INT64, ["n", 2])]
    ours, theirs = both(model(nodes, [tensor("x", TEXT, ["n", 2])], outputs), {"x": COLORS})
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("is_text", [False, True])
def test_rows_become_mappings(is_text: bool, tmp_path: Path) -> None:
    labels = ["no", "yes"] if is_text else [4, 9]
    kinds = ("classlabels_strings", "classlabels_strings") if is_text else (
        "classlabels_ints", "classlabels_int64s",
    )  # fmt: skip
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["label", "scores"],
            domain=ML,
            coefficients=[1.0, 0.5, -1.0, 2.0],
            intercepts=[0.1, 0.0],
            post_transform="SOFTMAX",
            **{kinds[0]: labels},
        ),
        helper.make_node("ZipMap", ["scores"], ["p"], domain=ML, **{kinds[1]: labels}),
    ]
    key = TEXT if is_text else INT64
    outputs = [tensor("label", key, ["n"]), mappings("p", key), tensor("scores", FLOAT, ["n", 2])]
    proto = model(nodes, [tensor("x", FLOAT, ["n", 2])], outputs)
    x = np.array([[1, 0], [0, 1], [3, -2]], np.float32)
    ours, theirs = both(proto, {"x": x})
    assert ours[0].tolist() == theirs[0].tolist()
    assert [list(row) for row in ours[1]] == [labels] * 3
    for one, other in zip(ours[1], theirs[1], strict=True):
        assert one == pytest.approx(other)
    assert ours[2].dtype == np.float32
    compiled = braid.compile(proto)
    compiled.save(tmp_path / "model.braid")
    for other in (braid.interpret(proto), braid.load(tmp_path / "model.braid")):
        found = other(x)
        assert found[0].tolist() == ours[0].tolist()
        assert found[1][2] == pytest.approx(ours[1][2])
    with pytest.raises(BraidError, match="'p' of the model are no arrays"):
        compiled(x, out=[ours[0], ours[2], ours[2]])
    with pytest.raises(BraidError, match="a stream takes and gives arrays of numbers"):
        compiled.stream([x])


def test_a_mapping_becomes_a_row() -> None:
    node = helper.make_node(
        "DictVectorizer", ["d"], ["y"], domain=ML, string_vocabulary=["a", "b", "c"]
    )
    proto = model([node], [mapping("d", TEXT, FLOAT)], [tensor("y", FLOAT, [1, 3])])
    given = {"b": 3.0, "c": 1.0, "z": 5.0}
    ours, theirs = both(proto, {"d": given})
    np.testing.assert_array_equal(ours[0], theirs[0])
    compiled = braid.compile(proto)
    for found in (compiled(given), compiled(d=given), compiled({"d": given})):
        np.testing.assert_array_equal(found, theirs[0])
    with pytest.raises(BraidError, match="input 'd' is a list, expected a mapping"):
        compiled([1.0])
    with pytest.raises(BraidError, match="'d' has values that are no numbers"):
        compiled(d={"a": "x"})


def test_what_is_no_text_is_refused() -> None:
    node = encoder(keys_strings=["a"], values_int64s=[1])
    compiled = braid.compile(model([node], [tensor("x", TEXT, [2])], [tensor("y", INT64, [2])]))
    with pytest.raises(BraidError, match=r"input 'x' has 1\.5, expected text"):
        compiled(["a", 1.5])
    # The numbers of texts, as callers from C give them.
    assert compiled(np.array([0, 5])).tolist() == [1, -1]


def test_numbers_that_stand_for_no_text_are_refused() -> None:
    identity = helper.make_node("Identity", ["x"], ["y"])
    compiled = braid.compile(model([identity], [tensor("x", TEXT, [2])], [tensor("y", TEXT, [2])]))
    assert compiled(["a", "b"]).tolist() == ["a", "b"]
    with pytest.raises(BraidError, match="output 'y' has numbers that stand for no text"):
        compiled(np.array([0, 5]))


def test_text_is_not_computed_with() -> None:
    cast = helper.make_node("Cast", ["x"], ["y"], to=FLOAT)
    with pytest.raises(UnsupportedError, match="its input 'x' is text"):
        braid.compile(model([cast], [tensor("x", TEXT, [2])], [tensor("y", FLOAT, [2])]))
    node = encoder(keys_int64s=[1], values_int64s=[1])
    with pytest.raises(BraidError, match=r"its input has text .* but the keys are numbers"):
        braid.compile(model([node], [tensor("x", TEXT, [2])], [tensor("y", INT64, [2])]))
    with pytest.raises(BraidError, match="'y' is no text, unlike its declaration"):
        node = encoder(keys_strings=["a"], values_int64s=[1])
        braid.compile(model([node], [tensor("x", TEXT, [2])], [tensor("y", TEXT, [2])]))


def test_mappings_are_only_given_and_taken() -> None:
    nodes = [
        helper.make_node("ZipMap", ["x"], ["p"], domain=ML, classlabels_int64s=[1, 2]),
        helper.make_node("Identity", ["p"], ["y"]),
    ]
    with pytest.raises(UnsupportedError, match="its input 'p' is a mapping"):
        braid.compile(model(nodes, [tensor("x", FLOAT, [3, 2])], [mappings("y", INT64)]))
    identity = helper.make_node("Identity", ["d"], ["y"])
    with pytest.raises(UnsupportedError, match="which only DictVectorizer may read"):
        braid.compile(model([identity], [mapping("d", TEXT, FLOAT)], [tensor("y", FLOAT, [1])]))
