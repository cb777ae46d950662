"""Describe the traffic between the memory outside of a chip and the limited memory on it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property


@dataclass(frozen=True)
class Value:
    """`size` bytes that ops read from the memory on the chip; transfers take `load` and `store`.

    Without a producer it is a weight or an input: outside at first, or already there if `present`.
    An `output` is stored when it is made; what is `kept` is needed after the last op. A part of
    other values can be loaded once these `sources`, outputs, are stored. The only value that an op
    makes may lie `over` one of the same size that the op is the last to read.
    """

    size: int
    producer: int | None
    consumers: tuple[int, ...] = ()
    load: float = 0.0
    store: float = 0.0
    output: bool = False
    present: bool = False
    kept: bool = False
    sources: tuple[int, ...] = ()
    over: tuple[int, ...] = ()

    @property
    def is_leaf(self) -> bool:
        """Return whether every order has to load the value."""
        return self.producer is None and not self.present


@dataclass(frozen=True)
class Traffic:
    """The values of a problem, the `capacity` in bytes for them, and the units that move them."""

    values: tuple[Value, ...]
    capacity: int
    load_unit: int
    store_unit: int

    @cached_property
    def reads(self) -> Mapping[int, tuple[int, ...]]:
        """The values that each op reads, by op."""
        return _by_op((op, v) for v, value in enumerate(self.values) for op in value.consumers)

    @cached_property
    def makes(self) -> Mapping[int, tuple[int, ...]]:
        """The values that each op makes, by op."""
        made = ((value.producer, v) for v, value in enumerate(self.values))
        return _by_op((op, v) for op, v in made if op is not None)

    @cached_property
    def over(self) -> Mapping[int, tuple[int, ...]]:
        """The values that what an op makes may lie over, by op."""
        found: dict[int, tuple[int, ...]] = {}
        for op, made in self.makes.items():
            read = self.reads.get(op, ())
            if len(made) == 1 and (over := [v for v in self.values[made[0]].over if v in read]):
                found[op] = tuple(over)
        return found

    @cached_property
    def excess(self) -> float:
        """Seconds of loading what is present by definition but does not fit at once."""
        present = [value for value in self.values if value.present and value.size]
        over = sum(value.size for value in present) - self.capacity
        rate = min((value.load / value.size for value in present), default=0.0)
        return max(over, 0) * rate

    def restrict(self, local: Mapping[int, int]) -> "Traffic":
        """Return the traffic of a part of the ops, renumbered by `local`.

        Results of earlier ops are present; operands of later ops are kept.
        """
        values: list[Value] = []
        number: dict[int, int] = {}
        for place, value in enumerate(self.values):
            users = tuple(local[op] for op in value.consumers if op in local)
            maker = None if value.producer is None else local.get(value.producer)
            if not users and maker is None:
                continue
            number[place] = len(values)
            part = replace(
                value,
                producer=maker,
                consumers=users,
                output=value.output and maker is not None,
                present=value.present or (value.producer is not None and maker is None),
                kept=value.kept or len(users) < len(value.consumers),
            )
            values.append(part)
        linked = tuple(
            replace(
                value,
                sources=tuple(number[s] for s in value.sources if s in number),
                over=tuple(number[o] for o in value.over if o in number),
            )
            for value in values
        )
        return replace(self, values=linked)


NO_TRAFFIC = Traffic((), 0, 0, 0)
"""The traffic of problems in which nothing is moved."""


def _by_op(pairs: Iterable[tuple[int, int]]) -> Mapping[int, tuple[int, ...]]:
    found: dict[int, list[int]] = {}
    for op, value in pairs:
        found.setdefault(op, []).append(value)
    return {op: tuple(values) for op, values in found.items()}


def uses_in(traffic: Traffic, order: Sequence[int]) -> list[list[int]]:
    """Return the places in `order` at which each value is read, ascending."""
    uses: list[list[int]] = [[] for _ in traffic.values]
    for place, op in enumerate(order):
        for value in traffic.reads.get(op, ()):
            uses[value].append(place)
    return uses
