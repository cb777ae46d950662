"""The lower bound: the bytes that are live together."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import pairwise
from math import gcd

from braid.solvers.packing.problem import Item, Part

Segment = tuple[int, int]
LiveSet = frozenset[tuple[int, tuple[Segment, ...]]]


def live_segments(parts: Sequence[Part]) -> list[Segment]:
    """Return the bytes `[begin, end)` that `parts` occupy, disjoint and ascending."""
    segments: list[Segment] = []
    for begin, end in sorted((part.start, part.start + part.size) for part in parts):
        if segments and begin <= segments[-1][1]:
            segments[-1] = (segments[-1][0], max(end, segments[-1][1]))
        else:
            segments.append((begin, end))
    return segments


def item_profile(item: Item) -> list[tuple[int, int, list[Segment]]]:
    """Return `(begin, end, segments)` for each stretch of time in which the item is live."""
    if len(item.parts) == 1:
        segments = live_segments(item.parts)
        return [(begin, end, segments) for begin, end in _merge(item.parts[0].lifetimes)]
    times = sorted({t for part in item.parts for interval in part.lifetimes for t in interval})
    profile: list[tuple[int, int, list[Segment]]] = []
    for begin, end in pairwise(times):
        live = [p for p in item.parts if any(b <= begin < e for b, e in p.lifetimes)]
        if live:
            profile.append((begin, end, live_segments(live)))
    return profile


def _merge(intervals: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def max_live(items: Sequence[Item]) -> int:
    """Return a lower bound on the arena: the most bytes that are live at one moment.

    If all parts start at multiples of a common divisor, every item except the topmost one at that
    moment occupies whole multiples of it; the topmost may be the item to which rounding adds most.
    Every item also bounds the arena by its own end.
    """
    grain = 0
    for item in items:
        grain = gcd(grain, item.alignment, *(part.start for part in item.parts))
    changes: list[tuple[int, int, int]] = []
    bound = 0
    for item in items:
        if item.parts:
            bound = max(bound, item.extent + (item.fixed or 0))
        for begin, end, segments in item_profile(item):
            occupied = sum(-(-(stop - start) // grain) * grain for start, stop in segments)
            slack = occupied - sum(stop - start for start, stop in segments)
            changes.append((begin, occupied, slack))
            changes.append((end, -occupied, slack))
    live = 0
    slacks: list[int] = []  # of what is live, ascending
    for _, change, slack in sorted(changes):
        live += change
        if change > 0:
            insort(slacks, slack)
            bound = max(bound, live - slacks[-1])
        else:
            del slacks[bisect_left(slacks, slack)]
    return bound


def check_fixed(items: Sequence[Item]) -> None:
    """Raise ValueError where items with fixed offsets overlap."""
    changes: list[tuple[int, bool, int, Segment]] = []
    for index, item in enumerate(items):
        if item.fixed is None:
            continue
        for begin, end, segments in item_profile(item):
            for low, high in segments:
                taken = (item.fixed + low, item.fixed + high)
                changes += [(begin, True, index, taken), (end, False, index, taken)]
    live: list[tuple[Segment, int]] = []  # they do not overlap, so neighbours are all to look at
    for _, begins, index, taken in sorted(changes):
        place = bisect_left(live, (taken, index))
        if not begins:
            live.pop(place)
            continue
        for (low, high), other in live[max(place - 1, 0) : place + 1]:
            if low < taken[1] and taken[0] < high:
                raise ValueError(
                    f"fixed offsets {items[index].fixed} and {items[other].fixed} overlap: "
                    "expected buffers that are live together to be apart"
                )
        live.insert(place, (taken, index))


def maximal_live_sets(items: Sequence[Item], members: Sequence[int]) -> list[LiveSet]:
    """Return the sets of `(item, segments)` that are live together and not within another."""
    changes: list[tuple[int, bool, int, tuple[Segment, ...]]] = []
    for item in members:
        for begin, end, segments in item_profile(items[item]):
            changes.append((begin, True, item, tuple(segments)))
            changes.append((end, False, item, tuple(segments)))
    live: set[tuple[int, tuple[Segment, ...]]] = set()
    found: list[LiveSet] = []
    grown = False
    for _, begins, item, segments in sorted(changes):
        if begins:
            live.add((item, segments))
        else:
            if grown and len(live) > 1:
                found.append(frozenset(live))
            live.discard((item, segments))
        grown = begins
    return found
