"""Ops of `ai.onnx.ml` on text and mappings: random attributes and rows, beside ONNX Runtime."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from test.unit.frontends.onnx.conftest import Array
from test.unit.frontends.onnx.test_text_values import (
    FLOAT,
    INT64,
    ML,
    TEXT,
    both,
    mapping,
    mappings,
    model,
    tensor,
)

Random = np.random.Generator
WORDS = ["", "red", "Red", "blå", "a b", "綠", "1", "-1", "nan", "x" * 40]


def words(random: Random, count: int) -> list[str]:
    return [str(word) for word in random.permutation(WORDS)[:count]]


def texts(random: Random, known: list[str]) -> Array:
    """Rows of one or two columns, of words that are known and others."""
    shape = (int(random.integers(1, 7)), int(random.integers(1, 3)))
    return np.array(random.choice([*known, "other", "綠綠"], shape), dtype=object)


def label_encoder(random: Random) -> tuple[onnx.ModelProto, dict[str, Any]]:
    count = int(random.integers(1, len(WORDS)))
    keys, kind = words(random, count), int(random.integers(4))
    numbers = random.permutation(50)[:count] - 20
    values, result, default = {
        0: ({"values_strings": words(random, count)}, TEXT, {"default_string": "?"}),
        1: ({"values_int64s": numbers.tolist()}, INT64, {"default_int64": -3}),
        2: ({"values_floats": (numbers / 4).tolist()}, FLOAT, {"default_float": 0.5}),
        3: ({"values_strings": words(random, count)}, TEXT, {}),
    }[kind]
    attributes = {**values, **(default if random.random() < 0.6 else {})}
    if kind == 3:  # from numbers to text
        attributes["keys_int64s"] = numbers.tolist()
        given = random.choice([*numbers.tolist(), 99], (int(random.integers(1, 7)), 1))
        x, source = np.array(given, np.int64), INT64
    else:
        attributes["keys_strings"] = keys
        x, source = texts(random, keys), TEXT
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain=ML, **attributes)
    shape = ["n", x.shape[1]]
    return model([node], [tensor("x", source, shape)], [tensor("y", result, shape)]), {"x": x}


def one_hot_encoder(random: Random) -> tuple[onnx.ModelProto, dict[str, Any]]:
    known = words(random, int(random.integers(1, 6)))
    x = texts(random, known)
    node = helper.make_node("OneHotEncoder", ["x"], ["y"], domain=ML, cats_strings=known, zeros=1)
    result = tensor("y", FLOAT, ["n", x.shape[1], len(known)])
    return model([node], [tensor("x", TEXT, ["n", x.shape[1]])], [result]), {"x": x}


def category_mapper(random: Random) -> tuple[onnx.ModelProto, dict[str, Any]]:
    known = words(random, int(random.integers(1, 8)))
    numbers = (random.permutation(30)[: len(known)] - 9).tolist()
    attributes: dict[str, Any] = {"cats_strings": known, "cats_int64s": numbers}
    if random.random() < 0.5:
        x, source, result = texts(random, known), TEXT, INT64
        attributes["default_int64"] = int(random.integers(-9, 9))
    else:
        x = np.array(random.choice([*numbers, 77], (int(random.integers(1, 7)), 1)), np.int64)
        source, result, attributes["default_string"] = INT64, TEXT, "none"
    node = helper.make_node("CategoryMapper", ["x"], ["y"], domain=ML, **attributes)
    shape = ["n", x.shape[1]]
    return model([node], [tensor("x", source, shape)], [tensor("y", result, shape)]), {"x": x}


def dict_vectorizer(random: Random) -> tuple[onnx.ModelProto, dict[str, Any]]:
    count, is_text = int(random.integers(1, 6)), random.random() < 0.5
    known: list[Any] = words(random, count) if is_text else list(range(3, 3 + count))
    given = {key: float(random.integers(9)) for key in known if random.random() < 0.6}
    given[known[0]] = 1.0
    vocabulary = {"string_vocabulary" if is_text else "int64_vocabulary": known}
    node = helper.make_node("DictVectorizer", ["d"], ["y"], domain=ML, **vocabulary)
    source = mapping("d", TEXT if is_text else INT64, FLOAT)
    return model([node], [source], [tensor("y", FLOAT, [1, count])]), {"d": given}


def zip_map(random: Random) -> tuple[onnx.ModelProto, dict[str, Any]]:
    count, is_text = int(random.integers(1, 6)), random.random() < 0.5
    x = random.standard_normal((int(random.integers(1, 7)), count)).astype(np.float32)
    labels: Any = words(random, count) if is_text else (random.permutation(40)[:count] - 9).tolist()
    named = {"classlabels_strings" if is_text else "classlabels_int64s": labels}
    node = helper.make_node("ZipMap", ["x"], ["y"], domain=ML, **named)
    result = mappings("y", TEXT if is_text else INT64)
    return model([node], [tensor("x", FLOAT, ["n", count])], [result]), {"x": x}


GENERATORS: Mapping[str, Callable[[Random], tuple[onnx.ModelProto, dict[str, Any]]]] = {
    "CategoryMapper": category_mapper,
    "DictVectorizer": dict_vectorizer,
    "LabelEncoder": label_encoder,
    "OneHotEncoder": one_hot_encoder,
    "ZipMap": zip_map,
}


@pytest.mark.parametrize("op", GENERATORS)
@pytest.mark.parametrize("seed", range(20))
def test_random_nodes(op: str, seed: int) -> None:
    proto, feed = GENERATORS[op](np.random.default_rng([seed, len(op)]))
    for one, other in zip(*both(proto, feed), strict=True):
        if isinstance(other, list):
            assert one == other
        else:
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_array_equal(one, other)
