"""A smallest subset that still fails: delta debugging, without knowing of what.

A. Zeller, R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002 (ddmin).
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")


def minimize(items: Sequence[Item], fails: Callable[[list[Item]], bool]) -> list[Item]:
    """Return a subset of `items`, in order, that fails and from which no single item can go.

    `fails` must hold for all items; it is asked for no subset twice.
    """
    kept = list(items)
    known: dict[tuple[int, ...], bool] = {}
    positions = {id(item): index for index, item in enumerate(items)}

    def still_fails(subset: list[Item]) -> bool:
        key = tuple(positions[id(item)] for item in subset)
        if key not in known:
            known[key] = fails(subset)
        return known[key]

    parts = 2
    while len(kept) > 1:
        chunks = _split(kept, parts)
        smaller: list[Item] | None = next((c for c in chunks if still_fails(c)), None)
        if smaller is not None:
            kept, parts = smaller, 2
            continue
        rests = (_without(chunks, index) for index in range(len(chunks)))
        smaller = next((rest for rest in rests if still_fails(rest)), None)
        if smaller is not None:
            kept, parts = smaller, max(parts - 1, 2)
        elif parts >= len(kept):
            break
        else:
            parts = min(2 * parts, len(kept))
    return kept


def _split(items: list[Item], parts: int) -> list[list[Item]]:
    """Split `items` into chunks of nearly equal length, later ones first: failures hide there."""
    bounds = [len(items) * part // parts for part in range(parts + 1)]
    chunks = [items[a:b] for a, b in pairwise(bounds) if a < b]
    return chunks[::-1]


def _without(chunks: list[list[Item]], index: int) -> list[Item]:
    rest = chunks[:index] + chunks[index + 1 :]
    return [item for chunk in rest[::-1] for item in chunk]
