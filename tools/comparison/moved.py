"""The changes between two compilations of a model, kernel by kernel, with the reasons."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from braid.tools.explain.kernel_rows import Candidate, KernelRow
from braid.tools.explain.model_names import joined
from braid.tools.explain.quantities import format_seconds

_LISTED = 6
"""Kernels of a side that are listed, and ops of a kernel."""


@dataclass(frozen=True)
class Moved:
    """Kernels of A and of B that compute the same ops, the fewest that can be compared.

    `what` names the decisions that differ, `why` the reason, as far as the candidates of each side
    show it; both are empty if only times differ.
    """

    name: str
    a: tuple[KernelRow, ...]
    b: tuple[KernelRow, ...]
    what: tuple[str, ...]
    why: tuple[str, ...]

    @property
    def seconds(self) -> tuple[float, float]:
        """The seconds of both sides in one run."""
        return sum(row.time for row in self.a), sum(row.time for row in self.b)

    def data(self) -> dict[str, Any]:
        """Return it as JSON has it; kernels without their candidates."""
        sides = {"a": self.a, "b": self.b}
        return {
            "name": self.name,
            "seconds_a": self.seconds[0],
            "seconds_b": self.seconds[1],
            "what": list(self.what),
            "why": list(self.why),
            **{side: [_brief(row) for row in rows] for side, rows in sides.items()},
        }


def moved(a: Sequence[KernelRow], b: Sequence[KernelRow]) -> tuple[Moved, ...]:
    """Return all kernels of both sides, those with ops in common together.

    The kernels that gained or lost most come first.
    """
    found = [_compared(*pair) for pair in _together(a, b)]
    return tuple(sorted(found, key=lambda each: -abs(each.seconds[1] - each.seconds[0])))


Pair = tuple[tuple[KernelRow, ...], tuple[KernelRow, ...]]


def _together(a: Sequence[KernelRow], b: Sequence[KernelRow]) -> Iterator[Pair]:
    """Yield kernels of the same ops, and then others that are connected by ops in common."""
    waiting: dict[tuple[object, ...], list[KernelRow]] = {}
    for row in b:
        waiting.setdefault(_identity(row), []).append(row)
    left: list[KernelRow] = []
    for row in a:
        same = waiting.get(_identity(row))
        if same:
            yield (row,), (same.pop(0),)
        else:
            left.append(row)
    yield from _connected(left, [row for rows in waiting.values() for row in rows])


def _identity(row: KernelRow) -> tuple[object, ...]:
    return row.ops, row.model_ops, row.kind if not row.ops else ""


def _connected(a: Sequence[KernelRow], b: Sequence[KernelRow]) -> Iterator[Pair]:
    """Yield the kernels of both sides that have ops in common, directly or by others."""
    rows = [*((0, row) for row in a), *((1, row) for row in b)]
    parent = list(range(len(rows)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    owner: dict[str, int] = {}
    for number, (_, row) in enumerate(rows):
        for op in row.ops:
            parent[root(number)] = root(owner.setdefault(op, number))
    groups: dict[int, tuple[list[KernelRow], list[KernelRow]]] = {}
    for number, (side, row) in enumerate(rows):
        groups.setdefault(root(number), ([], []))[side].append(row)
    for left, right in groups.values():
        yield tuple(left), tuple(right)


def _compared(a: tuple[KernelRow, ...], b: tuple[KernelRow, ...]) -> Moved:
    ops = dict.fromkeys(op for row in (*a, *b) for op in row.model_ops)
    name = joined(tuple(ops)) or (*a, *b)[0].name
    if not a or not b:
        side = "A" if a else "B"
        kind = "stores a tensor in another layout" if (*a, *b)[0].is_reorder else "is a kernel"
        return Moved(name, a, b, (f"only in {side}",), (f"{kind} in {side} alone",))
    if len(a) != 1 or len(b) != 1:
        if [_decisions(row) for row in a] == [_decisions(row) for row in b]:
            return Moved(name, a, b, (), ())
        return Moved(name, a, b, tuple(_what_fused(a, b)), tuple(_why_fused(a, b)))
    left, right = _decisions(a[0]), _decisions(b[0])
    what = tuple(
        f"{label}: {left[label] or 'none'} → {right[label] or 'none'}"
        for label in left
        if left[label] != right[label]
    )
    return Moved(name, a, b, what, tuple(_why(a[0], b[0])) if what else ())


def _decisions(row: KernelRow) -> Mapping[str, str]:
    return {
        "device": row.device,
        "layouts": row.layouts,
        "kernel": row.family,
        "schedule": row.schedule,
        "ops": " ".join(row.computes),
    }


def _count(rows: Sequence[KernelRow]) -> str:
    return "1 kernel" if len(rows) == 1 else f"{len(rows)} kernels"


def _why(a: KernelRow, b: KernelRow) -> Iterator[str]:
    """Yield each side's predictions for the choice of the other one."""
    made = [(row.layouts, row.family) for row in (a, b)]
    if a.device == b.device and made[0] != made[1]:
        yield _of_other("A", a, b, "B")
        yield _of_other("B", b, a, "A")
    else:
        yield f"A: {a.reason}"
        yield f"B: {b.reason}"


def _of_other(side: str, own: KernelRow, other: KernelRow, whose: str) -> str:
    what = f"{other.layouts} by {other.family}".strip()
    found = [
        each
        for each in own.candidates
        if (each.layouts, each.family) == (other.layouts, other.family)
    ]
    if not found:
        return f"{side} was not offered {whose}'s choice ({what})"
    return f"{side} had {whose}'s choice ({what}), {_cost(found[0])}"


def _cost(candidate: Candidate) -> str:
    if candidate.extra is None:
        return "with which nothing around it fits"
    if not candidate.extra:
        return "which is as good there"
    bound = "" if candidate.is_exact else "at most "
    return f"which would take {bound}{format_seconds(candidate.extra)} more in all"


def _what_fused(a: Sequence[KernelRow], b: Sequence[KernelRow]) -> Iterator[str]:
    yield f"{_count(a)} → {_count(b)}"
    devices = [", ".join(dict.fromkeys(row.device for row in rows)) for rows in (a, b)]
    if devices[0] != devices[1]:
        yield f"device: {devices[0]} → {devices[1]}"


def _why_fused(a: Sequence[KernelRow], b: Sequence[KernelRow]) -> Iterator[str]:
    for side, rows in (("A", a), ("B", b)):
        for row in rows[:_LISTED]:
            many = len(row.computes) > _LISTED
            ops = f"{len(row.computes)} ops" if many else " → ".join(row.computes)
            made = f" by {row.family}" if row.family else ""
            yield f"{side}: {ops}{made}, {format_seconds(row.time)}"
        if len(rows) > _LISTED:
            yield f"{side}: {len(rows) - _LISTED} more"


def _brief(row: KernelRow) -> dict[str, Any]:
    data = asdict(row)
    del data["candidates"]
    return {**data, "name": row.name, "time": row.time}
