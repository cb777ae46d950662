"""Decide which schedules found for a model's kernels stay, by the time of the whole model.

Kernels are timed by themselves, with arguments that lie in no cache of the core. In the model their
operands may have just been written, their weights may come from memory, and their layouts may make
other kernels slower. So the model runs in turns with the old and the new schedules, and each kernel
in it is timed. Schedules of kernels that take longer there are reverted, and the others stay if the
model as a whole is not slower with them.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from braid.tuning.model_runs import Turns
from braid.tuning.turns import MOST_TURNS, TURNS, is_faster, noise, ratio, ratios

MODEL_KIND = "model"
"""Records of comparisons of whole models: the new schedules, and those that were kept."""
LEAST_GAIN = 0.005
"""Part of a model's time by which no two runs of the same program differ in the median of turns,
wherever its code and its arena lie."""
SECONDS = 30.0
"""The seconds after which no further turns are begun."""

Changed = frozenset[str]
"""Keys of the kernels that use a found schedule, among those for which one was found."""
Measure = Callable[[Sequence[Changed], int], Sequence[Turns]]
"""The number of turns of the programs with these kernels."""
Counters = Callable[[], Mapping[str, Sequence[str]]]
"""Returns the names under which kernels of the model with all that was found are profiled,
by key."""


@dataclass(frozen=True)
class InModel:
    """Seconds of the groups that a kernel is of in one run: before, and as was found."""

    before: float
    after: float


@dataclass(frozen=True)
class Verdict:
    """The kept part of `changed`, and seconds of one run of the model; `gain` is their quotient.

    `found` is the gain with all that was found; `slower` are the kernels that took longer in the
    model. `noise` is that of the quotients, so far as a gain is claimed by them.
    """

    kept: Changed
    changed: Changed
    before: float
    after: float
    gain: float
    found: float
    noise: float
    turns: int
    slower: Mapping[str, InModel] = field(default_factory=dict[str, InModel])

    @property
    def is_claimed(self) -> bool:
        """Return whether what stays makes the model faster beyond the noise."""
        return bool(self.kept) and self.gain > 1 + self.noise

    @staticmethod
    def of(fields: Mapping[str, Any]) -> "Verdict | None":
        """Return the verdict in `fields`; None if it is invalid."""
        try:
            before, after, gain, found, noise = (
                float(fields[name]) for name in ("before", "after", "gain", "found", "noise")
            )
            kept, back = (frozenset(map(str, fields[name])) for name in ("kept", "taken_back"))
            slower = {key: InModel(*map(float, own)) for key, own in fields["slower"].items()}
            turns = int(fields["turns"])
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            return None
        return Verdict(kept, kept | back, before, after, gain, found, noise, turns, slower)

    @property
    def fields(self) -> dict[str, Any]:
        """Fields for a record."""
        return {
            "before": self.before,
            "after": self.after,
            "gain": self.gain,
            "found": self.found,
            "noise": self.noise,
            "turns": self.turns,
            "kept": sorted(self.kept),
            "taken_back": sorted(self.changed - self.kept),
            "slower": {key: [own.before, own.after] for key, own in self.slower.items()},
        }

    def __str__(self) -> str:
        count = len(self.changed - self.kept)
        back = f"{count} of {len(self.changed)} kernels are taken back"
        if not self.kept:
            return (
                f"the model as a whole is {self.found:.3f} times as fast with what was found, "
                f"{self.before * 1e3:.4g} ms before: {back}"
            )
        claim = f"{self.gain:.3f} times as fast" if self.is_claimed else "no gain beyond the noise"
        return (
            f"the model as a whole: {self.before * 1e3:.4g} ms before, {self.after * 1e3:.4g} ms "
            f"now, {claim} (±{self.noise:.3f}, {self.turns} turns)"
            f"{f'; {back}' if count else ''}"
        )


def judge(
    changed: Changed,
    measure: Measure,
    counters: Counters,
    clock: Callable[[], float] = time.monotonic,
) -> Verdict:
    """Return what stays of the kernels `changed`.

    They are all schedules, or those that do not take longer in the model, whichever makes the model
    faster; none if both make it slower than before.
    """
    nothing: Changed = frozenset()
    before, found = _in_turns((nothing, changed), measure, clock)
    slower = _slower(before, found, {k: v for k, v in counters().items() if k in changed})
    programs, turns = [changed], [found]
    rest = changed - frozenset(slower)
    if rest and slower:
        before, *turns = _in_turns((nothing, changed, rest), measure, clock)
        programs = [changed, rest]
    quotients = [ratio(own.seconds, before.seconds) for own in turns]
    best = min(range(len(turns)), key=quotients.__getitem__)
    seconds = statistics.median(before.seconds)
    is_kept = quotients[best] <= 1
    return Verdict(
        programs[best] if is_kept else nothing,
        changed,
        seconds,
        seconds * quotients[best] if is_kept else seconds,
        1 / quotients[best] if is_kept else 1.0,
        1 / quotients[0],
        max(LEAST_GAIN, noise(ratios(turns[best].seconds, before.seconds))),
        len(before.seconds),
        slower,
    )


def _in_turns(
    programs: Sequence[Changed], measure: Measure, clock: Callable[[], float]
) -> list[Turns]:
    """Turn until each program is faster or slower than the first, or there are enough."""
    end = clock() + SECONDS
    found = [Turns() for _ in programs]
    while True:
        for own, further in zip(found, measure(programs, TURNS), strict=True):
            own.add(further)
        first = found[0].seconds
        is_known = all(
            is_faster(own.seconds, first, LEAST_GAIN) or is_faster(first, own.seconds, LEAST_GAIN)
            for own in found[1:]
        )
        if is_known or len(first) >= MOST_TURNS or clock() > end:
            return found


def _slower(
    before: Turns, found: Turns, counters: Mapping[str, Sequence[str]]
) -> dict[str, InModel]:
    """Return the kernels that take longer in the model than what was in their place."""
    slower: dict[str, InModel] = {}
    for key, names in counters.items():
        known = [name for name in names if name in before.kernels and name in found.kernels]
        if not known or len(known) < len(names):
            continue  # the model before has no such groups
        old, new = (_sums(turns, known) for turns in (before, found))
        if ratio(new, old) > 1:
            slower[key] = InModel(statistics.median(old), statistics.median(new))
    return slower


def _sums(turns: Turns, names: Sequence[str]) -> list[float]:
    """Turn by turn; a name counts once, though several groups may have it."""
    each = [turns.kernels[name] for name in dict.fromkeys(names)]
    return [sum(seconds) for seconds in zip(*each, strict=True)]
