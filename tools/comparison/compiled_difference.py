"""The differences between two compiled models: decisions, resources, and each kernel."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Generic, TypeVar

from braid.support.byte_sizes import format_size
from braid.tools.comparison.compiled_facts import CompiledFacts
from braid.tools.comparison.decided_kernels import DecidedKernel
from braid.tools.explain.views import Table

_T = TypeVar("_T")
_DECISIONS = ("ops", "layouts", "schedule", "device", "runs")
"""The decisions that make kernels of one name differ; times follow from them, or are measured."""

_MOST_CONTENTS = 8
"""Digests that are shown."""


@dataclass(frozen=True)
class Change(Generic[_T]):
    """Something of both models; None where one does not have it."""

    name: str
    a: _T | None
    b: _T | None


@dataclass(frozen=True)
class CompiledDifference:
    """The differences, and `kernels_alike`, the number of kernels with all decisions alike.

    `kernels` is None if the kernels of one model are unknown, as for artifacts. `seconds` is the
    time of one run: measured, or else the sum over kernels.
    """

    settings: Sequence[Change[str]]
    bytes: Sequence[Change[int]]
    contents: Sequence[Change[str]]
    kernels: Sequence[Change[DecidedKernel]] | None
    kernels_alike: int
    seconds: Change[float]
    is_measured: bool

    @staticmethod
    def between(
        a: CompiledFacts, b: CompiledFacts, measured: tuple[float, float] | None = None
    ) -> "CompiledDifference":
        """Compare two models; `measured` are the seconds of one run of each."""
        kernels: list[Change[DecidedKernel]] | None = None
        alike = 0
        seconds = Change[float]("one run", None, None)
        if a.kernels is not None and b.kernels is not None:
            pairs = list(_paired(_by_name(a.kernels), _by_name(b.kernels)))
            kernels = [pair for pair in pairs if _decided(pair.a) != _decided(pair.b)]
            alike = len(pairs) - len(kernels)
            sums = [sum(k.seconds for k in kernels) for kernels in (a.kernels, b.kernels)]
            seconds = Change("one run", *sums)
        if measured is not None:
            seconds = Change("one run", *measured)
        return CompiledDifference(
            [c for c in _paired(a.settings, b.settings) if c.a != c.b],
            [c for c in _paired(a.bytes, b.bytes) if c.a != c.b],
            [c for c in _paired(a.contents, b.contents) if c.a != c.b],
            kernels,
            alike,
            seconds,
            measured is not None,
        )

    @property
    def is_empty(self) -> bool:
        """Return whether all was decided alike, with the same bytes; times do not count."""
        return not (self.settings or self.bytes or self.contents or self.kernels)

    def to_json(self) -> dict[str, object]:
        """Return everything as a JSON object."""
        return {"equal": self.is_empty, **asdict(self)}

    def tables(self) -> Iterator[tuple[str, Table]]:
        """Yield a title and a table for each kind of thing that differs."""
        if self.settings:
            rows = tuple((c.name, c.a or "-", c.b or "-") for c in self.settings)
            yield "settings", Table(("", "A", "B"), rows)
        if self.bytes:
            yield "bytes", Table(("", "A", "B", "B ÷ A"), tuple(map(_bytes_row, self.bytes)))
        if self.contents:
            rows = [(c.name, c.a or "-", c.b or "-") for c in self.contents[:_MOST_CONTENTS]]
            if len(self.contents) > len(rows):
                rows.append((f"{len(self.contents) - len(rows)} more", "", ""))
            yield "digests of contents", Table(("", "A", "B"), tuple(rows))
        if self.kernels:
            rows = tuple(row for change in self.kernels for row in _kernel_rows(change))
            columns = ("kernel", "", "A", "B")
            yield "kernels that were decided differently", Table(columns, rows)

    def summary(self) -> str:
        """Return a sentence on kernels and times."""
        if self.kernels is None:
            count = "kernels of artifacts are not compared: give the models that they are made of"
        else:
            count = f"{self.kernels_alike} kernels alike, {len(self.kernels)} different"
        a, b = self.seconds.a, self.seconds.b
        if a is None or b is None:
            return count
        how = "measured" if self.is_measured else "as expected"
        return f"{count}; one run {_time(a)} and {_time(b)}, {how}{_ratio(a, b)}"


def _by_name(kernels: Sequence[DecidedKernel]) -> dict[str, DecidedKernel]:
    """Return kernels by name; those without one by their ops, further ones with a number."""
    counts, found = Counter[str](), dict[str, DecidedKernel]()
    for kernel in kernels:
        name = kernel.name or f"({kernel.ops})"
        counts[name] += 1
        name = name if counts[name] == 1 else f"{name} #{counts[name]}"
        found[name] = replace(kernel, name=name)
    return found


def _paired(a: Mapping[str, _T], b: Mapping[str, _T]) -> Iterator[Change[_T]]:
    """Yield the items under each name, in the order of `a` and then of `b`."""
    for name in dict.fromkeys((*a, *b)):
        yield Change(name, a.get(name), b.get(name))


def _decided(kernel: DecidedKernel | None) -> tuple[object, ...] | None:
    return None if kernel is None else tuple(getattr(kernel, name) for name in _DECISIONS)


def _bytes_row(change: Change[int]) -> tuple[str, ...]:
    a, b = change.a or 0, change.b or 0
    return (change.name, format_size(a), format_size(b), f"{b / a:.3g}" if a else "-")


def _kernel_rows(change: Change[DecidedKernel]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each decision that differs, and one for the time."""
    a, b = change.a, change.b
    name = change.name
    for field in _DECISIONS:
        values = [None if each is None else str(getattr(each, field)) for each in (a, b)]
        if values[0] != values[1] and (field != "runs" or None not in values):
            yield (name, field, *("-" if value is None else value for value in values))
            name = ""
    yield (name, "time", *("-" if each is None else _time(each.seconds) for each in (a, b)))


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.4g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.4g} us"


def _ratio(a: float, b: float) -> str:
    """Return how much faster the faster one is; nothing where both take the same time."""
    if not a or not b or f"{a / b:.3g}" == "1":
        return ""
    return f": B is {a / b:.3g}× faster" if a > b else f": A is {b / a:.3g}× faster"
