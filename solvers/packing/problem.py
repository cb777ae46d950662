"""The packing problem: buffers with lifetimes, and the groups that must stay together."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

Interval = tuple[int, int]


@dataclass(frozen=True)
class Buffer:
    """A block of `size` bytes that is live during `[lower, upper)`, in any unit of time.

    `more_lifetimes` are further intervals in which it is live: a value of two exclusive branches
    that are numbered one after the other is live in a part of each, and only there.

    Buffers of one `group` move together, `group_offset` bytes from the group's start, and may
    overlap each other: an in-place result and its operand (offset 0), a view, the operands of a
    concatenation inside its result. `fixed_offset` pins a buffer (and with it its group).
    """

    lower: int
    upper: int
    size: int
    alignment: int = 1
    group: int | str | None = None
    group_offset: int = 0
    fixed_offset: int | None = None
    more_lifetimes: tuple[Interval, ...] = ()

    @property
    def lifetimes(self) -> tuple[Interval, ...]:
        """Return the nonempty intervals in which the buffer is live."""
        intervals = ((self.lower, self.upper), *self.more_lifetimes)
        return tuple(interval for interval in intervals if interval[0] < interval[1])

    @staticmethod
    def live_in(intervals: Sequence[Interval], size: int, alignment: int = 1) -> "Buffer":
        """Return a buffer that is live in each of one or more `intervals`."""
        (lower, upper), *rest = intervals
        return Buffer(lower, upper, size, alignment, more_lifetimes=tuple(rest))


@dataclass(frozen=True)
class Packing:
    """Offsets in bytes, one for each buffer, and how small an arena could be at best.

    `lower_bound` holds for every packing of the same buffers. `arena_size` is the end of the
    highest buffer that is ever live and has any bytes.
    """

    offsets: tuple[int, ...]
    arena_size: int
    lower_bound: int

    @property
    def proven(self) -> bool:
        """True if no smaller arena exists."""
        return self.arena_size == self.lower_bound

    @property
    def gap(self) -> float:
        """Return how much larger than the bound the arena is, as a fraction of the arena."""
        return 1 - self.lower_bound / self.arena_size if self.arena_size else 0.0


@dataclass(frozen=True)
class Part:
    """A buffer within an item: `start` bytes from the item's base."""

    start: int
    size: int
    lifetimes: tuple[Interval, ...]


@dataclass(frozen=True)
class Item:
    """An item placed as one: a group of buffers or a single one, at a multiple of `alignment`."""

    parts: tuple[Part, ...]
    alignment: int
    fixed: int | None

    @property
    def extent(self) -> int:
        """Return the bytes from the base to the end of the last part."""
        return max((part.start + part.size for part in self.parts), default=0)

    @property
    def duration(self) -> int:
        """Return the total length of the parts' lifetimes."""
        return sum(end - begin for part in self.parts for begin, end in part.lifetimes)


def validate(buffers: Sequence[Buffer]) -> None:
    """Raise ValueError when a buffer on its own makes no sense."""
    for index, buffer in enumerate(buffers):
        if buffer.size < 0:
            raise ValueError(f"buffer {index}: size {buffer.size} is negative")
        if buffer.alignment < 1:
            raise ValueError(f"buffer {index}: alignment {buffer.alignment} is not positive")
        if buffer.group_offset < 0 or buffer.group_offset % buffer.alignment:
            raise ValueError(
                f"buffer {index}: group offset {buffer.group_offset} is not a "
                f"nonnegative multiple of its alignment {buffer.alignment}"
            )
        if any(
            begin > end for begin, end in ((buffer.lower, buffer.upper), *buffer.more_lifetimes)
        ):
            raise ValueError(f"buffer {index}: a lifetime ends before it begins")


def gather_items(buffers: Sequence[Buffer]) -> tuple[list[Item], list[int]]:
    """Return the items and, for every buffer, the index of the item it is a part of.

    Raises ValueError when the fixed offsets of one group contradict each other.
    """
    item_of: list[int] = []
    members: list[list[int]] = []
    index_of_group: dict[int | str, int] = {}
    for index, buffer in enumerate(buffers):
        item = len(members)
        if buffer.group is not None:
            item = index_of_group.setdefault(buffer.group, item)
        if item == len(members):
            members.append([])
        members[item].append(index)
        item_of.append(item)
    return [_make_item(buffers, indices) for indices in members], item_of


def _make_item(buffers: Sequence[Buffer], indices: list[int]) -> Item:
    parts: list[Part] = []
    alignment = 1
    bases: set[int] = set()
    for index in indices:
        buffer = buffers[index]
        alignment = lcm(alignment, buffer.alignment)
        if buffer.size and buffer.lifetimes:
            parts.append(Part(buffer.group_offset, buffer.size, buffer.lifetimes))
        if buffer.fixed_offset is not None:
            bases.add(buffer.fixed_offset - buffer.group_offset)
    if len(bases) > 1 or any(base < 0 or base % alignment for base in bases):
        raise ValueError(
            f"buffers {indices}: fixed offsets put the start of the group at {sorted(bases)}; "
            f"expected one nonnegative multiple of {alignment}"
        )
    return Item(tuple(parts), alignment, next(iter(bases), None))
