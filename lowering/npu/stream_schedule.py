"""Describe how a stream is made: how finely ops are cut, along which dims, and how they are
ordered."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from xdsl.ir import Operation

from braid.lowering.npu.build_stream import SubgraphOptions
from braid.passes.split.select_splits import SelectSplitsPass
from braid.targets.kernels.kernel_schedule import KernelSchedule, schedule_of
from braid.targets.kernels.schedules import Entries, Schedule, ScheduleError
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.steps import steps_of

STREAM_FAMILY = "stream"
"""The name of the family of streams in records, and in `braid.schedule`."""

FIRST: tuple[tuple[str, ...], ...] = ((), ("H",), ("C",), ("W",))
"""The dims that are cut first, by their names in `select-splits`; () for those that fit best."""


@dataclass(frozen=True)
class StreamSchedule(Schedule):
    """A schedule of a stream, which says how it is made.

    An op uses at most one part in `parts` of the chip's memory: the more parts, the smaller the
    tiles, and the more are loaded and stored beside the one that is computed. `FIRST[first]` are
    the dims that are cut first. With `follow`, readers of a tile are cut in the same way, so that
    tiles stay on the chip; with `reductions`, reduced dims may be cut, too. `pieces` key nodes of
    the graph are ordered together.
    """

    parts: int = 3
    first: int = 0
    follow: bool = True
    reductions: bool = False
    pieces: int = 1

    @staticmethod
    def of(entries: Entries) -> "StreamSchedule | None":
        """Return the schedule of these entries; None if they are invalid."""
        try:
            found = StreamSchedule.read(entries)
        except ScheduleError:
            return None
        return found if found.is_sensible else None

    @property
    def is_sensible(self) -> bool:
        """Return whether the numbers are in their ranges."""
        counts = (self.parts, self.pieces)
        return self.first < len(FIRST) and all(1 <= count <= 1 << 20 for count in counts)

    def order(self, search_seconds: float) -> SubgraphOptions:
        """Return how orders are searched."""
        return SubgraphOptions(self.pieces, search_seconds=search_seconds)

    def decide_splits(self, ops: list[Operation], chip: BackendDescription) -> None:
        """Write `braid.split` on those of `ops` that must be cut. Raises as `select-splits`."""
        share = chip.memories[0].bytes // self.parts

        def limit_of(op: Operation) -> int:
            own = [chip.memory_of(chip.units[step.unit]) for step in steps_of(op, chip)]
            return min([share, *(memory.bytes for memory in own if memory is not None)])

        SelectSplitsPass(
            allow_split_reduction=self.reductions,
            follow_readers=self.follow,
            dims=FIRST[self.first],
        ).decide(ops, limit_of)


DEFAULT = StreamSchedule()

LEVELS: tuple[tuple[dict[str, tuple[int, ...]], ...], ...] = (
    ({"parts": (3, 2, 4, 6, 8, 12)},),
    (
        {"parts": (16, 24)},
        {"first": (1, 2), "parts": (3, 4, 6, 8, 12, 16)},
        {"pieces": (4,), "parts": (3, 6, 8)},
    ),
    (
        {"parts": (5, 7, 10), "first": (0, 1)},
        {"parts": (32, 64), "first": (0, 1)},
        {"follow": (0,), "parts": (3, 6, 8)},
        {"first": (3,), "parts": (3, 6, 8)},
        {"reductions": (1,), "parts": (3, 8)},
    ),
)
"""The values of each level that are tried together; other entries are as by default."""


def space(level: int) -> Iterator[StreamSchedule]:
    """Yield the schedules of one level, the default one first."""
    for values in LEVELS[level] if level < len(LEVELS) else ():
        for chosen in product(*values.values()):
            yield StreamSchedule.read(dict(zip(values, chosen, strict=True)))


def chosen_schedule(op: Operation) -> StreamSchedule | None:
    """Return the stream schedule in `braid.schedule` of one of its ops; None if it is none.

    Raises InvalidIRError where it stands and is malformed.
    """
    found = schedule_of(op)
    if found is None or found.family != STREAM_FAMILY:
        return None
    return StreamSchedule.of(found.schedule)


def kernel_schedule(schedule: StreamSchedule) -> KernelSchedule:
    """Return the schedule as records hold it."""
    return KernelSchedule.of(STREAM_FAMILY, schedule.entries)
