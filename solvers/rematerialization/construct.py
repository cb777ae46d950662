"""A first schedule within a budget: run in order, evict when full, recompute when missing.

The online scheme of Dynamic Tensor Rematerialization (Kirisame et al., ICLR 2021) with one thing
an online scheme lacks: the order of first executions is known, so a victim is judged by the time
to its next use (Belady) as well as by what recomputing it costs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from braid.solvers.deadline import NEVER, Deadline
from braid.solvers.rematerialization.problem import Problem


@dataclass(frozen=True)
class EvictionRule:
    """The victim minimizes recompute time / (bytes ** `size_power` * distance ** `reach_power`)."""

    size_power: float = 1.0
    reach_power: float = 1.0


class _Machine:
    """A memory of `budget` bytes in which `order` is executed step by step."""

    def __init__(
        self, problem: Problem, order: Sequence[int], budget: int, rule: EvictionRule
    ) -> None:
        self.problem = problem
        self.rule = rule
        self.capacity = budget - problem.pinned_bytes
        self.resident: set[int] = set()
        self.executed: set[int] = set()
        self.sequence: list[int] = []
        self.uses: dict[int, list[int]] = {}
        for step in range(len(order) - 1, -1, -1):
            for tensor in problem.own_tensors(order[step]):
                self.uses.setdefault(tensor, []).append(step)
        for tensor in problem.outputs:
            self.uses.setdefault(tensor, []).insert(0, len(order))

    def next_use(self, tensor: int, step: int) -> float:
        """Return the step of the first use at or after `step`, infinite if there is none."""
        uses = self.uses.get(tensor, [])
        while uses and uses[-1] < step:
            uses.pop()
        return uses[-1] if uses else inf

    def missing(self, tensors: Iterable[int]) -> set[int]:
        """Return the ops that must run before all of `tensors` can be resident."""
        found: set[int] = set()
        pending = list(tensors)
        while pending:
            tensor = pending.pop()
            maker = self.problem.producer[tensor]
            if maker >= 0 and tensor not in self.resident and maker not in found:
                found.add(maker)
                pending.extend(self.problem.ops[maker].inputs)
        return found

    def badness(self, tensor: int, step: int, wanted: set[int]) -> tuple[bool, float]:
        """Return the victim key of a resident tensor: what the running plan reads goes last."""
        distance = self.next_use(tensor, step) - step
        if distance == inf and tensor not in wanted:
            return False, 0.0
        maker = self.problem.producer[tensor]
        ops = self.problem.ops
        again = self.missing(ops[maker].inputs) | {maker}
        if any(not ops[op].recomputable for op in again & self.executed):
            return True, inf
        time = sum(ops[op].duration for op in again) + 1e-9
        size = self.problem.sizes[tensor] ** self.rule.size_power
        reach = (min(distance, len(self.problem.ops)) + 1) ** self.rule.reach_power
        return tensor in wanted, time / (size * reach)

    def written_over(self, op: int, step: int, later: set[int]) -> int | None:
        """Return the largest tensor over which `op` may write at `step`, `later` being read yet."""
        dead = [
            tensor
            for tensor in self.problem.overwritten(op)
            if tensor not in later and max(self.uses.get(tensor, []), default=-1) <= step
        ]
        return max(dead, key=self.problem.sizes.__getitem__, default=None)

    def execute(self, op: int, step: int, wanted: set[int], later: set[int]) -> bool:
        """Run `op`, evicting until it fits; False when it does not fit.

        `wanted` is what the running plan reads, `later` what it reads after `op`.
        """
        used = sum(self.problem.sizes[tensor] for tensor in self.resident)
        own = self.problem.own_tensors(op)
        need = self.problem.ops[op].workspace
        need += sum(self.problem.sizes[tensor] for tensor in own - self.resident)
        written_over = self.written_over(op, step, later)
        if written_over is not None:
            need -= self.problem.sizes[written_over]
        if used + need > self.capacity:
            victims = sorted(
                (tensor for tensor in self.resident - own if self.problem.sizes[tensor]),
                key=lambda tensor: (self.badness(tensor, step, wanted), tensor),
            )
            for tensor in victims:
                if used + need <= self.capacity:
                    break
                if self.badness(tensor, step, wanted)[1] == inf:
                    return False
                self.resident.remove(tensor)
                used -= self.problem.sizes[tensor]
        if used + need > self.capacity:
            return False
        if written_over is not None:
            self.resident.remove(written_over)
        self.resident.update(self.problem.ops[op].outputs)
        self.sequence.append(op)
        self.executed.add(op)
        return True


def construct(
    problem: Problem,
    order: Sequence[int],
    budget: int,
    rule: EvictionRule,
    *,
    patience: int = 12,
    deadline: Deadline = NEVER,
) -> tuple[int, ...] | None:
    """Return a sequence whose peak is within `budget`, or None when the scheme finds none.

    `order` lists the required ops in a topological order, that of their first executions. The
    scheme gives up after `patience * len(order)` executions, and at `deadline`. Retention beyond a
    last use is possible here and harmless: live ranges are derived from the sequence.
    """
    machine = _Machine(problem, order, budget, rule)
    rank = {op: step for step, op in enumerate(order)}
    goals = [({op}, problem.ops[op].inputs) for op in order]
    goals.append((set(), tuple(sorted(problem.outputs))))
    for step, (target, tensors) in enumerate(goals):
        while plan := machine.missing(tensors) | target:
            wanted = {tensor for op in plan for tensor in problem.ops[op].inputs}.union(tensors)
            op = min(plan, key=rank.__getitem__)
            if len(machine.sequence) > patience * len(order) or deadline.passed:
                return None
            if op in machine.executed and not problem.ops[op].recomputable:
                return None
            others = (other for other in plan if other != op)
            later = {tensor for other in others for tensor in problem.ops[other].inputs}
            if op not in target:
                later.update(tensors)
            if not machine.execute(op, step, wanted, later):
                return None
            if op in target:
                break
    return tuple(machine.sequence)
