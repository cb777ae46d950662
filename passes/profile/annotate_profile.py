"""`annotate-profile`: a profile becomes branch probabilities, trip counts and times of ops."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, ModuleOp, StringAttr, UnitAttr, f64
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from braid.analysis.execution_counts import BRANCH_PROBABILITY, PROFILE, TRIP_COUNT
from braid.analysis.op_seconds import SECONDS
from braid.analysis.profile import Profile, read_profile
from braid.analysis.remarks import emit_remark
from braid.dialects.braid.names import names_of

PROFILE_KEYS = "braid.profile_keys"
"""On control flow: the ops whose counts tell about it, `condition`, `then` and `else` of a
branch, `enter` and `next` of a loop."""

_TOLERANCE = 0.01
"""Counts of a profile that was cut off in the middle of a run differ by a little."""


@dataclass(frozen=True)
class AnnotateProfilePass(ModulePass):
    """Writes what a profile says about control flow and about times to the ops.

    In: a module whose control flow has `braid.profile_keys`. Out: `braid.branch_probability` on
    `scf.if`, `braid.trip_count` on `scf.for` and `scf.while`, `braid.seconds` on ops that were
    measured, `braid.profile` on the module. With counts of TensorFlow the trip count is
    next / enter + 1; `trip-count=total` takes (next + 1) / enter instead, which is the same for
    a loop that is entered once. What has no counts, or counts that contradict each other, gets
    no attribute but a remark, and later passes their defaults.

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
        for inner in op.walk():
            if isinstance(inner, scf.IfOp):
                self._set(inner, BRANCH_PROBABILITY, self._probability(inner, profile))
            elif isinstance(inner, scf.ForOp | scf.WhileOp):
                self._set(inner, TRIP_COUNT, self._trips(inner, profile))
            elif (measured := profile.find(names_of(inner))) and measured.count:
                self._set(inner, SECONDS, measured.seconds / measured.count)

    def _set(self, op: Operation, attribute: str, value: float | None) -> None:
        if value is not None:
            op.attributes[attribute] = FloatAttr(value, f64)

    def _probability(self, op: scf.IfOp, profile: Profile) -> float | None:
        keys = _keys(op)
        whole, then, other = (_count(profile, keys, k) for k in ("condition", "then", "else"))
        if whole is None and then is not None and other is not None:
            whole = then + other
        if then is None and whole is not None and other is not None:
            then = whole - other
        if not whole or then is None:
            return self._warn(op, "has no counts in the profile; a default is taken")
        total = then + (whole - then if other is None else other)
        if not 0 <= then <= whole or abs(total - whole) > _TOLERANCE * whole:
            message = f"has counts that contradict each other: {then:g} + {total - then:g} of "
            return self._warn(op, f"{message}{whole:g}; a default is taken")
        return then / whole

    def _trips(self, op: scf.ForOp | scf.WhileOp, profile: Profile) -> float | None:
        keys = _keys(op)
        enter, following = (_count(profile, keys, key) for key in ("enter", "next"))
        own = profile.find(names_of(op))
        if enter is None and own is not None:
            enter = own.count
        if not enter or following is None:
            return self._warn(op, "has no counts in the profile; a default is taken")
        if profile.counts_iterations:
            return following / enter
        return (following + 1) / enter if self.trip_count == "total" else following / enter + 1

    def _warn(self, op: Operation, message: str) -> None:
        name = "+".join(names_of(op)) or op.name
        emit_remark(op, self.name, f"warning: '{name}' {message}", warning=True)


def _keys(op: Operation) -> Mapping[str, str]:
    keys = op.attributes.get(PROFILE_KEYS)
    if not isinstance(keys, DictionaryAttr):
        return {}
    return {key: v.data for key, v in keys.data.items() if isinstance(v, StringAttr)}


def _count(profile: Profile, keys: Mapping[str, str], key: str) -> float | None:
    statistics = profile.find([keys[key]]) if key in keys else None
    return None if statistics is None else statistics.count
