"""`annotate-profile`: a profile becomes branch probabilities, trip counts and times of ops."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import FloatAttr, ModuleOp, UnitAttr, f64
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.warnings import emit_warning
from braid.analysis.execution.profile import Profile, read_profile
from braid.dialects.braid.attribute_names import BRANCH_PROBABILITY, PROFILE, SECONDS, TRIP_COUNT
from braid.dialects.braid.names import names_of
from braid.dialects.braid.profile_keys import profile_keys, region_counter

_TOLERANCE = 0.01
"""Counts of a profile that was cut off in the middle of a run differ by a little."""


@dataclass(frozen=True)
class AnnotateProfilePass(ModulePass):
    """Writes what a profile says about control flow and about times to the ops.

    In: a module whose control flow has `braid.profile_keys`. Out: `braid.branch_probability` on
    `scf.if`, `braid.trip_count` on `scf.for` and `scf.while`, `braid.seconds` (total time by
    count) on ops that were measured, `braid.profile` on the module. Attributes that were there
    give way to what the profile says.

    The probability of a branch is the count of its first op by that of the condition's op. With
    counts of TensorFlow the trip count is next / enter + 1; `trip-count=total` takes
    (next + 1) / enter instead, which is the same for a loop that is entered once. Profiles of
    braid count the regions themselves, which is preferred to both.

    What has no counts, or counts that contradict each other, keeps the attribute that it has;
    without one later passes take 0.5 for a branch and `default-trip-count` for a loop. A warning
    names the op. It also warns of a profile that knows nothing in the module.

    ```mlir
    scf.if %c … {braid.profile_keys = {condition = "c", then = "t", else = "e"}}
    // {braid.branch_probability = 0.9 : f64}
    ```
    """

    name = "annotate-profile"

    file: str
    trip_count: Literal["each", "total"] = "each"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Annotate every op of `op` that the profile knows."""
        profile = read_profile(Path(self.file))
        op.attributes[PROFILE] = UnitAttr()
        found = False
        for inner in op.walk():
            if isinstance(inner, scf.IfOp):
                found |= _set(inner, BRANCH_PROBABILITY, _probability(inner, profile))
            elif isinstance(inner, scf.ForOp | scf.WhileOp):
                found |= _set(inner, TRIP_COUNT, self._trips(inner, profile))
            elif (measured := profile.find(names_of(inner))) and measured.count:
                found |= _set(inner, SECONDS, measured.seconds / measured.count)
        if not found:
            emit_warning(
                op,
                f"the profile '{self.file}' has no counts of any op in the module",
                hint="was it taken with another model?",
            )

    def _trips(self, op: scf.ForOp | scf.WhileOp, profile: Profile) -> float | None:
        entered = _region_count(profile, op, "enter")
        iterations = _region_count(profile, op, "next")
        if entered and iterations is not None:
            return iterations / entered
        enter, following = (_count(profile, op, key) for key in ("enter", "next"))
        own = profile.find(names_of(op))
        if enter is None and own is not None:
            enter = own.count
        if enter is None or following is None:
            missing = "how often it is entered" if enter is None else "its iterations"
            return _warn(op, f"has no count of {missing} in the profile", _LOOP_DEFAULT)
        if not enter:
            if following:
                problem = f"{following:g} iterations though it is never entered"
                return _warn(op, f"has counts that contradict each other: {problem}", _LOOP_DEFAULT)
            return _warn(op, "is never entered in the profile", _LOOP_DEFAULT)
        if profile.counts_iterations:
            return following / enter
        return (following + 1) / enter if self.trip_count == "total" else following / enter + 1


_BRANCH_DEFAULT = "both branches count as equally likely"
_LOOP_DEFAULT = "the default trip count is taken"


def _probability(op: scf.IfOp, profile: Profile) -> float | None:
    taken, other_taken = (_region_count(profile, op, key) for key in ("then", "else"))
    if taken is not None and other_taken is not None and taken + other_taken:
        return taken / (taken + other_taken)
    whole, then, other = (_count(profile, op, key) for key in ("condition", "then", "else"))
    if whole is None and then is not None and other is not None:
        whole = then + other
    if then is None and whole is not None and other is not None:
        then = whole - other
    if whole is None:
        return _warn(op, "has no count of its condition in the profile", _BRANCH_DEFAULT)
    if then is None:
        return _warn(op, "has no counts of its branches in the profile", _BRANCH_DEFAULT)
    if not whole and not then and not other:
        return _warn(op, "is never reached in the profile", _BRANCH_DEFAULT)
    rest = whole - then if other is None else other
    if not 0 <= then <= whole or abs(then + rest - whole) > _TOLERANCE * whole:
        problem = f"{then:g} + {rest:g} of {whole:g}"
        return _warn(op, f"has counts that contradict each other: {problem}", _BRANCH_DEFAULT)
    return then / whole


def _set(op: Operation, attribute: str, value: float | None) -> bool:
    """Whether there was a value to set."""
    if value is not None:
        op.attributes[attribute] = FloatAttr(value, f64)
    return value is not None


def _warn(op: Operation, problem: str, default: str) -> None:
    keys = profile_keys(op).values()
    name = "+".join(names_of(op)) or next(iter(keys), op.name)
    attribute = BRANCH_PROBABILITY if isinstance(op, scf.IfOp) else TRIP_COUNT
    kept = f"{attribute} stays as it is" if attribute in op.attributes else default
    emit_warning(op, f"'{name}' {problem}; {kept}")


def _count(profile: Profile, op: Operation, key: str) -> float | None:
    name = profile_keys(op).get(key)
    statistics = profile.find([name]) if name is not None else None
    return None if statistics is None else statistics.count


def _region_count(profile: Profile, op: Operation, key: str) -> float | None:
    name = region_counter(op, key)
    statistics = profile.find([name]) if name is not None else None
    return None if statistics is None else statistics.count
