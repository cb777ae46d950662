"""Random numbers are those of Philox, and have the distribution that each op promises.

Keys are fixed, so that a test passes always or never.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import braid
from braid.dialects.braid.attribute_names import BOUNDARY
from braid.frontends.onnx import import_onnx
from braid.support.errors import BraidError, UnsupportedError

Array = np.ndarray[Any, np.dtype[Any]]
KEY = {"random_key": np.array([0x299F31D0A4093822], np.int64)}
FLOATS = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.float16): TensorProto.FLOAT16,
}


def model(
    op: str,
    inputs: Sequence[tuple[str, int, Sequence[int | str]]] = (),
    outputs: Sequence[str] = ("y",),
    opset: int = 22,
    **attributes: Any,
) -> ModelProto:
    node = helper.make_node(op, [name for name, _, _ in inputs], outputs, name="node", **attributes)
    infos = [helper.make_tensor_value_info(*each) for each in inputs]
    ends = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph([node], "g", infos, ends)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def philox(counter: Sequence[int], key: Sequence[int]) -> list[int]:
    """Philox 4x32-10 in Python's integers, by the paper."""
    (a, b, c, d), (low, high) = counter, key
    for number in range(10):
        if number:
            low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (
            (second >> 32) ^ b ^ low,
            second & 0xFFFFFFFF,
            (first >> 32) ^ d ^ high,
            first & 0xFFFFFFFF,
        )
    return [a, b, c, d]


def test_vectors_of_the_authors() -> None:
    """Random123, `kat_vectors`."""
    assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    pi = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]
    assert philox(pi, [0xA4093822, 0x299F31D0]) == [
        *(0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)
    ]


def uniform_of(seed: float, shape: Sequence[int], kind: Any = np.float32) -> Array:
    code = FLOATS[np.dtype(kind)]
    return braid.interpret(model("RandomUniform", shape=shape, seed=seed, dtype=code))()


def test_elements_are_words_by_position() -> None:
    key = [int(np.float32(3.5).view(np.uint32)), 0]
    words = [philox([i, 0, 0, 0], key) for i in range(20)]
    single, double = (uniform_of(3.5, [4, 5], kind) for kind in (np.float32, np.float64))
    half = uniform_of(3.5, [4, 5], np.float16)
    assert single.reshape(-1).tolist() == [(w[0] >> 8) / 2**24 for w in words]
    assert half.reshape(-1).tolist() == [(w[0] >> 21) / 2**11 for w in words]
    assert double.reshape(-1).tolist() == [((w[0] >> 5 << 26) + (w[1] >> 6)) / 2**53 for w in words]


def test_nodes_without_a_seed_have_streams_of_the_key() -> None:
    key = int(KEY["random_key"][0])
    nodes = [helper.make_node("RandomUniform", [], [name], shape=[3]) for name in "ab"]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "ab"]
    graph = helper.make_graph(nodes, "g", [], outputs)
    both = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    results = braid.interpret(both)(**KEY)
    for stream, result in enumerate(results):
        words = [philox([i, 0, stream, 0], [key & 0xFFFFFFFF, key >> 32]) for i in range(3)]
        assert result.tolist() == [(w[0] >> 8) / 2**24 for w in words]


def chi_square(counts: Array, expected: Array) -> float:
    """Return the deviation in standard deviations, for many degrees of freedom."""
    freedom = len(counts) - 1
    return float((((counts - expected) ** 2 / expected).sum() - freedom) / math.sqrt(2 * freedom))


COUNT = 60_000


def deviations(values: Array, mean: float, variance: float, fourth: float) -> Iterator[float]:
    """How far mean and variance are off, in standard deviations; `fourth` is the fourth moment."""
    values = values.astype(np.float64).reshape(-1) - mean
    yield values.mean() / math.sqrt(variance / values.size)
    yield (np.square(values).mean() - variance) / math.sqrt((fourth - variance**2) / values.size)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("seed", [0.0, 1.0, 42.5])
def test_uniform(seed: float, kind: Any) -> None:
    values = uniform_of(seed, [COUNT], kind)
    assert values.dtype == kind and values.min() >= 0 and values.max() < 1
    counts = np.bincount((values.astype(np.float64) * 128).astype(int), minlength=128)
    assert abs(chi_square(counts, np.full(128, COUNT / 128))) < 4
    step = {2: 2.0**-11, 4: 2.0**-24, 8: 2.0**-53}[np.dtype(kind).itemsize]
    middle = 0.5 - step / 2
    assert all(abs(each) < 4 for each in deviations(values, middle, 1 / 12, 1 / 80))


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("seed", [0.0, 7.0])
def test_normal(seed: float, kind: Any) -> None:
    attributes = {"shape": [COUNT], "seed": seed, "dtype": FLOATS[np.dtype(kind)]}
    values = braid.interpret(model("RandomNormal", **attributes, mean=1.0, scale=2.0))()
    assert values.dtype == kind
    assert all(abs(each) < 4 for each in deviations(values, 1, 4, 3 * 16))
    edges = np.linspace(-2.5, 2.5, 40)
    below = np.array([(1 + math.erf(x / math.sqrt(2))) / 2 for x in edges])
    expected = np.diff(np.concatenate([[0], below, [1]])) * COUNT
    counts = np.bincount(np.searchsorted(edges, (values.astype(np.float64) - 1) / 2), minlength=41)
    assert abs(chi_square(counts, expected)) < 4


def test_like() -> None:
    x = np.zeros((100, 60), np.float32)
    info = ("x", TensorProto.FLOAT, ["n", 60])
    like = model("RandomUniformLike", [info], low=-3.0, high=2.0, dtype=TensorProto.DOUBLE)
    values = braid.interpret(like)(x, **KEY)
    assert values.dtype == np.float64 and values.shape == x.shape
    assert -3 <= values.min() < -2.99 and 1.99 < values.max() < 2
    normal = braid.interpret(model("RandomNormalLike", [info], seed=1.0))(x)
    assert normal.shape == x.shape and normal.dtype == x.dtype


@pytest.mark.parametrize("dtype", [TensorProto.BOOL, TensorProto.INT32, TensorProto.FLOAT16])
def test_bernoulli(dtype: int) -> None:
    p = np.repeat(np.array([0, 0.1, 0.5, 0.9, 1], np.float32), 8000).reshape(5, 8000)
    bernoulli = model("Bernoulli", [("p", TensorProto.FLOAT, [5, "n"])], seed=2.0, dtype=dtype)
    drawn = braid.interpret(bernoulli)(p)
    assert drawn.dtype == helper.tensor_dtype_to_np_dtype(dtype)
    ones = drawn.astype(np.float64).sum(1)
    assert (ones[0], ones[4]) == (0, 8000)
    for count, chance in zip(ones[1:4], (0.1, 0.5, 0.9), strict=True):
        assert abs(count - 8000 * chance) < 4 * math.sqrt(8000 * chance * (1 - chance))


@pytest.mark.parametrize("dtype", [TensorProto.INT32, TensorProto.INT64])
def test_multinomial(dtype: int) -> None:
    chances = np.array([[0.1, 0.2, 0.3, 0.4], [0, 0.5, 0.5, 0]])
    with np.errstate(divide="ignore"):
        weights = (np.log(chances) + 5).astype(np.float32)
    info = ("w", TensorProto.FLOAT, ["n", "classes"])
    drawn = braid.interpret(model("Multinomial", [info], sample_size=8000, seed=4.0, dtype=dtype))(
        weights
    )
    assert drawn.shape == (2, 8000) and drawn.dtype == helper.tensor_dtype_to_np_dtype(dtype)
    for row, expected in zip(drawn, chances, strict=True):
        counts, likely = np.bincount(row, minlength=4), expected > 0
        assert counts[~likely].sum() == 0
        assert abs(chi_square(counts[likely], 8000 * expected[likely])) < 4


DROPOUT = [
    ("x", TensorProto.FLOAT16, ["n", 60]),
    ("ratio", TensorProto.FLOAT, []),
    ("training", TensorProto.BOOL, []),
]


def test_dropout() -> None:
    x = np.random.default_rng(0).uniform(1, 2, (200, 60)).astype(np.float16)
    dropout = braid.interpret(model("Dropout", DROPOUT, ("y", "mask"), seed=-1))
    y, mask = dropout(x, np.float32(0.25), np.bool_(True))
    assert mask.dtype == np.bool_
    assert abs(mask.mean() - 0.75) < 4 * math.sqrt(0.25 * 0.75 / x.size)
    scaled = (x.astype(np.float32) / np.float32(0.75)).astype(np.float16)
    np.testing.assert_array_equal(y, np.where(mask, scaled, 0))
    y, mask = dropout(x, np.float32(0.25), np.bool_(False))
    assert mask.all()
    np.testing.assert_array_equal(y, x)


def test_dropout_of_old_opsets() -> None:
    info = [("x", TensorProto.FLOAT, [50, 60])]
    trained = braid.interpret(model("Dropout", info, ("y", "mask"), 6, ratio=0.25))
    x = np.ones((50, 60), np.float32)
    y, mask = trained(x, **KEY)
    assert mask.dtype == np.float32 and 0.7 < mask.mean() < 0.8
    np.testing.assert_array_equal(y, mask / np.float32(0.75))
    for opset, attributes in ((6, {"is_test": 1}), (7, {})):
        y, mask = braid.interpret(model("Dropout", info, ("y", "mask"), opset, **attributes))(x)
        assert (y == 1).all() and (mask == 1).all()


def test_runs_without_a_seed_differ() -> None:
    info = ("random_key", TensorProto.FLOAT, [2])
    random = braid.interpret(model("RandomUniformLike", [info]))
    assert [spec.name for spec in random.inputs] == ["random_key", "random_key_2"]
    x = np.zeros(2, np.float32)
    assert (random(x) != random(x)).any()
    key = np.array([1], np.int64)
    assert (random(x, key) == random(x, random_key_2=key)).all()
    module = import_onnx(model("RandomUniform", shape=[2])).module
    assert "random" in str(module.attributes[BOUNDARY])


def test_inside_of_control_flow() -> None:
    node = helper.make_node("RandomUniform", [], ["y"], name="node", shape=[2])
    then = helper.make_graph([node], "then", [], [helper.make_empty_tensor_value_info("y")])
    branch = model("If", [("c", TensorProto.BOOL, [])], ("z",), then_branch=then, else_branch=then)
    with pytest.raises(UnsupportedError, match="random numbers inside of control flow"):
        import_onnx(branch)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        ("RandomUniform", [], {"shape": [-1]}, r"shape is \[-1\], expected no negative size"),
        (
            "RandomNormalLike",
            [("x", TensorProto.INT32, [2])],
            {},
            "the result would be of i32, expected floats",
        ),
        (
            "Multinomial",
            [("x", TensorProto.FLOAT, [1, 2])],
            {"sample_size": -1},
            "sample_size is -1",
        ),
        ("ImageDecoder", [("x", TensorProto.UINT8, [9])], {}, "decoded before the model"),
    ],
)
def test_refused(op: str, inputs: Any, attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(BraidError, match=message):
        import_onnx(model(op, inputs, **attributes))
