"""Topological orders that are worth trying as orders of first executions."""

from collections.abc import Callable, Iterator
from random import Random

from braid.solvers.rematerialization.problem import Problem

Key = Callable[[int, int, int], tuple[float, ...]]


def _list_schedule(problem: Problem, key: Key) -> tuple[int, ...]:
    """Run, of the ready ops, always the one of least `key(op, bytes gained, step made ready)`."""
    required = set(problem.required)
    readers = {
        tensor: sum(user in required for user in users)
        for tensor, users in enumerate(problem.consumers)
    }
    waiting = {op: len(problem.predecessors[op]) for op in required}
    successors: dict[int, list[int]] = {op: [] for op in required}
    for op in problem.required:
        for maker in problem.predecessors[op]:
            successors[maker].append(op)
    ready = {op: 0 for op in problem.required if not waiting[op]}
    order: list[int] = []
    while ready:

        def gain(op: int) -> int:
            made = sum(problem.sizes[t] for t in problem.ops[op].outputs)
            freed = {
                t
                for t in problem.ops[op].inputs
                if readers[t] == 1 and t not in problem.outputs and problem.producer[t] >= 0
            }
            return made - sum(problem.sizes[t] for t in freed)

        op = min(ready, key=lambda op: (*key(op, gain(op), ready[op]), op))
        del ready[op]
        order.append(op)
        for tensor in set(problem.ops[op].inputs):
            readers[tensor] -= 1
        for user in successors[op]:
            waiting[user] -= 1
            if not waiting[user]:
                ready[user] = len(order)
    return tuple(order)


def candidate_orders(problem: Problem, seed: int, count: int) -> Iterator[tuple[int, ...]]:
    """Yield topological orders of the required ops: the given one, greedy ones, random ones.

    Greedy takes the op that adds least to memory; depth-first the one that became ready last; the
    random ones weigh the two. Orders may repeat. At most `count` are yielded.
    """
    yield problem.required
    keys: list[Key] = [
        lambda op, gain, since: (gain, -since),
        lambda op, gain, since: (gain > 0, -since, gain),
    ]
    random = Random(seed)
    scale = max(problem.sizes, default=1) or 1
    for number in range(count - 1):
        if number < len(keys):
            yield _list_schedule(problem, keys[number])
            continue
        noise = [random.random() for _ in problem.ops]
        depth = random.random() / max(1, len(problem.ops))
        yield _list_schedule(
            problem,
            lambda op, gain, since, noise=noise, depth=depth: (
                gain / scale + 0.3 * noise[op] - depth * since,
            ),
        )
