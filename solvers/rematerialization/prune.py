"""Drop executions that a schedule within the budget can do without."""

from collections.abc import Sequence

from braid.solvers.deadline import NEVER, Deadline
from braid.solvers.rematerialization.problem import Problem
from braid.solvers.rematerialization.simulate import simulate


def prune(
    problem: Problem,
    sequence: Sequence[int],
    budget: int,
    *,
    fixed_order: bool,
    deadline: Deadline = NEVER,
) -> tuple[int, ...]:
    """Return a subsequence with the same meaning, peak <= `budget`, and no removable execution.

    Executions are tried from the longest to the shortest; if one is removed, its readers use the
    previous instance. Without `fixed_order` a first execution may go as well, in favour of a later
    one. O(n) simulations, none after `deadline`.
    """
    current, required = list(sequence), set(problem.required)
    by_duration = sorted(set(current), key=lambda op: (-problem.ops[op].duration, op))
    for op in by_duration:
        steps = [step for step, other in enumerate(current) if other == op]
        if len(steps) == 1 and op in required:
            continue
        for step in reversed(steps[1:] if fixed_order and op in required else steps):
            if deadline.passed:
                return tuple(current)
            shorter = current[:step] + current[step + 1 :]
            if op not in shorter and op in required:
                break
            try:
                fits = simulate(problem, shorter).peak <= budget
            except ValueError:
                continue
            if fits:
                current = shorter
    return tuple(current)
