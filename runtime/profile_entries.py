"""Profiles of runs: execution counts and times of ops, from the native runtime's counters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ProfileEntry:
    """The number of executions of an op, and their total time in seconds.

    `layouts` has an entry for each combination of layouts in which a kernel ran, such as
    `acdb,cdba->acdb` for two operands and a result.
    """

    count: int
    seconds: float
    layouts: Mapping[str, "ProfileEntry"] = field(default_factory=dict[str, "ProfileEntry"])

    def __add__(self, other: "ProfileEntry") -> "ProfileEntry":
        """Return the sum of two entries, layout by layout."""
        layouts = dict(self.layouts)
        for choice, entry in other.layouts.items():
            layouts[choice] = layouts[choice] + entry if choice in layouts else entry
        return ProfileEntry(self.count + other.count, self.seconds + other.seconds, layouts)


def profile_entries(
    counter_names: Sequence[str], counts: Sequence[int], times: Sequence[int]
) -> dict[str, ProfileEntry]:
    """Return profile entries by op name, from the counters of a model and their values.

    A counter's name is that of an op, or that and a combination of layouts after a tab. `counts`
    are executions, `times` nanoseconds.
    """
    found: dict[str, ProfileEntry] = {}
    for i, counter in enumerate(counter_names):
        name, _, choice = counter.partition("\t")
        entry = ProfileEntry(int(counts[i]), int(times[i]) * 1e-9)
        if choice:
            entry = ProfileEntry(entry.count, entry.seconds, {choice: entry})
        found[name] = found[name] + entry if name in found else entry
    return found
