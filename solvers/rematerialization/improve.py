"""Make a schedule shorter: large-neighbourhood search whose neighbourhoods CP-SAT solves."""

from collections.abc import Iterator
from random import Random

from braid.solvers.rematerialization.neighbourhoods import (
    Supersequence,
    with_recomputation,
    with_reordering,
)
from braid.solvers.rematerialization.progress import Progress
from braid.solvers.rematerialization.prune import prune
from braid.solvers.rematerialization.selection import SelectionModel

_PLACES = 6000
"""Most candidates of one neighbourhood: beyond, building the model takes longer than solving it."""
_WINDOW = 24
"""Steps that may change order at once."""


def _search(progress: Progress, candidates: Supersequence, seconds: float, seed: int) -> bool:
    """Solve one neighbourhood; return whether it was searched completely."""
    deadline = progress.until
    model = SelectionModel(progress.problem, candidates.ops, progress.budget, deadline)
    model.fix(candidates.pinned, run=True)
    model.hint(candidates.chosen)
    model.minimize(progress.bound)
    outcome = progress.minimize(model.cp, seconds, seed)
    if outcome.solver is not None:
        sequence = model.selected(outcome.solver)
        fixed = progress.fixed_order
        kept = prune(
            progress.problem, sequence, progress.budget, fixed_order=fixed, deadline=deadline
        )
        progress.offer(kept)
    return outcome.optimal


def _recompute_rounds(progress: Progress, seconds: float, seed: int) -> Iterator[None]:
    """Search ever deeper recomputation before every step, or before ever smaller shares of the
    steps."""
    random = Random(seed)
    depth, share = 1, 1.0
    deepest = max(1, len(progress.problem.required))
    while True:
        sequence = progress.sequence
        steps = range(len(sequence))
        if share < 1.0:
            count = max(4, int(share * len(sequence)))
            start = random.randrange(len(sequence))
            steps = {(start + step) % len(sequence) for step in range(count)}
        candidates = with_recomputation(progress.problem, sequence, depth, steps)
        if len(candidates.ops) > max(_PLACES, 3 * len(sequence)):
            share *= 0.7
            continue
        before = progress.ticks
        complete = _search(progress, candidates, seconds, random.randrange(1 << 30))
        yield
        if not complete:
            share = max(0.05, share * 0.6)
        elif share < 1.0:
            share = min(1.0, share * 1.3)
            depth += random.random() < 0.3
        elif progress.ticks == before:
            wider = with_recomputation(progress.problem, sequence, deepest, steps)
            if candidates.ops == wider.ops:
                return
            depth += 1 if depth < 4 else depth // 2


def _reorder_rounds(progress: Progress, seconds: float, seed: int) -> Iterator[None]:
    """Search windows of the schedule for another order, from left to right and again."""
    random = Random(seed)
    fruitless = 0
    while fruitless < 4:
        before = progress.ticks
        start = -random.randrange(_WINDOW)
        while start < len(progress.sequence):
            stop = min(start + _WINDOW, len(progress.sequence))
            candidates = with_reordering(
                progress.problem, progress.sequence, max(0, start), stop, 2, random
            )
            _search(progress, candidates, seconds, random.randrange(1 << 30))
            start += _WINDOW // 2
            yield
        fruitless = 0 if progress.ticks < before else fruitless + 1


def improvement_rounds(progress: Progress, seed: int) -> Iterator[None]:
    """Yield after each round of search; ends when nothing is left to try.

    First recomputation in the present order until that is exhausted, then order and recomputation
    together in windows, over and over as long as either helps.
    """
    slice_seconds = max(0.2, min(10.0, progress.remaining / 8))
    while True:
        before = progress.ticks
        yield from _recompute_rounds(progress, slice_seconds, seed)
        if progress.fixed_order:
            return
        yield from _reorder_rounds(progress, slice_seconds / 4, seed + 1)
        if progress.ticks == before:
            return
