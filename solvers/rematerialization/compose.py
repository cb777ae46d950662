"""A schedule composed of schedules of consecutive parts.

Between articulation nodes a graph is a chain of parts, each of which reads the result of a single
op before it. Each is scheduled alone, within the budget minus the tensors that live across it. Its
inputs exist when it begins, and cannot be recomputed inside it, since that would need the parts
before. So the schedules may be concatenated, and the result is the shortest one if values that
cross the cuts need to be made only once.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from braid.solvers.rematerialization.parts import cut_at_articulations
from braid.solvers.rematerialization.problem import Op, Problem

PartSolver = Callable[[Problem, int, float], tuple[int, ...] | None]
"""A sequence of an instance within a budget in bytes, in a share of the time that is left."""


def schedule_parts(
    problem: Problem, budget: int, least: int, solver: PartSolver
) -> tuple[int, ...] | None:
    """Return a sequence of `problem` within `budget`, its parts of at least `least` ops.

    The result is None if there is only one part, or if `solver` finds nothing for a part. Equal
    parts are solved once.
    """
    parts = cut_at_articulations(problem, least)
    if len(parts) == 1:
        return None
    chain = _Chain(problem, parts)
    known: dict[tuple[Problem, int], tuple[int, ...] | None] = {}
    whole: list[int] = []
    for index in range(len(parts)):
        part, members = chain.standalone(index)
        limit = budget - problem.pinned_bytes - chain.passing_bytes(index)
        if (part, limit) not in known:
            known[part, limit] = solver(part, limit, 1 / (len(parts) - index))
        found = known[part, limit]
        if found is None:
            return None
        whole += [members[op] for op in found if members[op] >= 0]
    return tuple(whole)


class _Chain:
    """The parts of a problem, and in which of them each tensor is made and read."""

    def __init__(self, problem: Problem, parts: Sequence[Sequence[int]]) -> None:
        self.problem, self.parts = problem, parts
        part_of = {op: index for index, ops in enumerate(parts) for op in ops}
        self.made = {t: part_of[op] for op in part_of for t in problem.ops[op].outputs}
        self.read = {
            t: {part_of[op] for op in problem.consumers[t] if op in part_of}
            | set[int]([len(parts)] if t in problem.outputs else [])
            for t in self.made
        }

    def passing_bytes(self, part: int) -> int:
        """Return the values that are made before a part and read after it, but not in it."""
        return sum(
            self.problem.sizes[t]
            for t, made in self.made.items()
            if made < part and part not in self.read[t] and self._is_kept(t, part)
        )

    def standalone(self, part: int) -> tuple[Problem, tuple[int, ...]]:
        """Return the instance of a part, and of which op each of its is (-1 for none).

        Earlier values come from an op of no duration that runs once, before all others; values that
        are read later are outputs. The graph's inputs take nothing.
        """
        problem, ops = self.problem, self.parts[part]
        ends = [(*problem.ops[op].inputs, *problem.ops[op].outputs) for op in ops]
        tensors = sorted({t for own in ends for t in own})
        number = {tensor: index for index, tensor in enumerate(tensors)}
        arriving = [number[t] for t in tensors if t in self.made and self.made[t] < part]
        begin = len(tensors)
        members = [Op(0, (), (begin, *arriving), recomputable=False)]
        for op in ops:
            whole = problem.ops[op]
            inputs = (begin, *(number[t] for t in whole.inputs))
            outputs = tuple(number[t] for t in whole.outputs)
            over = tuple(number[t] for t in whole.overwrites)
            members.append(replace(whole, inputs=inputs, outputs=outputs, overwrites=over, name=""))
        sizes = [problem.sizes[t] if problem.producer[t] >= 0 else 0 for t in tensors]
        kept = frozenset(number[t] for t in tensors if t in self.made and self._is_kept(t, part))
        return Problem(tuple(members), (*sizes, 0), kept), (-1, *ops)

    def _is_kept(self, tensor: int, part: int) -> bool:
        return max(self.read[tensor], default=-1) > part
