"""Parts of a graph whose lower bounds add up to one of the whole.

Take a schedule of the whole graph, keep the runs of some ops only, and make the values of the other
ops free: that is a schedule of these ops within the same budget. So the least durations of disjoint
parts add up to a lower bound. Little is lost where the graph is cut at articulation nodes, since
only what one op makes is then read across the cut.
"""

from collections.abc import Sequence
from dataclasses import replace

from braid.solvers.rematerialization.problem import Op, Problem

PART = 24
"""Ops that a part has at least: smaller ones lose more at their cuts than they are easier."""


def cut_at_articulations(problem: Problem, least: int) -> list[tuple[int, ...]]:
    """Return the required ops in parts of at least `least` ops, the last one of any size.

    A part ends where what later ops read was made by one op alone, but for what takes no bytes.
    """
    position = {op: index for index, op in enumerate(problem.required)}
    last_read = {
        op: max(
            (
                position[u]
                for t in problem.ops[op].outputs
                for u in problem.consumers[t]
                if u in position and problem.sizes[t]
            ),
            default=-1,
        )
        for op in problem.required
    }
    parts: list[tuple[int, ...]] = []
    part: list[int] = []
    crossing: list[int] = []
    for index, op in enumerate(problem.required):
        part.append(op)
        crossing = [made for made in (*crossing, op) if last_read[made] > index]
        if len(part) >= least and len(crossing) <= 1:
            parts.append(tuple(part))
            part = []
    return [*parts, tuple(part)] if part else parts


def part_of(problem: Problem, ops: Sequence[int], durations: Sequence[int]) -> Problem:
    """Return the instance of `ops` alone, each taking its entry of `durations` (by op).

    Values made elsewhere take no bytes, nor do the graph's inputs: subtract `pinned_bytes` from the
    budget. Values read elsewhere, and outputs, are read once by an op without effects on time and
    memory.
    """
    chosen = frozenset(ops)
    tensors = sorted({t for op in ops for t in (*problem.ops[op].inputs, *problem.ops[op].outputs)})
    number = {tensor: index for index, tensor in enumerate(tensors)}
    members: list[Op] = []
    for op in ops:
        whole = problem.ops[op]
        inputs, outputs = (tuple(number[t] for t in ends) for ends in (whole.inputs, whole.outputs))
        members.append(
            replace(
                whole,
                duration=durations[op],
                inputs=inputs,
                outputs=outputs,
                overwrites=tuple(number[t] for t in whole.overwrites),
            )
        )
    for op in ops:
        for tensor in problem.ops[op].outputs:
            if tensor in problem.outputs or not chosen.issuperset(problem.consumers[tensor]):
                members.append(Op(0, (number[tensor],), ()))
    sizes = (problem.sizes[t] if problem.producer[t] in chosen else 0 for t in tensors)
    return Problem(tuple(members), tuple(sizes), frozenset())
