"""Rematerialization instances with an order that is known to fit without recomputation."""

from dataclasses import dataclass
from random import Random

from braid.solvers.rematerialization import Op, Problem, simulate


@dataclass(frozen=True)
class PlantedOrder:
    """`order` fits into `budget` without recomputation; the order of `problem.ops` does not."""

    problem: Problem
    budget: int
    order: tuple[int, ...]


def planted_order(size: int, seed: int, *, width: int = 10, slack: float = 0.0) -> PlantedOrder:
    """Return a layered graph of `size` ops, many of whose orders take more than the planted one.

    Branches of a few layers are run one after the other by the planted order, and in lockstep by
    the given one; results of branches are joined at random. The budget is the planted order's peak
    and a share `slack` of it.
    """
    random = Random(seed)
    inputs: list[tuple[int, ...]] = [()]
    sizes = [random.randint(1, 8)]
    planted: list[int] = [0]
    alive = [0]
    while len(inputs) < size:
        ends: list[int] = []
        for _ in range(min(random.randint(2, width), size - len(inputs))):
            op = random.choice(alive)
            for step in range(random.randint(1, 4)):
                if len(inputs) >= size:
                    break
                extra = (random.choice(alive),) if random.random() < 0.2 else ()
                inputs.append(tuple(sorted({op, *extra})))
                op = len(inputs) - 1
                sizes.append(random.randint(1, 64) if step < 3 else random.randint(1, 8))
                planted.append(op)
            ends.append(op)
        while len(ends) > 2 and len(inputs) < size:
            joined = [ends.pop(random.randrange(len(ends))) for _ in range(2)]
            inputs.append(tuple(sorted(set(joined))))
            sizes.append(random.randint(1, 16))
            planted.append(len(inputs) - 1)
            ends.append(len(inputs) - 1)
        alive = ends
    used = {source for own in inputs for source in own}
    layer: list[int] = []
    for own in inputs:
        layer.append(1 + max((layer[source] for source in own), default=-1))
    given = sorted(range(size), key=lambda op: (layer[op], random.random()))
    number = {op: place for place, op in enumerate(given)}
    ops = tuple(
        Op(random.randint(1, 20), tuple(sorted(number[source] for source in inputs[op])), (place,))
        for place, op in enumerate(given)
    )
    outputs = frozenset(number[op] for op in range(size) if op not in used)
    problem = Problem(ops, tuple(1024 * sizes[op] for op in given), outputs)
    order = tuple(number[op] for op in planted)
    budget = int(simulate(problem, order).peak * (1 + slack))
    return PlantedOrder(problem, budget, order)
