"""A model's inputs and outputs: their names (`braid.name`), and which are text or mappings."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute

from braid.dialects.braid.attribute_names import NAME

RANDOM = "random"
Kind: TypeAlias = tuple[str | int, ...] | str | None
"""The kind of an input or output that is no array of numbers: text (None), or mappings of keys.

`RANDOM` is that of an input which calls leave out, for a number that is drawn at each.
"""


def input_names(function: func.FuncOp) -> tuple[str, ...]:
    """Return the names of the inputs in order; the default name is `input<i>`."""
    return _names(function.arg_attrs, len(function.function_type.inputs), "input")


def output_names(function: func.FuncOp) -> tuple[str, ...]:
    """Return the names of the outputs in order; the default name is `output<i>`."""
    return _names(function.res_attrs, len(function.function_type.outputs), "output")


def name_dictionaries(names: Iterable[str]) -> ArrayAttr[DictionaryAttr]:
    """Return the `arg_attrs` or `res_attrs` that hold these names."""
    return ArrayAttr(DictionaryAttr({NAME: StringAttr(name)}) for name in names)


def _names(
    dictionaries: ArrayAttr[DictionaryAttr] | None, count: int, kind: str
) -> tuple[str, ...]:
    names = [f"{kind}{index}" for index in range(count)]
    for index, dictionary in enumerate(dictionaries or ()):
        name = dictionary.data.get(NAME)
        if isinstance(name, StringAttr):
            names[index] = name.data
    return tuple(names)


def boundary_attribute(
    texts: Iterable[str], inputs: Mapping[str, Kind], outputs: Mapping[str, Kind]
) -> DictionaryAttr:
    """Return `braid.boundary`.

    Text is a unit attribute, a mapping the array of its keys, and a random input a string.
    """
    kinds = {
        side: DictionaryAttr({name: _kind_attribute(kind) for name, kind in ports.items()})
        for side, ports in (("inputs", inputs), ("outputs", outputs))
    }
    return DictionaryAttr({"texts": ArrayAttr(map(StringAttr, texts)), **kinds})


def _kind_attribute(kind: Kind) -> Attribute:
    if kind is None:
        return UnitAttr()
    if isinstance(kind, str):
        return StringAttr(kind)
    return ArrayAttr(StringAttr(k) if isinstance(k, str) else IntegerAttr(k, i64) for k in kind)


def read_boundary(attribute: Attribute) -> "tuple[list[str], dict[str, Kind], dict[str, Kind]]":
    """Return texts, and the kinds of inputs and of outputs. Raises ValueError for another form."""
    if not isinstance(attribute, DictionaryAttr):
        raise ValueError("expected a dictionary")
    texts = attribute.data.get("texts")
    if not isinstance(texts, ArrayAttr):
        raise ValueError("expected an array of texts")
    inputs, outputs = (_kinds_of(attribute.data.get(side)) for side in ("inputs", "outputs"))
    return [str(_key_of(text)) for text in cast("ArrayAttr[Attribute]", texts)], inputs, outputs


def _kinds_of(attribute: Attribute | None) -> dict[str, Kind]:
    if not isinstance(attribute, DictionaryAttr):
        raise ValueError("expected dictionaries of inputs and outputs")
    return {name: _kind_of(own) for name, own in attribute.data.items()}


def _kind_of(attribute: Attribute) -> Kind:
    if isinstance(attribute, UnitAttr):
        return None
    if attribute == StringAttr(RANDOM):
        return RANDOM
    if not isinstance(attribute, ArrayAttr):
        raise ValueError(f'expected a unit attribute, "{RANDOM}" or an array of keys')
    return tuple(_key_of(key) for key in cast("ArrayAttr[Attribute]", attribute))


def _key_of(attribute: Attribute) -> str | int:
    if isinstance(attribute, StringAttr):
        return attribute.data
    if isinstance(attribute, IntegerAttr):
        return int(attribute.value.data)
    raise ValueError("expected strings or integers")
