"""Graphs shaped as training steps: a layered forward part, and its gradients in reverse order."""

from random import Random

from braid.solvers.rematerialization import Op, Problem


def training_graph(size: int, seed: int, *, reach: int = 8) -> Problem:
    """Return about `size` ops: each forward one reads up to three of the `reach` before it.

    The gradient of an op reads what the op reads, and the gradients of its readers.
    """
    random = Random(seed)
    forward = max(2, size // 2)
    inputs = [
        sorted(random.sample(range(max(0, i - reach), i), min(i, random.choice((1, 1, 2, 3)))))
        for i in range(forward)
    ]
    readers: list[list[int]] = [[] for _ in range(forward)]
    for op, own in enumerate(inputs):
        for other in own:
            readers[other].append(op)
    ops = [Op(random.randint(1, 100), tuple(own), (i,)) for i, own in enumerate(inputs)]
    sizes = [random.randint(1, 1000) for _ in range(forward)]
    gradient = {forward - 1: forward - 1}
    for op in reversed(range(forward)):
        made = len(sizes)
        of_readers = [gradient[reader] for reader in readers[op]]
        reads = sorted({op, *inputs[op], *of_readers, *([] if of_readers else [forward - 1])})
        ops.append(Op(2 * ops[op].duration, tuple(reads), (made,)))
        sizes.append(sizes[op])
        gradient[op] = made
    return Problem(tuple(ops), tuple(sizes), frozenset({gradient[0]}))
