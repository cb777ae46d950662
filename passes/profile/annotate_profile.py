"""`annotate-profile`: what a profile changes: branch probabilities, trip counts, times of ops.

Decisions weigh ops by the first two (`ExecutionCounts`: layouts, devices, orders, tuning), and take
the times for their costs (`DeviceCosts`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, FloatAttr, ModuleOp, UnitAttr, f64
from xdsl.ir import Attribute, Operation, Region
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.warnings import emit_warning
from braid.analysis.profile.execution_counts import constant_trips, warn_of_other_trips
from braid.analysis.profile.profiled_names import ProfiledNames
from braid.analysis.profile.read_profile import OpStatistics, Profile, read_profile
from braid.dialects.braid.attribute_names import (
    BRANCH_PROBABILITY,
    CASE_PROBABILITIES,
    CHECK_COUNT,
    LAYOUT_SECONDS,
    PROFILE,
    SECONDS,
    TRIP_COUNT,
)
from braid.dialects.braid.measured_times import set_measured
from braid.dialects.braid.names import names_of
from braid.dialects.braid.profile_keys import profile_keys, region_counter
from braid.support.errors import BraidError

_TOLERANCE = 0.01
"""Counts of a profile that was cut off in the middle of a run differ by a little."""

UNSEEN = 1e-3
"""Least probability of a branch: one that a profile never saw still decides where all else ties."""

_Branch = scf.IfOp | scf.IndexSwitchOp
_Loop = scf.ForOp | scf.WhileOp


@dataclass(frozen=True)
class AnnotateProfilePass(ModulePass):
    """Writes a profile's facts about control flow and times to the ops.

    In: a module, as it was when the profile was taken. Out: `braid.branch_probability` on
    `scf.if`, `braid.case_probabilities` on `scf.index_switch`, `braid.trip_count` on `scf.for`
    and `scf.while`, `braid.seconds` (total time by count) on ops that were measured, with
    `braid.layout_seconds` for each choice of layouts in which a kernel ran and
    `braid.measured_with` where other ops ran in the same kernel, `braid.profile` on the module.
    Existing attributes are replaced by those of the profile.

    The probability of a branch is the count of its first op by that of the condition's op. With
    counts of TensorFlow the body of an `scf.while` runs next / enter times and its first region
    once more, an `scf.for` next / enter + 1 times; with `trip-count=total` all of a loop runs
    (next + 1) / enter times (`braid.check_count` says so of a while's first region). Profiles of
    braid count the regions themselves, which is preferred to both. `braid.profile_keys` names the
    ops to count by; where it is missing, or the profile does not know its names, the first named
    op of each region, of the condition and of the block around count. A branch that was seen more
    rarely than `unseen` gets that probability, so that its layouts are not arbitrary.

    An op without counts keeps its attribute. Without one, later passes assume that branches are
    equally likely, and `default-trip-count` for a loop. Counts of branches that contradict their
    condition's, such as 40 and 40 of 100, are divided by the condition's count (0.4 each), or by
    their sum if that is larger; `braid.branch_probability` has a number for each branch then. A
    warning names the op. It also warns of a profile that contradicts the constant bounds of a loop,
    which win, and of one without any op of the module. Raises BraidError for an `unseen` that
    is not from 0 to 0.5.

    ```mlir
    scf.if %c … {braid.profile_keys = {condition = "c", then = "t", else = "e"}}
    // {braid.branch_probability = 0.9 : f64}
    ```
    """

    name = "annotate-profile"

    file: str
    trip_count: Literal["each", "total"] = "each"
    unseen: float = UNSEEN

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Annotate every op of `op` that the profile knows."""
        if not 0 <= self.unseen <= 0.5:
            raise BraidError(
                f"unseen is {self.unseen:g}, expected a probability from 0 to 0.5",
                hint=f"it is the least probability of a branch; {UNSEEN:g} unless given",
            )
        profile = read_profile(Path(self.file))
        counts = _Counts(profile, ProfiledNames(op, profile), self.trip_count == "total")
        op.attributes[PROFILE] = UnitAttr()
        found = False
        for inner in op.walk():
            if isinstance(inner, scf.IfOp | scf.IndexSwitchOp):
                found |= _set_probabilities(inner, counts.shares(inner), self.unseen)
            elif isinstance(inner, scf.ForOp | scf.WhileOp):
                found |= _set_trips(inner, counts)
            elif ran := [each for each in profile.kernels(names_of(inner)) if each.count]:
                found = True
                _set_times(inner, ran)
        if not found and (profile.ops or not profile.sizes):
            emit_warning(
                op,
                f"the profile '{self.file}' has no counts of any op in the module",
                hint="was it taken with another model?",
            )


@dataclass(frozen=True)
class _Counts:
    """The counts of control flow in a profile; a string is the reason why there are none."""

    profile: Profile
    names: ProfiledNames
    total: bool

    def trips(self, op: _Loop) -> float | str:
        """Return iterations of `op` each time that it is entered."""
        entered, iterations = (self._of_region(op, key) for key in ("enter", "next"))
        if entered and iterations is not None:
            return iterations / entered
        enter, following = (self._of_key(op, key) for key in ("enter", "next"))
        if enter is None:
            own = self.names.of_op(op)
            enter = self.names.of_block(op.parent) if own is None else own
        counts_body = following is None
        if following is None:
            following = self._iterations_by_names(op, enter)
        if enter is None or following is None:
            missing = "how often it is entered" if enter is None else "its iterations"
            return f"has no count of {missing} in the profile"
        if not enter:
            if following:
                return (
                    f"has counts that contradict each other: {following:g} iterations though it "
                    "is never entered"
                )
            return "is never entered in the profile"
        if counts_body:
            return following / enter
        if self.total:
            return (following + 1) / enter
        if self.profile.counts_iterations:
            return following / enter
        return following / enter + (0 if isinstance(op, scf.WhileOp) else 1)

    def checks(self, op: _Loop, trips: float) -> float | None:
        """Run of the first region of a while where that is not one more than its trip count."""
        by_keys = self._of_key(op, "next") is not None and self._of_region(op, "next") is None
        return trips if isinstance(op, scf.WhileOp) and by_keys and self.total else None

    def _iterations_by_names(self, op: _Loop, entered: float | None) -> float | None:
        if isinstance(op, scf.ForOp):
            return self.names.of_block(op.body.block)
        body = self.names.of_block(op.after_region.block)
        checks = self.names.of_block(op.before_region.block)
        if body is None and checks is not None and entered is not None and checks >= entered:
            return checks - entered
        return body

    def shares(self, op: _Branch) -> list[float] | str:
        """Return the probability of each region of `op`: then and else, or cases and default.

        Counts that contradict each other are taken as parts of the larger of their sum and the
        condition's count, with a warning: the missing executions took no counted branch.
        """
        regions = _numbered_regions(op)
        taken = [self._of_region(op, key) for key in regions]
        known = [count for count in taken if count is not None]
        if len(known) == len(taken) and sum(known):
            return [count / sum(known) for count in known]
        parts = {key: self._of_branch(op, key, region) for key, region in regions.items()}
        missing = [key for key, count in parts.items() if count is None]
        seen = sum(count for count in parts.values() if count is not None)
        whole = self._of_key(op, "condition")
        if whole is None:
            whole = self.names.of_condition(op) if missing else seen
        if whole is None:
            return "has no count of its condition in the profile"
        if len(missing) > 1:
            return "has no counts of its branches in the profile"
        counts = [whole - seen if count is None else count for count in parts.values()]
        if not whole and not any(counts):
            return "is never reached in the profile"
        if min(counts) < 0 or not whole or abs(sum(counts) - whole) > _TOLERANCE * whole:
            kept = [max(count, 0.0) for count in counts]
            shares = [count / max(whole, sum(kept)) for count in kept]
            written = " + ".join(f"{count:g}" for count in counts)
            problem = f"has counts that contradict each other: {written} of {whole:g}"
            _warn_of(op, f"{problem}; {_listed(shares)} are taken as probabilities")
            return shares
        return [count / sum(counts) for count in counts]

    def _of_branch(self, op: Operation, key: str, region: Region) -> float | None:
        count = self._of_key(op, key)
        if count is None and region.blocks:
            count = self.names.of_block(region.block)
        return count

    def _of_key(self, op: Operation, key: str) -> float | None:
        name = profile_keys(op).get(key)
        statistics = self.profile.find([name]) if name is not None else None
        return None if statistics is None else statistics.count

    def _of_region(self, op: Operation, key: str) -> float | None:
        name = region_counter(op, key)
        statistics = self.profile.find([name]) if name is not None else None
        return None if statistics is None else statistics.count


def _numbered_regions(op: _Branch) -> dict[str, Region]:
    """Return the regions of `op` by their profile keys, in the order in which probabilities
    stand.
    """
    if isinstance(op, scf.IfOp):
        return {"then": op.true_region, "else": op.false_region}
    cases = {str(number): region for number, region in enumerate(op.case_regions)}
    return {**cases, "default": op.default_region}


def _set_probabilities(op: _Branch, shares: list[float] | str, unseen: float) -> bool:
    """Return whether there were probabilities to write."""
    attribute = BRANCH_PROBABILITY if isinstance(op, scf.IfOp) else CASE_PROBABILITIES
    if isinstance(shares, str):
        likely = "both branches count" if isinstance(op, scf.IfOp) else "all cases count"
        return _warn(op, shares, attribute, f"{likely} as equally likely")
    least = min(unseen, 1 / len(shares))
    if abs(sum(shares) - 1) > _TOLERANCE:
        return _set(op, attribute, DenseArrayBase.from_list(f64, [max(s, least) for s in shares]))
    shares = _floored(shares, least)
    if isinstance(op, scf.IfOp):
        return _set(op, attribute, FloatAttr(shares[0], f64))
    return _set(op, attribute, DenseArrayBase.from_list(f64, shares))


def _floored(shares: list[float], least: float) -> list[float]:
    """Return the probabilities of at least `least` each; the others give way in proportion."""
    rare = {index for index, share in enumerate(shares) if share < least}
    while rare:
        rest = sum(share for index, share in enumerate(shares) if index not in rare)
        scale = (1 - least * len(rare)) / rest if rest else 0.0
        scaled = [least if i in rare else share * scale for i, share in enumerate(shares)]
        more = {index for index, share in enumerate(scaled) if share < least - 1e-12}
        if not more:
            return scaled
        rare |= more
    return shares


def _set_trips(op: _Loop, counts: _Counts) -> bool:
    """Return whether there was a trip count to write."""
    trips = counts.trips(op)
    constant = constant_trips(op) if isinstance(op, scf.ForOp) else None
    if isinstance(op, scf.ForOp) and constant is not None:
        if isinstance(trips, str):
            return False
        warn_of_other_trips(op, trips, constant)
        trips = float(constant)
    if isinstance(trips, str):
        return _warn(op, trips, TRIP_COUNT, "the default trip count is taken")
    op.attributes.pop(CHECK_COUNT, None)
    if (checks := counts.checks(op, trips)) is not None:
        op.attributes[CHECK_COUNT] = FloatAttr(checks, f64)
    return _set(op, TRIP_COUNT, FloatAttr(trips, f64))


def _set_times(op: Operation, ran: Sequence[OpStatistics]) -> None:
    """Write the times of `op` as the kernels that `ran`; those in layouts only where there
    is one.
    """
    means = [each.seconds / each.count for each in ran if each.seconds is not None]
    if len(means) < len(ran):
        return  # Counted, but not timed.
    set_measured(op, [name for each in ran for name in each.names])
    _set(op, SECONDS, FloatAttr(sum(means), f64))
    by_layouts = _layout_seconds(ran[0]) if len(ran) == 1 else {}
    if by_layouts:
        _set(op, LAYOUT_SECONDS, DictionaryAttr(by_layouts))
    else:
        op.attributes.pop(LAYOUT_SECONDS, None)


def _layout_seconds(measured: OpStatistics) -> dict[str, Attribute]:
    return {
        choice: FloatAttr(each.seconds / each.count, f64)
        for choice, each in measured.layouts.items()
        if each.count and each.seconds is not None
    }


def _set(op: Operation, name: str, value: Attribute) -> bool:
    op.attributes[name] = value
    return True


def _warn(op: Operation, problem: str, attribute: str, default: str) -> bool:
    kept = f"{attribute} stays as it is" if attribute in op.attributes else default
    _warn_of(op, f"{problem}; {kept}")
    return False


def _warn_of(op: Operation, problem: str) -> None:
    keys = profile_keys(op).values()
    name = "+".join(names_of(op)) or next(iter(keys), op.name)
    emit_warning(op, f"'{name}' {problem}")


def _listed(shares: Sequence[float]) -> str:
    return " and ".join(f"{share:.3g}" for share in shares)
