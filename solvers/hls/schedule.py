"""Initiation interval and depth of a nest: what recurrences, ports and latencies allow.

Modulo scheduling's bounds (Rau, "Iterative modulo scheduling", 1994): an interval is at least the
latency around a cycle of dependences over its distance in iterations, and at least the accesses to
a resource over its ports. Whether those are reached is the tool's matter; the depth is that of a
schedule as soon as possible.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil, prod

from braid.solvers.hls.events import values_of
from braid.solvers.hls.nests import MEMORY, STREAMS, Affine, Array, Loop, Nest, Op


@dataclass(frozen=True)
class Operators:
    """The operators that a tool builds: their cycles and those of memories, and the DSPs of each.

    `latencies` are those of operators with time to spare; `carried[i]` is what a sum that goes on
    in the next iteration takes where a tree of i levels adds its terms (1 term; 2; 3 or 4; 5 to 8;
    and so on), the last entry for all above. `tree` is one level of adders elsewhere, `begin`
    cycles between processes that wait for each other, `region` cycles around a design. `ports` are
    those of a memory bank.
    """

    latencies: Mapping[str, int]
    dsps: Mapping[str, int] = field(default_factory=dict[str, int])
    carried: tuple[int, ...] = (4,)
    tree: int = 4
    begin: int = 1
    region: int = 0
    load: int = 1
    store: int = 1
    read: int = 0
    write: int = 0
    ports: int = 2
    shared: float = 1.0

    def latency(self, kind: str) -> int:
        """Return the cycles from the operands to the result."""
        fixed = {"load": self.load, "store": self.store, "read": self.read, "write": self.write}
        return fixed.get(kind, self.latencies.get(kind, 0))

    def carried_by(self, terms: int) -> int:
        """Return the cycles around a sum of `terms` terms in each iteration."""
        return self.carried[min(levels(terms), len(self.carried) - 1)]

    def links(self, terms: int) -> int:
        """Return the adders around such a sum, which all have the same latency."""
        return self.carried_by(terms) // self.carried[0]

    def unhurried(self, terms: int) -> int:
        """Return the cycles around such a sum where its adders have DSPs, with load and store."""
        return self.links(terms) * self.latencies["slow_add"] + self.load + self.store


@dataclass(frozen=True)
class Sum:
    """Op number `store` adds `terms` numbers an iteration to what op `load` finds in the array.

    The same element comes again `distance` iterations later; None where it never does.
    """

    store: int
    load: int
    adders: tuple[int, ...]
    terms: int
    distance: int | None

    def around(self, nest: Nest, operators: Operators) -> int:
        """Return the cycles from a load to the next one that needs the stored value."""
        if all(nest.body[one].kind in ("add", "sub") for one in self.adders):
            cycles = operators.carried_by(self.terms)
        else:
            cycles = sum(operators.latency(nest.body[one].kind) for one in self.adders)
        # The next iteration gets the number from the operator, later ones from the array.
        return cycles if self.distance == 1 else cycles + operators.load + operators.store


@dataclass(frozen=True)
class Schedule:
    """The schedule of a nest: `interval`, `depth` (cycles of one iteration), the start of each op.

    `bound_by` says what limits the interval.
    """

    interval: int
    depth: int
    starts: tuple[int, ...]
    bound_by: str


def levels(terms: int) -> int:
    """Return the levels of a balanced tree over `count` numbers."""
    return (terms - 1).bit_length()


def absent(index: Sequence[Affine], loops: Sequence[Loop]) -> list[int]:
    """Return the positions of loops that an index does not depend on."""
    used = frozenset[str]().union(*(one.variables for one in index))
    return [at for at, loop in enumerate(loops) if loop.name not in used and loop.trips > 1]


def distance(index: Sequence[Affine], loops: Sequence[Loop]) -> int | None:
    """Return the iterations until the same element comes again; None where it never does."""
    missing = absent(index, loops)
    return prod(loop.trips for loop in loops[missing[-1] + 1 :]) if missing else None


def _paths(body: Sequence[Op], to: int) -> dict[int, list[int]]:
    """Return the ops that op `to` depends on, with the most ops that stand in between."""
    found: dict[int, list[int]] = {to: []}
    for at in range(to, -1, -1):
        for operand in body[at].operands if at in found else ():
            between = [at, *found[at]] if at != to else []
            if operand not in found or len(found[operand]) < len(between):
                found[operand] = between
    return found


def sums_of(nest: Nest) -> Iterator[Sum]:
    """Yield the sums of a nest: stores of values that depend on a load of the same element."""
    for number, op in enumerate(nest.body):
        for start, between in _paths(nest.body, number).items() if op.kind == "store" else ():
            load = nest.body[start]
            if load.kind == "load" and (load.name, load.index) == (op.name, op.index) and between:
                terms = prod(op.unrolled[at].trips for at in absent(op.index, op.unrolled))
                again = distance(op.index, nest.loops)
                yield Sum(number, start, tuple(between), terms, again)


@lru_cache(512)
def _busiest(nest: Nest, fixed: tuple[Array, ...]) -> tuple[tuple[str, int], ...]:
    """Return the names of these arrays with the accesses of an iteration to one bank, and those to
    FIFOs.
    """
    banks_of = {array.name: array.banks for array in fixed}
    seen: set[tuple[str, tuple[int, ...], object]] = set()
    for number, op in enumerate(nest.body):
        if op.kind in STREAMS:
            seen |= {
                (op.name, tuple(one.at(values).constant for one in op.index), (number, at))
                for at, values in enumerate(values_of(op.unrolled))
                if not op.guards
            }
        elif op.kind in MEMORY and op.name in banks_of:
            banks = banks_of[op.name]
            for values in values_of(op.unrolled):
                index = tuple(one.at(values) for one in op.index)
                bank = tuple(
                    one.constant % count if all(f % count == 0 for _, f in one.terms) else 0
                    for one, count in zip(index, banks, strict=True)
                )
                seen.add((op.name, bank, (op.kind, index)))
    counts = Counter((name, bank) for name, bank, _ in seen)
    return tuple(sorted((name, count) for (name, _), count in counts.items()))


def schedule(nest: Nest, arrays: Mapping[str, Array], operators: Operators) -> Schedule:
    """Schedule as soon as possible, with the least interval that the bounds allow.

    Arrays inside a design are taken to have as many banks as an iteration needs, as the tool
    partitions them by itself. Those outside have the banks that were asked for, and so has a sum
    that goes on in the next iteration where its adders take longer than one bank's accesses: the
    tool knows then that banks would not help. Arrays that are not given have banks enough.
    """
    fixed = tuple(one for one in arrays.values() if one.external)
    sums = tuple(sums_of(nest))
    reasons = [(nest.interval, "what was asked")]
    for one in sums:
        if one.distance is not None:
            least = ceil(one.around(nest, operators) / one.distance)
            reasons.append((least, f"the sum in {nest.body[one.store].name}"))
    for name, count in _busiest(nest, fixed):
        ports = operators.ports if name in arrays else 1
        reasons.append((ceil(count / ports), f"accesses to {name}"))
    for one in sums:
        array = arrays.get(nest.body[one.store].name)
        if one.distance == 1 and array is not None and not array.external:
            accesses = ceil(dict(_busiest(nest, (array,)))[array.name] / operators.ports)
            if accesses <= operators.links(one.terms) * operators.latencies["slow_add"]:
                reasons.append((accesses, f"accesses to {array.name}"))
    interval, why = max(reasons, key=lambda reason: reason[0])
    starts, depth = _as_soon_as_possible(nest, operators)
    return Schedule(interval, depth, starts, why)


def _as_soon_as_possible(nest: Nest, operators: Operators) -> tuple[tuple[int, ...], int]:
    trees = {one.store: levels(one.terms) * operators.tree for one in sums_of(nest)}
    starts: list[int] = []
    done: list[int] = []
    stored: dict[tuple[str, tuple[Affine, ...]], int] = {}
    for number, op in enumerate(nest.body):
        begin = max((done[one] for one in op.operands), default=0) + trees.get(number, 0)
        if op.kind == "load":
            begin = max(begin, stored.get((op.name, op.index), 0))
        starts.append(begin)
        done.append(begin + operators.latency(op.kind))
        if op.kind == "store":
            stored[op.name, op.index] = done[-1]
    return tuple(starts), max(done, default=0) + 1
