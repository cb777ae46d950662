"""Fusion rules: which kinds of ops fuse into which. Data, replaceable by the user."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from xdsl.ir import Operation

from braid.dialects.braid.elementwise import ElementwiseOp
from braid.errors import BraidError, SourceLocation

DEFAULT_RULES = Path(__file__).with_name("fusion_rules.toml")


@dataclass(frozen=True)
class FusionRules:
    """`pairs` holds (kind of the producer, kind of the consumer); see `fusion_rules.toml`."""

    pairs: frozenset[tuple[str, str]]
    anchors: frozenset[str]

    def allow(self, producer: Operation, consumer: Operation) -> bool:
        """Whether `producer` may join the group of `consumer`, which reads its result."""
        return (kind_of(producer), kind_of(consumer)) in self.pairs

    def is_anchor(self, op: Operation) -> bool:
        """Whether a group may hold only one op such as `op`."""
        return kind_of(op) in self.anchors


def kind_of(op: Operation) -> str:
    """The kind of `op` in rules: `elementwise`, or its name without the dialect."""
    return "elementwise" if isinstance(op, ElementwiseOp) else op.name.removeprefix("braid.")


@cache
def load_fusion_rules(path: Path = DEFAULT_RULES) -> FusionRules:
    """The rules in the TOML file at `path`.

    Raises `BraidError` where the file cannot be read or does not have the form described in
    `fusion_rules.toml`.
    """
    location = SourceLocation(str(path))
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BraidError(f"cannot read fusion rules: {error}", location=location) from error
    unknown = sorted(set(data) - {"anchors", "rule"})
    if unknown:
        raise _malformed(f"unknown keys {unknown}, expected 'anchors' and 'rule'", location)
    pairs: set[tuple[str, str]] = set()
    for rule in _list(data, "rule", dict, location):
        producers = _list(rule, "producers", str, location)
        consumers = _list(rule, "consumers", str, location)
        pairs |= {(producer, consumer) for producer in producers for consumer in consumers}
    return FusionRules(frozenset(pairs), frozenset(_list(data, "anchors", str, location)))


def _list(table: dict[str, Any], key: str, element: type, location: SourceLocation) -> list[Any]:
    value = table.get(key, [])
    if not isinstance(value, list):
        raise _malformed(f"'{key}' is {value!r}, expected a list", location)
    elements = cast(list[Any], value)
    for item in elements:
        if not isinstance(item, element):
            raise _malformed(f"'{key}' holds {item!r}, expected {element.__name__}", location)
    return elements


def _malformed(message: str, location: SourceLocation) -> BraidError:
    return BraidError(f"malformed fusion rules: {message}", location=location)
