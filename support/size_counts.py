"""Count the sizes at which an open model ran, in bounded memory, and add such counts up."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

MOST_SIZES = 256
"""Different sizes that are counted at once, as `BRAID_MOST_PROFILED_SIZES` in `braid/runtime.h`."""

_MOST_SIZE = 1 << 60
_MOST_DIMS = 1024


@dataclass(frozen=True)
class SizeCount:
    """The number of runs of a model at each combination of sizes, which `sizes` gives by name.

    `count` is at most `error` higher than the number of runs was, and never lower.
    """

    sizes: tuple[tuple[str, int], ...]
    count: int
    error: int = 0

    @staticmethod
    def of(entry: Mapping[str, Any]) -> "SizeCount":
        """Parse an entry of a file; raise ValueError, TypeError or LookupError for another form."""
        held = entry["dims"]
        sizes = cast("dict[object, object]", held if isinstance(held, dict) else {})
        if not 0 < len(sizes) <= _MOST_DIMS:
            raise ValueError(f"the dims of a run are {held!r:.200}, expected a size by each name")
        named = [(_name(name), _whole(size, _MOST_SIZE)) for name, size in sizes.items()]
        count = _whole(entry["count"], _MOST_SIZE)
        return SizeCount(tuple(named), count, _whole(entry.get("error", 0), count))

    def to_json(self) -> dict[str, Any]:
        """Return the entry as it stands in a file."""
        entry: dict[str, Any] = {"dims": dict(self.sizes), "count": self.count}
        return {**entry, "error": self.error} if self.error else entry


def size_counts_of(entries: object) -> tuple[SizeCount, ...]:
    """Parse a file's entry of sizes, the most frequent first.

    Raises ValueError, TypeError or LookupError for another form, too many entries, and entries
    that have different dims or the same sizes.
    """
    if not isinstance(entries, list) or len(cast("list[object]", entries)) > MOST_SIZES:
        raise ValueError(f"'sizes' is no list of at most {MOST_SIZES} sizes")
    counts = [SizeCount.of(entry) for entry in cast("list[dict[str, Any]]", entries)]
    if len({tuple(name for name, _ in each.sizes) for each in counts}) > 1:
        raise ValueError("the entries of 'sizes' have different dims")
    if len({each.sizes for each in counts}) < len(counts):
        raise ValueError("'sizes' has the same sizes twice")
    return _most_frequent(counts)


def add_size_counts(sketches: Iterable[Sequence[SizeCount]]) -> tuple[SizeCount, ...]:
    """Return the counts of several sketches as one, the most frequent sizes first.

    Sizes missing in a full sketch may have run as often as its least count, which is added to count
    and error (Cafaro, Tempesta, Pulimeno: "Mergeable Summaries With Low Total Error", 2014).
    """
    total: tuple[SizeCount, ...] = ()
    for sketch in sketches:
        total = _sum(total, sketch) if total and sketch else total or _most_frequent(sketch)
    return total


def _sum(first: Sequence[SizeCount], second: Sequence[SizeCount]) -> tuple[SizeCount, ...]:
    by_sizes = [{each.sizes: each for each in sketch} for sketch in (first, second)]
    unseen = [_unseen(sketch) for sketch in (first, second)]
    found: list[SizeCount] = []
    for sizes in dict.fromkeys((*by_sizes[0], *by_sizes[1])):
        parts = [
            known.get(sizes, SizeCount(sizes, most, most))
            for known, most in zip(by_sizes, unseen, strict=True)
        ]
        count, error = sum(each.count for each in parts), sum(each.error for each in parts)
        found.append(SizeCount(sizes, count, error))
    return _most_frequent(found)


def _unseen(sketch: Sequence[SizeCount]) -> int:
    """Return the most runs of sizes that a sketch does not have."""
    return min(each.count for each in sketch) if len(sketch) >= MOST_SIZES else 0


def _most_frequent(counts: Iterable[SizeCount]) -> tuple[SizeCount, ...]:
    ordered = sorted(counts, key=lambda each: (-each.count, each.sizes))
    return tuple(ordered[:MOST_SIZES])


def _name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError(f"{name!r} is no name of a dim")
    return name


def _whole(value: object, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"{value!r:.100} is not an integer from 0 to {most}")
    return value
