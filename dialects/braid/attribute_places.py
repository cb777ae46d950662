"""On which ops the facts that people write mean something: elsewhere they would be ignored.

Other attributes are decisions, which passes write.
"""

from collections.abc import Mapping
from typing import cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Attribute, Operation

from braid.dialects.braid.attribute_names import (
    BRANCH_PROBABILITY,
    CASE_PROBABILITIES,
    CHECK_COUNT,
    PADDED_FROM,
    PARAMETERS,
    PROFILE,
    PROFILE_KEYS,
    REORDER_COSTS,
    TARGET,
    TRIP_COUNT,
)

_MODULE = ("builtin.module",)

_PLACES: Mapping[str, tuple[str, ...]] = {
    BRANCH_PROBABILITY: ("scf.if",),
    CASE_PROBABILITIES: ("scf.index_switch",),
    TRIP_COUNT: ("scf.for", "scf.while"),
    CHECK_COUNT: ("scf.while",),
    PROFILE_KEYS: ("scf.if", "scf.index_switch", "scf.for", "scf.while"),
    PROFILE: _MODULE,
    PARAMETERS: _MODULE,
    PADDED_FROM: _MODULE,
    REORDER_COSTS: _MODULE,
    TARGET: _MODULE,
}


def misplaced(name: str, attribute: Attribute, op: Operation) -> tuple[str, str] | None:
    """What is wrong with the attribute of this name on `op`, and the way out; None if nothing."""
    places = _PLACES.get(name)
    if places is None:
        return None
    if op.name not in places:
        return (
            f"'{name}' of '{op.name}' op means nothing there, it is for {_listed(places)}",
            _instead(op) or "move it there, or remove it",
        )
    if name == PROFILE_KEYS:
        known = _keys(op)
        for key in cast(DictionaryAttr, attribute).data:
            if key not in known:
                return (
                    f"'{name}' of '{op.name}' op has a key '{key}', which means nothing there",
                    f"expected {', '.join(known)}",
                )
    return None


def _instead(op: Operation) -> str:
    """What tells how often the regions of `op` run."""
    counts = (BRANCH_PROBABILITY, CASE_PROBABILITIES, TRIP_COUNT)
    return next((f"'{op.name}' takes '{each}'" for each in counts if op.name in _PLACES[each]), "")


def _keys(op: Operation) -> tuple[str, ...]:
    if isinstance(op, scf.IfOp):
        return ("condition", "then", "else")
    if isinstance(op, scf.IndexSwitchOp):
        return ("condition", *map(str, range(len(op.case_regions))), "default")
    return ("enter", "next")


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(f"'{name}'" for name in names)
