"""Commands of the user between the levels of a search: `braid tune --interactive`."""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from braid.support.errors import did_you_mean

if TYPE_CHECKING:
    from braid.targets.kernels.kernel_schedule import KernelSchedule
    from braid.tuning.kernel_tasks import KernelTask
    from braid.tuning.search import Order, Turn

_HELP = """  go                   go on as the rule says; so does an empty line
  stop                 end the search of this kernel
  quit                 end it, and begin no other; so does the end of the input
  threshold X          of the level behind and those to come
  level N              look at level N next, whatever the rule says
  space NAME=V,V …     of the next level only schedules with these values"""
_COMMANDS = ("go", "stop", "quit", "threshold", "level", "space", "help")


class _UnclearError(Exception):
    """A line is not one of the commands."""


def steering(
    end: Callable[[], None],
    read: Callable[[], str] = sys.stdin.readline,
    say: Callable[[str], None] = print,
) -> "Callable[[KernelTask, Turn[KernelSchedule]], Order[KernelSchedule]]":
    """Return a function that shows where a search stands, and asks until it gets a command.

    When nothing is left to search, as at the end of the input, `end` is called.
    """

    def steer(task: "KernelTask", turn: "Turn[KernelSchedule]") -> "Order[KernelSchedule]":
        _show(turn, say)
        while True:
            say(f"  level {turn.level}, {'/'.join(_COMMANDS)}?")
            line = read() or "quit"
            if line.split() == ["quit"]:
                end()
            try:
                order = parse_order(line, turn)
            except _UnclearError as error:
                say(f"  {error}")
                continue
            if order is not None:
                return order
            say(_HELP)

    return steer


def _show(turn: "Turn[KernelSchedule]", say: Callable[[str], None]) -> None:
    if turn.step is not None:
        say(f"  {turn.step}")
    if not turn.points:
        say(f"  level {turn.level} has no schedules")
        return
    say(f"  level {turn.level} has {len(turn.points)} schedules, threshold {turn.threshold:.3g}:")
    families = dict.fromkeys(point.family for point in turn.points)
    for family in families:
        own = [point for point in turn.points if point.family == family]
        values = " ".join(f"{n}={','.join(map(str, v))}" for n, v in _values(own).items())
        say(f"    {family} ({len(own)}) {values}".rstrip())


def _values(points: "Sequence[KernelSchedule]") -> dict[str, list[int]]:
    """Return the values of the entries of schedules, by name."""
    found: dict[str, set[int]] = {}
    for point in points:
        for name, value in point.items:
            found.setdefault(name, set()).add(value)
    return {name: sorted(values) for name, values in sorted(found.items())}


def parse_order(line: str, turn: "Turn[KernelSchedule]") -> "Order[KernelSchedule] | None":
    """Return the command of a line, None if it asks for help. Raises _UnclearError."""
    from braid.tuning.search import Order

    command, *words = line.split() or ["go"]
    if command not in _COMMANDS:
        hint = did_you_mean(command, _COMMANDS) or f"say one of {', '.join(_COMMANDS)}"
        raise _UnclearError(f"'{command}' is not a command; {hint}")
    if command in ("go", "stop", "quit", "help") and words:
        raise _UnclearError(f"'{command}' takes nothing behind it")
    if command == "threshold":
        return Order(threshold=_threshold(words))
    if command == "level":
        return Order(level=_level(words))
    if command == "space":
        return Order(points=_restricted(words, turn), level=turn.level)
    return None if command == "help" else Order(stop=command != "go")


def _threshold(words: Sequence[str]) -> float:
    try:
        (word,) = words
        value = float(word)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise _UnclearError("expected a positive number, such as 'threshold 0.9'")
    return value


def _level(words: Sequence[str]) -> int:
    from braid.targets.kernels.kernel_family import LEVELS

    if len(words) != 1 or words[0] not in map(str, range(LEVELS)):
        raise _UnclearError(f"expected a level from 0 to {LEVELS - 1}, such as 'level 1'")
    return int(words[0])


def _restricted(words: Sequence[str], turn: "Turn[KernelSchedule]") -> "list[KernelSchedule]":
    """Return the points with these values, and of families that have the entries."""
    points, known = list(turn.points), _values(turn.points)
    if not words:
        raise _UnclearError("expected values of entries, such as 'space rows=4,6'")
    for word in words:
        name, _, text = word.partition("=")
        if name not in known:
            hint = did_you_mean(name, known) or f"there are {', '.join(known) or 'none'}"
            raise _UnclearError(f"schedules have no '{name}'; {hint}")
        values = text.split(",")
        unknown = [value for value in values if value not in map(str, known[name])]
        if unknown:
            has = ",".join(map(str, known[name]))
            raise _UnclearError(f"level {turn.level} has {name}={has}, not {','.join(unknown)}")
        wanted = set(map(int, values))
        points = [point for point in points if point.schedule.get(name) in wanted]
    if not points:
        raise _UnclearError("no schedule has all of these values")
    return points
