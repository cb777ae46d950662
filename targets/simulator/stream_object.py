"""A part of an instruction stream before it is linked: what is done, and after what.

An object names ops, values and events by its own numbers, so that equal subgraphs have one object
wherever they stand. The linker adds all that depends on the rest of the stream: the numbers of
instructions, the syncs, and the waits for memory on the chip.
"""

import json
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, cast

from braid.targets.simulator.steps import UnitWork

FORMAT = 3


class Action(IntEnum):
    """The action of an event, which it does to `Event.subject`."""

    ENTER = 0
    """An op of an earlier object has ended, and the value that it handed on is on the chip."""
    RESERVE = 1
    """Memory on the chip that is free."""
    LOAD = 2
    """A value is loaded."""
    STORE = 3
    """A value is stored."""
    COMPUTE = 4
    """An op runs."""
    EXPORT = 5
    """A value is on the chip for the next object."""
    RELEASE = 6
    """The buffer of a value is no longer read; the buffer of an export is handed on."""
    OVERWRITE = 7
    """The buffer of a value becomes that of the op's result."""


@dataclass(frozen=True)
class Event:
    """One action for the sake of `op`, when the events `after` have ended."""

    action: Action
    op: int
    subject: int
    after: tuple[int, ...]


@dataclass(frozen=True)
class StreamObject:
    """Events in the order of their issue.

    By op: its steps on the units (`steps`) and the values that it `makes`; by value: `sizes`
    in bytes.
    """

    events: tuple[Event, ...]
    steps: tuple[tuple[UnitWork, ...], ...]
    makes: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]

    def to_bytes(self) -> bytes:
        """Return the object as a file."""
        fields = {
            "format": FORMAT,
            "events": [[e.action, e.op, e.subject, *e.after] for e in self.events],
            "steps": [
                [[step.unit, step.amount, step.declared] for step in own] for own in self.steps
            ],
            "makes": self.makes,
            "sizes": self.sizes,
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    @staticmethod
    def from_bytes(data: bytes) -> "StreamObject":
        """Return the object in a file. Raises ValueError where it has another form."""
        try:
            fields = cast(dict[str, Any], json.loads(data))
            if fields["format"] != FORMAT:
                raise KeyError(FORMAT)
            return StreamObject(
                tuple(
                    Event(Action(action), op, subject, tuple(after))
                    for action, op, subject, *after in fields["events"]
                ),
                tuple(tuple(UnitWork(*step) for step in own) for own in fields["steps"]),
                tuple(tuple(made) for made in fields["makes"]),
                tuple(fields["sizes"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"this is not an object of format {FORMAT}") from error


@dataclass(frozen=True)
class Placement:
    """The meaning of an object's numbers in the whole: its `ops` and `values`.

    A value can be loaded once its `sources` are stored. `names` are the ops'; one that ends in `#`
    gets a number. `reads` are the values that each op reads, by their numbers in the whole stream.
    """

    ops: tuple[int, ...]
    values: tuple[int, ...]
    sources: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    reads: tuple[tuple[int, ...], ...]
