"""Find as few clusters as possible: ops of one color that run as one, none waiting for each other.

The number is bounded from below by alternation: two ops with an op of another color on a path
between them are in different clusters. Among partitions into equally few clusters, the one with the
least transfers is chosen: each value is sent once to each other cluster that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from braid.solvers.deadline import Deadline
from braid.solvers.partition.disjoint_sets import DisjointSets

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

ALONE = -1
"""The color of what is in no cluster, and between ops all the same."""
_MOST_EXACT = 400
"""Ops of an integer program that is worth solving."""
_TRANSFER_WORK = 2.0
"""The work, about seconds, of the search for smaller transfers."""
_MOST_COUNTED = 128
"""Neighbourhoods whose alternation is counted, the largest ones."""


@dataclass(frozen=True)
class ColoredGraph:
    """Ops in topological order: the color of each, and the earlier ones whose values it reads.

    `sizes` are the bytes of the value of each op; empty where transfers do not count.
    """

    color: Sequence[int]
    operands: Sequence[Sequence[int]]
    sizes: Sequence[int] = ()

    def readers(self) -> list[dict[int, list[int]]]:
        """Return by op the ops that read its value, by their color."""
        found: list[dict[int, list[int]]] = [{} for _ in self.color]
        for op, operands in enumerate(self.operands):
            for other in dict.fromkeys(operands):
                found[other].setdefault(self.color[op], []).append(op)
        return found

    def neighbours(self) -> Iterator[tuple[int, int]]:
        """Return the pairs of ops of one color of which one reads the other, or that have a common
        operand.
        """
        last_reader = dict[tuple[int, int], int]()
        for op, operands in enumerate(self.operands):
            color = self.color[op]
            if color == ALONE:
                continue
            for operand in operands:
                if self.color[operand] == color:
                    yield operand, op
                if (reader := last_reader.get((operand, color))) is not None and reader != op:
                    yield reader, op
                last_reader[operand, color] = op


@dataclass(frozen=True)
class Clusters:
    """The cluster of each op, numbered in an order in which they can run; `ALONE` for none.

    No choice has fewer than `lower_bound`; of those with as many, none transfers less bytes than
    `transfer_bound`.
    """

    of: tuple[int, ...]
    count: int
    lower_bound: int
    transfer: int = 0
    transfer_bound: int = 0


def cluster(graph: ColoredGraph, *, time_limit: float = 10.0, seed: int = 0) -> Clusters:
    """Put neighbours of one color into as few clusters as possible that can run one by one.

    Ops in topological orders that stay with a color as long as they can join the clusters of their
    neighbours; where that is above the bound, an integer program looks for fewer, and then for less
    to transfer.
    """
    deadline = Deadline.after(time_limit)
    random = Random(seed)
    bound, least = alternation_bound(graph), _least_transfer(graph)
    best = _join_in_order(graph, range(len(graph.color)), random, latest=True)
    for attempt in range(20):
        if (best.count <= bound and best.transfer <= least) or deadline.passed:
            break
        order = _order_by_colors(graph, random)
        found = _join_in_order(graph, order, random, latest=attempt % 2 == 0)
        best = min(best, found, key=_quality)
    is_small = len(graph.color) <= _MOST_EXACT
    if best.count > bound and is_small and not deadline.passed:
        best, bound = _StepModel(graph, best).fewest(bound, deadline, time_limit)
    if best.transfer > least and is_small and not deadline.passed:
        best, least = _StepModel(graph, best).least_transfer(least, deadline)
    number = _numbered(graph, best.of)
    return Clusters(number, best.count, min(bound, best.count), best.transfer, least)


def _quality(clusters: Clusters) -> tuple[int, int]:
    return clusters.count, clusters.transfer


def transfer_of(graph: ColoredGraph, of: Sequence[int]) -> int:
    """Return the bytes that clusters receive; ops in none receive as one."""
    received = {
        (other, of[op])
        for op, operands in enumerate(graph.operands)
        for other in operands
        if of[other] != of[op]
    }
    return sum(graph.sizes[op] for op, _ in received) if graph.sizes else 0


def _least_transfer(graph: ColoredGraph) -> int:
    """Return what other colors receive, however ops are put together."""
    return transfer_of(graph, graph.color)


def alternation_bound(graph: ColoredGraph) -> int:
    """Return a lower bound of clusters: neighbourhoods, and how often paths return to each."""
    sets = DisjointSets(len(graph.color))
    for a, b in graph.neighbours():
        sets.join(b, a)
    sizes = dict[int, int]()
    home = [ALONE if c == ALONE else sets.find(op) for op, c in enumerate(graph.color)]
    for op in home:
        if op != ALONE:
            sizes[op] = sizes.get(op, 0) + 1
    counted = sorted((op for op in sizes if sizes[op] > 1), key=lambda op: -sizes[op])
    column = {op: number for number, op in enumerate(counted[:_MOST_COUNTED])}
    returns = np.zeros((len(graph.color), len(column) + 1), np.int32)
    inside = np.array([column.get(op, len(column)) for op in home], np.int32)
    for op, operands in enumerate(graph.operands):
        mine = returns[op]
        here, own = inside[op], 1
        for other in operands:
            np.maximum(mine, returns[other], out=mine)
            own = max(own, int(returns[other, here]) + (inside[other] != here))
        mine[here] = max(int(mine[here]), own)
    most = returns[:, : len(column)].max(axis=0, initial=0)
    return int(most.sum()) + len(sizes) - len(column)


def is_valid(graph: ColoredGraph, of: Sequence[int]) -> bool:
    """Return whether clusters are of one color and can run one by one, ops in none on their own."""
    units = [(0, c) if c != ALONE else (1, op) for op, c in enumerate(of)]
    colors = dict[object, int]()
    if any(colors.setdefault(u, c) != c for u, c in zip(units, graph.color, strict=True)):
        return False
    before: dict[object, set[object]] = {unit: set() for unit in units}
    for op, operands in enumerate(graph.operands):
        before[units[op]] |= {units[other] for other in operands} - {units[op]}
    done, ready = 0, [unit for unit, others in before.items() if not others]
    after: dict[object, list[object]] = {unit: [] for unit in before}
    for unit, others in before.items():
        for other in others:
            after[other].append(unit)
    while ready:
        unit = ready.pop()
        done += 1
        for other in after[unit]:
            before[other].discard(unit)
            if not before[other]:
                ready.append(other)
    return done == len(before)


def _order_by_colors(graph: ColoredGraph, random: Random) -> list[int]:
    """Return a topological order that changes its color when none of it is ready."""
    missing = [len(set(operands)) for operands in graph.operands]
    readers: list[list[int]] = [[] for _ in graph.color]
    for op, operands in enumerate(graph.operands):
        for other in set(operands):
            readers[other].append(op)
    ready: dict[int, list[int]] = {}
    for op, count in enumerate(missing):
        if not count:
            ready.setdefault(graph.color[op], []).append(op)
    order: list[int] = []
    color = ALONE
    while ready:
        if color not in ready:
            color = ALONE if ALONE in ready else random.choice(sorted(ready))
        op = ready[color].pop()
        if not ready[color]:
            del ready[color]
        order.append(op)
        for reader in readers[op]:
            missing[reader] -= 1
            if not missing[reader]:
                ready.setdefault(graph.color[reader], []).append(reader)
    return order


def _join_in_order(
    graph: ColoredGraph, order: Sequence[int], random: Random, *, latest: bool
) -> Clusters:
    """Let each op join the cluster of a neighbour that does not wait for what the op reads.

    `before` has for each unit (cluster or op on its own) the units that it waits for, as bits.
    """
    unit = [ALONE] * len(graph.color)
    before: list[int] = []
    near: dict[tuple[int, int], dict[int, None]] = {}  # (operand, color): units that read it
    count = 0
    for op in order:
        color = graph.color[op]
        needs, candidates = 0, dict[int, None]()
        for operand in graph.operands[op]:
            maker = unit[operand]
            needs |= before[maker] | 1 << maker
            if color != ALONE:
                if graph.color[operand] == color:
                    candidates[maker] = None
                candidates |= near.get((operand, color), {})
        chosen = ALONE
        for candidate in sorted(candidates, reverse=latest):
            if all(
                unit[operand] == candidate or not before[unit[operand]] >> candidate & 1
                for operand in graph.operands[op]
            ):
                chosen = candidate
                if random.random() < 0.9:
                    break
        if chosen == ALONE:
            chosen = len(before)
            before.append(needs)
            count += color != ALONE
        elif needs & ~(before[chosen] | 1 << chosen):
            needs &= ~(1 << chosen)
            before[chosen] |= needs
            for other, bits in enumerate(before):
                if bits >> chosen & 1:
                    before[other] = bits | needs
        unit[op] = chosen
        if color != ALONE:
            for operand in graph.operands[op]:
                near.setdefault((operand, color), {})[chosen] = None
    of = tuple(u if c != ALONE else ALONE for u, c in zip(unit, graph.color, strict=True))
    return Clusters(of, count, 0, transfer_of(graph, of))


class _StepModel:
    """Steps of time for ops, so that neighbours at one step are a cluster, held by a tree.

    Every op but one of a cluster hangs on a neighbour at the same step. There are as many clusters
    as in `best` at most.
    """

    def __init__(self, graph: ColoredGraph, best: Clusters) -> None:
        from ortools.sat.python import cp_model  # it takes longer to load than most searches

        self._graph, self._best, self._cp = graph, best, cp_model
        self._model = model = cp_model.CpModel()
        ops = range(len(graph.color))
        steps = best.count + sum(color == ALONE for color in graph.color)
        self._step = step = [model.new_int_var(0, steps, "") for _ in ops]
        rank = [model.new_int_var(0, len(ops), "") for _ in ops]
        hangs: list[list[cp_model.IntVar]] = [[] for _ in ops]
        for op, operands in enumerate(graph.operands):
            for other in operands:
                alike = graph.color[op] == graph.color[other] != ALONE
                model.add(step[other] + (0 if alike else 1) <= step[op])
        for a, b in _all_neighbours(graph):
            for child, parent in ((a, b), (b, a)):
                hung = self._at_one_step(child, parent)
                model.add(rank[child] > rank[parent]).only_enforce_if(hung)  # pyright: ignore[reportUnknownMemberType]
                hangs[child].append(hung)
        self._roots: list[cp_model.IntVar] = []
        for op in ops:
            if graph.color[op] != ALONE:
                self._roots.append(model.new_bool_var(""))
                model.add_exactly_one(*hangs[op], self._roots[-1])
        model.add(sum(self._roots) <= best.count)

    def fewest(self, bound: int, deadline: Deadline, work: float) -> tuple[Clusters, int]:
        """Return the fewest clusters that were found, and a lower bound of their number."""
        self._model.add(sum(self._roots) >= bound)
        self._model.minimize(sum(self._roots))
        found, proven = self._solve(deadline, work)
        return min(found, self._best, key=_quality), max(bound, proven)

    def least_transfer(self, bound: int, deadline: Deadline) -> tuple[Clusters, int]:
        """Return the fewest bytes that are transferred, with as many clusters.

        Of the readers of a value with one color, a reader receives it if its step differs from the
        steps of the readers before it and of the op that makes the value.
        """
        graph = self._graph
        terms: list[cp_model.LinearExprT] = []
        for op, readers in enumerate(graph.readers()):
            for color, own in readers.items() if graph.sizes[op] else ():
                known = [op] if color == graph.color[op] else []
                for reader in own if color != ALONE else ():
                    receives = self._model.new_bool_var("")
                    same = [self._at_one_step(reader, other) for other in known]
                    self._model.add_bool_or(receives, *same)
                    terms.append(graph.sizes[op] * receives)
                    known.append(reader)
        to_host = {
            other
            for op, operands in enumerate(graph.operands)
            for other in operands
            if graph.color[op] == ALONE != graph.color[other]
        }
        host = sum(graph.sizes[op] for op in to_host)
        self._model.minimize(sum(terms))
        found, proven = self._solve(deadline, _TRANSFER_WORK)
        return min(found, self._best, key=_quality), max(bound, proven + host)

    def _at_one_step(self, op: int, other: int) -> cp_model.IntVar:
        """Return whether two ops are at the same step; may be false where they are."""
        same = self._model.new_bool_var("")
        self._model.add(self._step[op] == self._step[other]).only_enforce_if(same)  # pyright: ignore[reportUnknownMemberType]
        return same

    def _solve(self, deadline: Deadline, work: float) -> tuple[Clusters, int]:
        """Return the result, which may be the initial assignment, and the bound of the objective.

        Workers take turns and their work is counted, so that clusters do not depend on what else
        the machine does as long as the deadline is not met.
        """
        solver = self._cp.CpSolver()
        solver.parameters.max_time_in_seconds = max(deadline.remaining, 0.01)
        solver.parameters.max_deterministic_time = work
        solver.parameters.interleave_search = True
        solver.parameters.num_workers = 4
        status = solver.solve(self._model)
        if status not in (self._cp.OPTIMAL, self._cp.FEASIBLE):
            return self._best, 0
        found = _components(self._graph, [solver.value(step) for step in self._step])
        return found, round(solver.best_objective_bound)


def _all_neighbours(graph: ColoredGraph) -> set[tuple[int, int]]:
    """Return neighbours as `neighbours` does, with every pair of readers of an op."""
    pairs = set(graph.neighbours())
    readers: dict[tuple[int, int], list[int]] = {}
    for op, operands in enumerate(graph.operands):
        if graph.color[op] != ALONE:
            for operand in set(operands):
                readers.setdefault((operand, graph.color[op]), []).append(op)
    for ops in readers.values():
        pairs |= {(a, b) for i, a in enumerate(ops) for b in ops[i + 1 :]}
    return pairs


def _components(graph: ColoredGraph, step: Sequence[int]) -> Clusters:
    """Return the neighbours at the same step, together."""
    sets = DisjointSets(len(graph.color))
    for a, b in _all_neighbours(graph):
        if step[a] == step[b]:
            sets.join(b, a)
    of = tuple(ALONE if c == ALONE else sets.find(op) for op, c in enumerate(graph.color))
    return Clusters(of, len({*of} - {ALONE}), 0, transfer_of(graph, of))


def _numbered(graph: ColoredGraph, of: Sequence[int]) -> tuple[int, ...]:
    """Return the clusters, numbered in an order in which they can run."""
    units = [c if c != ALONE else -2 - op for op, c in enumerate(of)]
    waits: dict[int, set[int]] = {unit: set() for unit in units}
    readers: dict[int, set[int]] = {unit: set() for unit in units}
    for op, operands in enumerate(graph.operands):
        for other in operands:
            if units[other] != units[op]:
                waits[units[op]].add(units[other])
                readers[units[other]].add(units[op])
    first = {unit: op for op, unit in reversed([*enumerate(units)])}
    ready = sorted((unit for unit in waits if not waits[unit]), key=first.__getitem__, reverse=True)
    numbers = dict[int, int]()
    while ready:
        unit = ready.pop()
        if unit >= 0:
            numbers[unit] = len(numbers)
        for reader in sorted(readers[unit], key=first.__getitem__, reverse=True):
            waits[reader].discard(unit)
            if not waits[reader]:
                ready.append(reader)
    return tuple(numbers[c] if c != ALONE else ALONE for c in of)
