"""Weights stay in their files: nothing is read at import, and arrays are views of the files."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, external_data_helper, helper, numpy_helper

from braid.frontends.onnx import import_onnx
from braid.frontends.onnx.wire import skeleton
from braid.support.errors import BraidError

WEIGHT = np.random.default_rng(0).standard_normal((64, 100)).astype(np.float32)


def model_with(weight: TensorProto) -> ModelProto:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 100])],
        [weight],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def is_mapped(array: np.ndarray[Any, Any]) -> bool:
    return not array.flags.owndata and not array.flags.writeable


def test_the_skeleton_is_the_model_without_its_weights() -> None:
    model = model_with(numpy_helper.from_array(WEIGHT, "w"))
    data = model.SerializeToString()
    small = skeleton(memoryview(data), "m.onnx")
    assert len(small) < len(data) - WEIGHT.nbytes + 200
    parsed = ModelProto.FromString(small)
    tensor = parsed.graph.initializer[0]
    entries = {entry.key: entry.value for entry in tensor.external_data}
    begin, length = int(entries["offset"]), int(entries["length"])
    assert data[begin : begin + length] == WEIGHT.tobytes()
    assert entries["location"] == "m.onnx"
    tensor.CopyFrom(model.graph.initializer[0])
    assert parsed == model


def test_weights_inside_attributes_of_subgraphs_are_found() -> None:
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(WEIGHT))],
        "inner",
        [],
        [],
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    model = helper.make_model(helper.make_graph([node], "g", [], []))
    small = skeleton(memoryview(model.SerializeToString()), "m.onnx")
    assert len(small) < 1000
    graph = ModelProto.FromString(small).graph.node[0].attribute[0].g
    assert graph.node[0].attribute[0].t.data_location == TensorProto.EXTERNAL


def test_weights_in_the_model_file_are_mapped(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model_with(numpy_helper.from_array(WEIGHT, "w")), path)
    weight = import_onnx(path).parameters["w"]
    assert is_mapped(weight)
    np.testing.assert_array_equal(weight, WEIGHT)


def test_external_weights_are_mapped(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    model = model_with(numpy_helper.from_array(WEIGHT, "w"))
    external_data_helper.convert_model_to_external_data(model, location="weights.bin")
    onnx.save(model, path)
    assert path.stat().st_size < 1000
    weight = import_onnx(path).parameters["w"]
    assert is_mapped(weight)
    np.testing.assert_array_equal(weight, WEIGHT)
    (tmp_path / "weights.bin").write_bytes(b"short")
    with pytest.raises(BraidError, match=r"ends at byte 25600, but 'weights.bin' has 5 bytes"):
        import_onnx(path)
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(BraidError, match=r"cannot read external data .*No such file"):
        import_onnx(path)


def test_external_weights_may_not_be_outside_of_the_directory(tmp_path: Path) -> None:
    model = model_with(numpy_helper.from_array(WEIGHT, "w"))
    external_data_helper.convert_model_to_external_data(model, location="weights.bin")
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[0].external_data[0].value = "../weights.bin"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(BraidError, match="outside the model's directory"):
        import_onnx(path)


def test_typed_fields_are_read() -> None:
    tensor = helper.make_tensor("w", TensorProto.FLOAT, [64, 100], WEIGHT.reshape(-1).tolist())
    assert not tensor.HasField("raw_data")
    np.testing.assert_array_equal(import_onnx(model_with(tensor)).parameters["w"], WEIGHT)


def test_model_behind_a_symbolic_link(tmp_path: Path) -> None:
    """As hubs store them: the weights inside the file are found through the link."""
    real = tmp_path / "blobs" / "0123"
    real.parent.mkdir()
    onnx.save(model_with(numpy_helper.from_array(WEIGHT, "w")), real)
    link = tmp_path / "models" / "model.onnx"
    link.parent.mkdir()
    link.symlink_to(real)
    np.testing.assert_array_equal(import_onnx(link).parameters["w"], WEIGHT)


@pytest.mark.parametrize("order", ["data first", "location first"])
def test_a_location_may_be_written_though_it_is_the_default(tmp_path: Path, order: str) -> None:
    """`quantize_dynamic` and others write `data_location = DEFAULT` behind the raw data."""
    weight = numpy_helper.from_array(WEIGHT, "w")
    located = TensorProto(data_location=TensorProto.DEFAULT).SerializeToString()
    data = weight.SerializeToString()
    parts = (data, located) if order == "data first" else (located, data)
    again = TensorProto()
    again.ParseFromString(b"".join(parts))
    assert again.HasField("data_location")
    model = model_with(again)
    path = tmp_path / "m.onnx"
    # Fields are written by number; this puts them in the order that is tested.
    serialized = model.SerializeToString()
    assert serialized.count(again.SerializeToString()) == 1
    path.write_bytes(serialized.replace(again.SerializeToString(), b"".join(parts)))
    read = import_onnx(path).parameters["w"]
    assert is_mapped(read)
    np.testing.assert_array_equal(read, WEIGHT)


def test_of_several_fields_of_raw_data_the_last_holds(tmp_path: Path) -> None:
    """As everywhere in protobuf; also in the entries for the location of external data."""
    first = TensorProto(raw_data=bytes(WEIGHT.nbytes))
    stale = TensorProto()
    stale.external_data.add(key="offset", value="7")
    weight = numpy_helper.from_array(WEIGHT, "w")
    whole = weight.SerializeToString()
    parts = first.SerializeToString() + stale.SerializeToString() + whole
    model = model_with(TensorProto.FromString(parts))
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    np.testing.assert_array_equal(import_onnx(path).parameters["w"], WEIGHT)


def test_lists_of_attributes_are_passed_on_whole() -> None:
    """Each element of such a list is a field: none of them is looked at."""
    lists = {"ints": [300] * 200_000, "floats": [0.5] * 200_000, "strings": ["a" * 9] * 100_000}
    node = helper.make_node("Op", ["x"], ["y"], domain="test", **lists)
    weight = numpy_helper.from_array(np.zeros(4096, np.float32), "w")
    data = helper.make_model(helper.make_graph([node], "g", [], [], [weight])).SerializeToString()
    begin = time.process_time()
    found = onnx.ModelProto.FromString(skeleton(memoryview(data), "model.onnx"))
    assert time.process_time() - begin < 0.2  # 1.6 s one by one
    assert found.graph.node[0] == node
    assert found.graph.initializer[0].data_location == onnx.TensorProto.EXTERNAL
