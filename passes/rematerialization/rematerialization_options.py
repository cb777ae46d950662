"""The parameters of `select-rematerialization`: from options of the pass and from attributes."""

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.attribute_names import REMATERIALIZATION
from braid.passes.rematerialization.rematerialization_rules import load_rules
from braid.passes.rematerialization.rematerialization_sets import Criteria
from braid.support.byte_sizes import parse_size
from braid.support.errors import BraidError

SIZES = ("tensor_threshold", "peak_threshold", "jump_threshold", "budget")
THRESHOLDS = (*SIZES[:3], "fusion_rules")
NAMES = (*THRESHOLDS, "mode", "peak", "budget")

Option = int | str


@dataclass(frozen=True)
class Parameters:
    """`criteria` by thresholds or `budget` in bytes, one of them."""

    criteria: Criteria | None = None
    budget: int | None = None


def resolve(function: FuncOp, given: Mapping[str, Option | None]) -> Parameters:
    """Return the parameters for `function`: options that are given, then its attribute, then the
    module's.

    Raises BraidError where neither a threshold nor a budget is given, where both are, and for
    values that make no sense.
    """
    merged: dict[str, Option] = {}
    owner: Operation | None = function
    layers: list[Mapping[str, Option]] = []
    while owner is not None:
        layers.append(_options_of(owner))
        owner = owner.parent_op()
    layers.reverse()
    layers.append({name: value for name, value in given.items() if value is not None})
    for layer in layers:
        # A budget and thresholds exclude each other, so the inner one of them replaces the other.
        for name in THRESHOLDS if "budget" in layer else ():
            merged.pop(name, None)
        if any(name in layer for name in THRESHOLDS):
            merged.pop("budget", None)
        merged.update(layer)
    return _parameters(function, merged)


def _parameters(function: FuncOp, options: Mapping[str, Option]) -> Parameters:
    sizes = {name: _size(function, name, options.get(name)) for name in SIZES}
    has_threshold = any(name in options for name in THRESHOLDS)
    if has_threshold == ("budget" in options):
        problem = "both thresholds and a budget" if has_threshold else "no threshold and no budget"
        raise _error(function, f"select-rematerialization was given {problem}")
    if "budget" in options:
        return Parameters(budget=sizes["budget"])
    mode = options.get("mode", "union")
    if mode not in ("union", "all"):
        raise _error(function, f"mode is '{mode}', expected 'union' or 'all'")
    peak = options.get("peak", "intermediates")
    if peak not in ("intermediates", "all"):
        raise _error(function, f"peak is '{peak}', expected 'intermediates' or 'all'")
    rules = options.get("fusion_rules")
    criteria = Criteria(
        load_rules("default" if rules is None else str(rules)),
        sizes["tensor_threshold"],
        sizes["peak_threshold"],
        sizes["jump_threshold"],
        rules is not None,
        mode == "all",
        peak == "all",
    )
    return Parameters(criteria=criteria)


def _options_of(owner: Operation) -> dict[str, Option]:
    attribute = owner.attributes.get(REMATERIALIZATION)
    if attribute is None:
        return {}
    if not isinstance(attribute, DictionaryAttr):
        raise _error(owner, f"{REMATERIALIZATION} is {attribute}, expected a dictionary")
    unknown = sorted(set(attribute.data) - set(NAMES))
    if unknown:
        raise _error(owner, f"{REMATERIALIZATION} has entries {unknown}, which mean nothing")
    return {name: _plain(owner, name, value) for name, value in attribute.data.items()}


def _plain(owner: Operation, name: str, value: Attribute) -> Option:
    if isinstance(value, IntegerAttr):
        return int(value.value.data)
    if isinstance(value, StringAttr):
        return value.data
    raise _error(owner, f"{name} is {value}, expected an integer or a string")


def _size(owner: Operation, name: str, value: Option | None) -> int | None:
    try:
        return None if value is None else parse_size(value)
    except ValueError as error:
        raise _error(owner, f"{name.replace('_', '-')}: {error}") from None


def _error(owner: Operation, message: str) -> BraidError:
    return BraidError(
        message,
        location=source_location(owner),
        hint="give some of tensor-threshold, peak-threshold, jump-threshold (sizes such as 64MiB), "
        "fusion-rules ('default' or a file), mode (union or all) and peak (intermediates or all), "
        "or a budget alone",
    )
