"""Check attributes that people write by hand: their contents, and the ops that they stand on.

Probabilities and trip counts are checked where they are read, since their ranges matter too.
Other attributes are decisions, which passes write.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    DenseArrayBase,
    DictionaryAttr,
    Float16Type,
    Float32Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    f32,
)
from xdsl.ir import Attribute, Operation

from braid.dialects.braid.attribute_names import (
    APPENDED,
    BOUNDARY,
    BRANCH_PROBABILITY,
    BRANCH_SIZE_CHECKS,
    CANDIDATES,
    CASE_PROBABILITIES,
    CHECK_COUNT,
    CLUSTER,
    COLOCATE,
    COMPUTE_TYPE,
    DEVICE,
    DIM_ORDER,
    LAYOUT_SECONDS,
    MEASURED_WITH,
    MERGED_GROUPS,
    NAME,
    PADDED_FROM,
    PAIRABLE,
    PARAMETERS,
    PHASE,
    PHASE_OUTPUTS,
    PRODUCT_TYPE,
    PROFILE,
    PROFILE_KEYS,
    REORDER_COSTS,
    REPLICAS,
    SCHEDULE,
    SECONDS,
    SETTINGS,
    SIZE_CHECKS,
    SPECIALIZED,
    STATE,
    SYMBOLS,
    TARGET,
    TOLERANCE,
    TRIP_COUNT,
    VALUE_SIZES,
)
from braid.dialects.braid.attributes import TargetAttr
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.ports import read_boundary
from braid.dialects.braid.settings import SettingsAttr
from braid.dialects.braid.sizes import SizesAttr, SymbolAttr


@dataclass(frozen=True)
class _Kind:
    """Attributes of one of these classes; `what` tells people."""

    classes: tuple[type[Attribute], ...]
    what: str
    fits: Callable[[Attribute], bool] = lambda attribute: True
    """Return whether the attribute has one of these classes and the right contents."""

    def holds(self, attribute: Attribute) -> bool:
        return self._is_of_classes(attribute) and self.fits(attribute)

    def _is_of_classes(self, attribute: Attribute) -> bool:
        if isinstance(attribute, IntegerAttr):
            # An index, or an i1 such as `true`, is not a number.
            kind = cast("IntegerAttr[IntegerType | IndexType]", attribute).type
            is_number = isinstance(kind, IntegerType) and kind.width.data > 1
            return IntegerAttr in self.classes and is_number
        return isinstance(attribute, self.classes)


def _is_time(attribute: Attribute) -> bool:
    return isinstance(attribute, FloatAttr) and 0 <= attribute.value.data < math.inf


def _is_positive(attribute: Attribute) -> bool:
    return isinstance(attribute, FloatAttr) and 0 < attribute.value.data < math.inf


def _holds_priorities(attribute: Attribute) -> bool:
    return isinstance(attribute, DictionaryAttr) and all(
        isinstance(value, IntegerAttr) and value.value.data >= 1
        for value in attribute.data.values()
    )


def _holds_times(attribute: Attribute) -> bool:
    return isinstance(attribute, DictionaryAttr) and all(map(_is_time, attribute.data.values()))


def _holds_strings(attribute: Attribute) -> bool:
    elements = cast("ArrayAttr[Attribute]", attribute).data
    return all(isinstance(element, StringAttr) for element in elements)


def _is_boundary(attribute: Attribute) -> bool:
    try:
        read_boundary(attribute)
    except ValueError:
        return False
    return True


def _holds_pairs(attribute: Attribute) -> bool:
    return all(
        isinstance(pair, ArrayAttr)
        and len(cast("ArrayAttr[Attribute]", pair)) == 2
        and _holds_strings(cast(Attribute, pair))
        for pair in cast("ArrayAttr[Attribute]", attribute)
    )


def _holds_symbols(attribute: Attribute) -> bool:
    values = cast(DictionaryAttr, attribute).data.values()
    return all(isinstance(value, SymbolAttr) for value in values)


def _holds_size_checks(attribute: Attribute) -> bool:
    return all(map(_is_size_check, cast("ArrayAttr[Attribute]", attribute)))


def _is_size_check(attribute: Attribute) -> bool:
    if not isinstance(attribute, DictionaryAttr):
        return False
    size, message = (attribute.data.get(key) for key in ("size", "message"))
    is_one = isinstance(size, SizesAttr) and len(size.texts) == 1
    return is_one and isinstance(message, StringAttr)


def _holds_branch_checks(attribute: Attribute) -> bool:
    return all(
        isinstance(checks, ArrayAttr) and _holds_size_checks(cast("ArrayAttr[Attribute]", checks))
        for checks in cast("ArrayAttr[Attribute]", attribute)
    )


def _names_regions(attribute: Attribute) -> bool:
    """Return whether the keys are those of control flow; the numbers are those of cases."""
    return isinstance(attribute, DictionaryAttr) and all(
        (key in PROFILE_KEY_NAMES or key.isdecimal()) and isinstance(value, StringAttr)
        for key, value in attribute.data.items()
    )


COMPUTE_TYPES: Mapping[str, type[Attribute]] = {
    "f16": Float16Type,
    "bf16": BFloat16Type,
    "f32": Float32Type,
}
"""The types that devices may compute in by themselves, by name."""

PROFILE_KEY_NAMES = ("condition", "then", "else", "default", "enter", "next")
"""`braid.profile_keys` may hold these in addition to the numbers of cases."""

_SIZE_CHECK = '{size = #braid.sizes<["n - 4"]>, message = "…"}'

_KINDS: Mapping[str, _Kind] = {
    NAME: _Kind((StringAttr, ArrayAttr), "a string, or an array of strings"),
    PARAMETERS: _Kind((StringAttr,), "the path of a file, a string"),
    PAIRABLE: _Kind((UnitAttr,), "a unit attribute"),
    MERGED_GROUPS: _Kind((IntegerAttr,), "a number of groups, such as 2 : i64"),
    TARGET: _Kind((TargetAttr,), 'a target, such as #braid.target<"host">'),
    SETTINGS: _Kind((SettingsAttr,), 'settings, such as #braid.settings<{numerics = "strict"}>'),
    DEVICE: _Kind((StringAttr,), 'the name of a device, such as "cpu:0"'),
    REPLICAS: _Kind((ArrayAttr,), 'an array of devices, such as ["cpu:1"]'),
    CANDIDATES: _Kind(
        (DictionaryAttr,),
        "a dictionary from backends to priorities, 1 the best, such as {gpu = 1, cpu = 2}",
        _holds_priorities,
    ),
    COLOCATE: _Kind((StringAttr,), "a string"),
    CLUSTER: _Kind((IntegerAttr,), "the number of a cluster, such as 3 : i64"),
    PRODUCT_TYPE: _Kind((BFloat16Type,), "bf16"),
    COMPUTE_TYPE: _Kind(tuple(COMPUTE_TYPES.values()), f"one of {', '.join(COMPUTE_TYPES)}"),
    TOLERANCE: _Kind((FloatAttr,), "a number above 0, such as 1.0e-2 : f64", _is_positive),
    PROFILE_KEYS: _Kind(
        (DictionaryAttr,),
        f"a dictionary of strings under {', '.join(PROFILE_KEY_NAMES)} or the numbers of cases",
        _names_regions,
    ),
    SECONDS: _Kind((FloatAttr,), "a finite number from 0 on, such as 2.0e-3 : f64", _is_time),
    LAYOUT_SECONDS: _Kind(
        (DictionaryAttr,),
        'a dictionary from layouts to seconds, such as {"ab->ba" = 2.0e-3 : f64}',
        _holds_times,
    ),
    MEASURED_WITH: _Kind((ArrayAttr,), "an array of names of ops, strings", _holds_strings),
    BOUNDARY: _Kind(
        (DictionaryAttr,),
        'a dictionary, such as {texts = ["a"], inputs = {x}, outputs = {p = [0, 1]}}',
        _is_boundary,
    ),
    SPECIALIZED: _Kind((DictionaryAttr,), "a dictionary of sizes, such as {new = 1 : i64}"),
    PHASE: _Kind((IntegerAttr,), "the number of a phase, such as 1 : i64"),
    PHASE_OUTPUTS: _Kind(
        (ArrayAttr,), 'for each output its name and that of a value, ["y", "v"]', _holds_pairs
    ),
    STATE: _Kind((StringAttr,), "the name of an output"),
    DIM_ORDER: _Kind((DenseArrayBase,), "numbers of dims, such as array<i64: 2, 0, 1, 3>"),
    APPENDED: _Kind((UnitAttr,), "a unit attribute"),
    VALUE_SIZES: _Kind((SizesAttr,), 'sizes, such as #braid.sizes<["count"]>'),
    SYMBOLS: _Kind(
        (DictionaryAttr,),
        "a dictionary from names to symbols, such as {batch = #braid.symbol<{min = 1 : i64}>}",
        _holds_symbols,
    ),
    SIZE_CHECKS: _Kind((ArrayAttr,), f"an array of {_SIZE_CHECK}", _holds_size_checks),
    BRANCH_SIZE_CHECKS: _Kind(
        (ArrayAttr,), f"for each region an array of {_SIZE_CHECK}", _holds_branch_checks
    ),
    SCHEDULE: _Kind((DictionaryAttr,), "a dictionary with a family and a schedule"),
}


def expected_kind(name: str, attribute: Attribute) -> str | None:
    """Return the expected form of the attribute of this name; None if it is valid."""
    kind = _KINDS.get(name)
    return None if kind is None or kind.holds(attribute) else kind.what


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
    SPECIALIZED: ("func.func",),
    PHASE: ("func.func",),
    PHASE_OUTPUTS: _MODULE,
    MERGED_GROUPS: ("braid.conv",),
    PAIRABLE: ("braid.conv", "braid.matmul"),
    PRODUCT_TYPE: ("braid.conv", "braid.matmul"),
    REORDER_COSTS: _MODULE,
    TARGET: _MODULE,
    SETTINGS: _MODULE,
    SYMBOLS: ("func.func",),
    SIZE_CHECKS: ("func.func",),
    BRANCH_SIZE_CHECKS: ("scf.if", "scf.index_switch"),
}


def misplaced(name: str, attribute: Attribute, op: Operation) -> tuple[str, str] | None:
    """Return the error in this attribute of `op`, and the hint; None if there is none."""
    places = _PLACES.get(name)
    if places is None:
        return None
    if op.name not in places:
        return (
            f"'{name}' of '{op.name}' op means nothing there, it is for {_listed(places)}",
            _instead(op) or "move it there, or remove it",
        )
    if name == PRODUCT_TYPE and (kind := element_type_of(op.results[0])) != f32:
        return (
            f"'{name}' of '{op.name}' op with a result of {kind} means nothing there, "
            "it is for results of f32",
            "remove it",
        )
    if name == MERGED_GROUPS:
        return _wrong_groups(cast("IntegerAttr[IntegerType]", attribute).value.data, op)
    if name == PROFILE_KEYS:
        known = _keys(op)
        for key in cast(DictionaryAttr, attribute).data:
            if key not in known:
                return (
                    f"'{name}' of '{op.name}' op has a key '{key}', which means nothing there",
                    f"expected {', '.join(known)}",
                )
    return None


def _wrong_groups(count: int, op: Operation) -> tuple[str, str] | None:
    kind = element_type_of(op.results[0])
    if not isinstance(kind, IntegerType):
        return (
            f"'{MERGED_GROUPS}' of '{op.name}' op with a result of {kind} means nothing there, "
            "it is for integers",
            "remove it",
        )
    groups = cast("IntegerAttr[IntegerType]", op.attributes["groups"]).value.data
    if count > 0 and groups % count == 0:
        return None
    return (
        f"'{MERGED_GROUPS}' of '{op.name}' op is {count}, expected what divides {groups} groups",
        "run select-convolution-groups, or remove it",
    )


def _instead(op: Operation) -> str:
    """Return a hint which attribute tells how often the regions of `op` run, or an empty text."""
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
