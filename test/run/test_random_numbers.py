"""Compiled models draw the same numbers as interpreted ones; uniform ones are equal to the bit."""

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import TensorProto, helper, save

import braid
import braid.onnxruntime as ort

KEY = {"random_key": np.array([-(2**40) + 12345], np.int64)}


def graph() -> Any:
    """Bernoulli, dropout and classes of one input, and numbers of both distributions like it."""
    ratio = helper.make_tensor("ratio", TensorProto.FLOAT, [], [0.4])
    training = helper.make_tensor("training", TensorProto.BOOL, [], [True])
    nodes = [
        helper.make_node("Bernoulli", ["x"], ["drawn"]),
        helper.make_node("Dropout", ["x", "ratio", "training"], ["kept", "mask"]),
        helper.make_node("RandomUniformLike", ["x"], ["uniform"], low=-1.0, high=3.0),
        helper.make_node("RandomUniformLike", ["x"], ["seeded"], seed=5.0),
        helper.make_node("RandomUniformLike", ["x"], ["double"], dtype=TensorProto.DOUBLE),
        helper.make_node("RandomNormalLike", ["x"], ["normal"]),
    ]
    outputs = ["drawn", "kept", "mask", "uniform", "seeded", "double", "normal"]
    infos = [helper.make_empty_tensor_value_info(name) for name in outputs]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 37])
    made = helper.make_graph(nodes, "g", [x], infos, [ratio, training])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


@pytest.mark.parametrize("rows", [1, 50])
def test_compiled(rows: int) -> None:
    x = np.random.default_rng(0).uniform(0, 1, (rows, 37)).astype(np.float32)
    compiled, interpreted = braid.compile(graph()), braid.interpret(graph())
    results, expected = compiled(x, **KEY), interpreted(x, **KEY)
    for result, wanted in zip(results[:-1], expected[:-1], strict=True):
        np.testing.assert_array_equal(result, wanted)
    np.testing.assert_allclose(results[-1], expected[-1], rtol=0, atol=1e-6)
    again = compiled(x)
    np.testing.assert_array_equal(again[4], results[4])  # which has a seed
    assert any((a != b).any() for a, b in zip(again, compiled(x), strict=True))


def test_session(tmp_path: Any) -> None:
    """In ONNX Runtime's API, the key is no input."""
    path = tmp_path / "model.onnx"
    save(graph(), path)
    session = ort.InferenceSession(str(path))
    assert [each.name for each in session.get_inputs()] == ["x"]
    feed = {"x": np.full((40, 37), 0.5, np.float32)}
    first, second = (session.run(["drawn"], feed)[0] for _ in range(2))
    assert 0.4 < first.mean() < 0.6 and (first != second).any()
    braid.compile(str(path)).save(tmp_path / "model.braid")
    loaded = braid.load(tmp_path / "model.braid")
    assert (loaded(feed["x"])[0] != loaded(feed["x"])[0]).any()


def test_buckets_streams_and_sessions() -> None:
    """Whatever calls a model may leave the key out."""
    step = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["": 22]>
        step (float[n,8] x, float[n,8] past) => (float[n,8] y, float[n,8] present) {
          drawn = RandomUniformLike (x)
          present = Add (past, drawn)
          y = Add (x, present)
        }
    """)
    x = np.zeros((3, 8), np.float32)
    for model in (braid.compile(step, shape_buckets={"n": [1, 3]}), braid.compile(step)):
        first, second = (model(x, x)[0] for _ in range(2))
        assert (first != second).any()
        session = model.session({"past": "present"})
        first, second = session(x=x), session(x=x)
        assert ((first > 0) & (first < second)).all()
    with braid.compile(step, shapes={"x": (3, 8), "past": (3, 8)}).stream([(x, x)] * 2) as results:
        first, second = (y for y, _ in results)
        assert (first != second).any()
