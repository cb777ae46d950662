"""Fusion rules: which kinds of ops fuse into which. Data, replaceable by the user."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from xdsl.ir import Operation

from braid.dialects.braid.elementwise import ElementwiseOp
from braid.passes.fusion.tile_rules import NEVER, TileRule
from braid.support.byte_sizes import parse_size
from braid.support.entry_points import installed_paths
from braid.support.errors import BraidError, SourceLocation
from braid.support.input_files import read_toml, reason

_DEFAULT_RULES = Path(__file__).with_name("fusion_rules.toml")


@dataclass(frozen=True)
class FusionRules:
    """`pairs` holds (kind of the producer, kind of the consumer); see `fusion_rules.toml`."""

    pairs: frozenset[tuple[str, str]]
    anchors: frozenset[str]
    tiles: Mapping[tuple[str, str], TileRule]

    def allow(self, producer: Operation, consumer: Operation) -> bool:
        """Return whether `producer` may join the group of `consumer`, which reads its result."""
        return (kind_of(producer), kind_of(consumer)) in self.pairs

    def is_anchor(self, op: Operation) -> bool:
        """Return whether a group may hold only one op such as `op`."""
        return kind_of(op) in self.anchors

    def joins_tiles(self, producer: Operation, consumer: Operation, bytes: int) -> bool:
        """Return whether a tensor of this many bytes between the two may exist as tiles only."""
        return bytes >= self._tile_rule(producer, consumer).joins

    def starts_tiles(self, producer: Operation, consumer: Operation, bytes: int) -> bool:
        """Return whether such a tensor is reason enough for a group that is computed by tiles."""
        starts = self._tile_rule(producer, consumer).starts
        return starts is not None and bytes >= starts

    def is_last(self, producer: Operation, consumer: Operation) -> bool:
        """Return whether nothing that `producer` reads joins a group that it joined for
        `consumer`.
        """
        return self._tile_rule(producer, consumer).last

    def _tile_rule(self, producer: Operation, consumer: Operation) -> TileRule:
        return self.tiles.get((kind_of(producer), kind_of(consumer)), NEVER)


def kind_of(op: Operation) -> str:
    """Return the kind of `op` in rules: `elementwise`, or its name without the dialect."""
    return "elementwise" if isinstance(op, ElementwiseOp) else op.name.removeprefix("braid.")


RULES_GROUP = "braid.fusion_rules"
"""Group of the entry points of other packages: paths of files like `fusion_rules.toml`, whose rules
hold besides the default ones. Kinds of their ops are whole names, such as `toy.rms_norm`."""


def fusion_rules(name: str) -> FusionRules:
    """Return the rules in the file `name`; for `default` braid's and those of installed packages.

    Raises `BraidError` as `load_fusion_rules`, and where an entry point cannot be loaded.
    """
    if name != "default":
        return load_fusion_rules(Path(name))
    rules = load_fusion_rules(_DEFAULT_RULES)
    for added in map(load_fusion_rules, installed_paths(RULES_GROUP).values()):
        rules = FusionRules(
            rules.pairs | added.pairs, rules.anchors | added.anchors, {**rules.tiles, **added.tiles}
        )
    return rules


@cache
def load_fusion_rules(path: Path) -> FusionRules:
    """Return the rules in the TOML file at `path`.

    Raises `BraidError` where the file cannot be read or does not have the form described in
    `fusion_rules.toml`.
    """
    location = SourceLocation(str(path))
    try:
        data = read_toml(path)
    except (OSError, ValueError) as error:
        raise BraidError(f"cannot read fusion rules: {reason(error)}", location=location) from error
    unknown = sorted(set(data) - {"anchors", "rule", "tiles"})
    if unknown:
        message = f"unknown keys {unknown}, expected 'anchors', 'rule' and 'tiles'"
        raise _malformed(message, location)
    pairs: set[tuple[str, str]] = set()
    for rule in _list(data, "rule", dict, location):
        producers = _list(rule, "producers", str, location)
        consumers = _list(rule, "consumers", str, location)
        pairs |= {(producer, consumer) for producer in producers for consumer in consumers}
    anchors = frozenset(_list(data, "anchors", str, location))
    return FusionRules(frozenset(pairs), anchors, _tile_rules(data, location))


def _tile_rules(data: dict[str, Any], location: SourceLocation) -> dict[tuple[str, str], TileRule]:
    """Return the rules for tiles by pair; of several for one pair the last one holds."""
    rules: dict[tuple[str, str], TileRule] = {}
    for entry in _list(data, "tiles", dict, location):
        producers = _list(entry, "producers", str, location)
        consumers = _list(entry, "consumers", str, location)
        starts = entry.get("starts")
        rule = TileRule(
            _bytes(entry.get("joins", 0), "joins", location),
            None if starts is None else _bytes(starts, "starts", location),
            bool(entry.get("last", False)),
        )
        rules.update({(p, c): rule for p in producers for c in consumers})
    return rules


def _bytes(value: Any, key: str, location: SourceLocation) -> int:
    try:
        return parse_size(value)
    except (ValueError, TypeError) as error:
        raise _malformed(f"'{key}' is {value!r}, expected bytes: {error}", location) from error


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
