"""Guesses of open dims' sizes, where nobody says which are likely."""

LIKELY_SEQUENCE = 128
LIKELY_STATE = 1024
"""The length of a state that grows."""
_BATCH, _SIDE = 1, 224


def likely_size(dim: int, rank: int) -> int:
    """Return a guess of an open dim's size by its place in a tensor of some rank."""
    if dim == 0 and rank > 1:
        return _BATCH
    return _SIDE if rank == 4 and dim >= 2 else LIKELY_SEQUENCE
