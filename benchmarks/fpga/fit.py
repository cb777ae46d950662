"""Operators' latencies from simulated designs: coordinate descent over whole numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from braid.solvers.hls.estimate import estimate
from braid.solvers.hls.nests import Design
from braid.solvers.hls.schedule import Operators

Case = tuple[Design, int]
_SINGLE = ("tree", "begin", "region", "load", "store", "read", "write")
_MOST = 0.05
"""Errors count up to this, so that one design that is not understood does not decide."""


def family(name: str) -> str:
    """Return the kernel of a design's name, `…-opt2-gemm`: variants of one kernel belong
    together."""
    return name.rsplit("-", 1)[-1]


def halves(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Families in the order of their names (case ignored), alternately."""
    families = sorted({family(name) for name in names}, key=str.casefold)
    first = set(families[::2])
    return (
        [name for name in names if family(name) in first],
        [name for name in names if family(name) not in first],
    )


def error(design: Design, cycles: int, operators: Operators) -> float:
    return estimate(design, operators).cycles / cycles - 1


def _cost(cases: Sequence[Case], operators: Operators) -> float:
    return sum(min(abs(error(*case, operators)), _MOST) for case in cases) / len(cases)


def _changed(now: Operators, name: str, step: int) -> Operators | None:
    """One number, changed by so much; None if that is no latency."""
    kind, _, at = name.partition(".")
    if kind == "carried":
        cycles = list(now.carried)
        cycles[int(at)] += step
        return replace(now, carried=tuple(cycles)) if cycles[int(at)] > 0 else None
    if kind == "latencies":
        value = now.latencies[at] + step
        also = {"sub": value} if at == "add" else {}
        return replace(now, latencies={**now.latencies, at: value, **also}) if value > 0 else None
    return (
        replace(now, **{kind: getattr(now, kind) + step})
        if getattr(now, kind) + step >= 0
        else None
    )


def _names(now: Operators) -> Iterator[str]:
    yield from (f"carried.{at}" for at in range(len(now.carried)))
    yield from ("latencies.add", "latencies.mul", *_SINGLE)


def fit(cases: Sequence[Case], start: Operators) -> Operators:
    """Each number in turn gets its best value, until none is better; deterministic."""
    best, cost = start, _cost(cases, start)
    while True:
        before = cost
        for name in _names(best):
            now = best
            for step in (-2, -1, 1, 2):
                other = _changed(now, name, step)
                if other is not None and (found := _cost(cases, other)) < cost - 1e-9:
                    best, cost = other, found
        if cost == before:
            return best
