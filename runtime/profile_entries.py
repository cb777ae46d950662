"""How often ops of a model ran, and for how long, from the counters of the native runtime."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ProfileEntry:
    """How often an op ran, and for how many seconds in all.

    `layouts` has the same for each choice of layouts in which a kernel ran, such as
    `acdb,cdba->acdb` for those of two operands and a result.
    """

    count: int
    seconds: float
    layouts: Mapping[str, "ProfileEntry"] = field(default_factory=dict[str, "ProfileEntry"])

    def __add__(self, other: "ProfileEntry") -> "ProfileEntry":
        """Both together."""
        layouts = dict(self.layouts)
        for choice, entry in other.layouts.items():
            layouts[choice] = layouts[choice] + entry if choice in layouts else entry
        return ProfileEntry(self.count + other.count, self.seconds + other.seconds, layouts)


def profile_entries(
    counter_names: Sequence[str], counts: Sequence[int], times: Sequence[int]
) -> dict[str, ProfileEntry]:
    """Return the counters of a model by name: executions of each, and nanoseconds."""
    found: dict[str, ProfileEntry] = {}
    for i, counter in enumerate(counter_names):
        name, _, choice = counter.partition("\t")
        entry = ProfileEntry(int(counts[i]), int(times[i]) * 1e-9)
        if choice:
            entry = ProfileEntry(entry.count, entry.seconds, {choice: entry})
        found[name] = found[name] + entry if name in found else entry
    return found
