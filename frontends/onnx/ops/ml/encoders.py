"""`LabelEncoder`, `CategoryMapper` and `OneHotEncoder`: values replaced by others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.relayout import Array
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import apply, cast, reduce, reshape
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.ops.ml.failing import unless_any
from braid.frontends.onnx.ops.ml.lookup import places_of
from braid.frontends.onnx.ops.ml.scores import DOMAIN

_UNUSED = "_Unused"
_Number = np.generic | float
_FINDS_NAN = 4
"""Since this version of the domain NaN is a key like others."""
_KEYS = ("keys_strings", "keys_int64s", "keys_floats", "keys_tensor")
_VALUES = ("values_strings", "values_int64s", "values_floats", "values_tensor")
"""The attributes that may hold the values; exactly one of them is given, and one of `_KEYS`."""


@dataclass(frozen=True)
class _Column:
    """Keys or values; texts as the numbers that represent them."""

    array: Array
    is_text: bool


def _texts(b: Builder, texts: list[str]) -> _Column:
    return _Column(np.array([b.texts.code(text) for text in texts], np.int64), True)


def _looked_up(
    b: Builder, node: Node, keys: _Column, values: _Column, default: _Number
) -> SSAValue:
    """Return the value of each element's key, the default where it is no key."""
    x = node.input(0)
    if len(keys.array) != len(values.array):
        node.fail(f"there are {len(keys.array)} keys, but {len(values.array)} values")
    if not len(keys.array):
        node.fail("there are no keys, expected at least one")
    if (x in b.texts) != keys.is_text or (
        not keys.is_text and to_numpy(element_type_of(x)) != keys.array.dtype
    ):
        kinds = ["text" if is_text else "numbers" for is_text in (x in b.texts, keys.is_text)]
        node.fail(f"its input has {kinds[0]} ({element_type_of(x)}), but the keys are {kinds[1]}")
    table = np.concatenate([values.array, np.array([default]).astype(values.array.dtype)])
    places = places_of(b, x, keys.array, finds_nan=node.domain_opset >= _FINDS_NAN)
    found = b.emit(GatherOp.get(b.constant(table), places, 0))
    return b.as_text(found) if values.is_text else found


@importer("LabelEncoder", domain=DOMAIN)
def label_encoder_of_classes(b: Builder, node: Node) -> SSAValue:
    """Import the texts of classes by their places, or the places by the texts."""
    classes = _texts(b, node.texts("classes_strings", ()))
    places = _Column(np.arange(len(classes.array)), False)
    number, text = node.integer("default_int64", -1), node.text("default_string", _UNUSED)
    return _between(b, node, classes, places, number, text)


@importer("CategoryMapper", domain=DOMAIN)
def category_mapper(b: Builder, node: Node) -> SSAValue:
    """Import the number of a category by its text, or the text by the number."""
    texts = _texts(b, node.texts("cats_strings", ()))
    numbers = _Column(np.array(node.integers("cats_int64s", ()), np.int64), False)
    number, text = node.integer("default_int64", -1), node.text("default_string", _UNUSED)
    return _between(b, node, texts, numbers, number, text)


def _between(
    b: Builder, node: Node, texts: _Column, numbers: _Column, number: int, text: str
) -> SSAValue:
    """Return numbers by texts if the input is text, else texts by numbers."""
    if node.input(0) in b.texts:
        return _looked_up(b, node, texts, numbers, np.int64(number))
    return _looked_up(b, node, numbers, texts, np.int64(b.texts.code(text)))


@importer("LabelEncoder", domain=DOMAIN, since=2)
def label_encoder(b: Builder, node: Node) -> SSAValue:
    """Import the value at the position of the element among the keys."""
    keys, values = _column(b, node, _KEYS), _column(b, node, _VALUES)
    return _looked_up(b, node, keys, values, _default(b, node, values))


def _column(b: Builder, node: Node, names: Sequence[str]) -> _Column:
    """Return the only one of the attributes for texts, integers, floats and tensors."""
    given = [name for name in names if node.has(name)]
    if len(given) != 1:
        node.fail(f"{' and '.join(given) or 'none'} of {', '.join(names)} are given, expected one")
    name, place = given[0], names.index(given[0])
    if place == 0:
        return _texts(b, node.texts(name, ()))
    if place == 1:
        return _Column(np.array(node.integers(name), np.int64), False)
    if place == 2:
        return _Column(np.array(node.numbers(name), np.float32), False)
    return _tensor(b, node, name)


def _tensor(b: Builder, node: Node, name: str) -> _Column:
    texts = node.text_tensor(name)
    if texts is not None:
        return _texts(b, texts)
    found = node.tensor(name)
    return _Column(found.reshape(-1), False)


def _default(b: Builder, node: Node, values: _Column) -> _Number:
    """Return the replacement of an element that is no key."""
    numbers = {
        "default_string": node.text("default_string", _UNUSED),
        "default_int64": node.integer("default_int64", -1),
        "default_float": node.number("default_float", -0.0),
    }
    if node.has("default_tensor"):
        found = _tensor(b, node, "default_tensor")
        if len(found.array) != 1 or found.is_text != values.is_text:
            node.fail("default_tensor is not one element of the type of the values")
        return found.array[0]
    if values.is_text:
        return np.int64(b.texts.code(str(numbers["default_string"])))
    if values.array.dtype.kind == "f":
        return np.float32(numbers["default_float"])
    return np.int64(numbers["default_int64"])


@importer("OneHotEncoder", domain=DOMAIN)
def one_hot_encoder(b: Builder, node: Node) -> SSAValue:
    """Import a new last dim, 1 at the place of the element's category.

    An unknown category is all zeros; without `zeros` a run with one fails.
    """
    x, zeros = node.input(0), node.integer("zeros", 1)
    texts, numbers = node.texts("cats_strings", ()), node.integers("cats_int64s", ())
    if bool(texts) == bool(numbers):
        node.fail("expected one of cats_strings and cats_int64s")
    if (x in b.texts) != bool(texts):
        node.fail(f"its input is {'text' if x in b.texts else 'no text'}, unlike the categories")
    keys = _texts(b, texts).array if texts else np.array(numbers, np.int64)
    wide = cast(b, x, i64)
    shape = extents_of(wide)
    line = [1] * len(shape) + [len(keys)]
    equal = apply(b, "eq", reshape(b, wide, [*shape, 1]), b.constant(keys.reshape(line)))
    found = cast(b, equal, f32)
    if zeros:
        return found
    known = reduce(b, "or", equal, [len(shape)])
    message = "its input has a category that is none of those that it knows, and zeros is 0"
    return unless_any(b, node, apply(b, "not", known), found, message)
