"""Named pipelines as data: a name stands for the passes in its tuple, wherever a pass may."""

SIMPLIFY = ("canonicalize", "cse")
"""Fold what is constant and merge what is computed twice."""

PIPELINES: dict[str, tuple[str, ...]] = {
    "simplify": SIMPLIFY,
}
