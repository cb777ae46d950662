"""Checks of attributes that are flags or dims, which schemas declare as integers only."""

from braid.frontends.onnx.building.node import Node


def flag(node: Node, name: str, default: int = 0) -> bool:
    """Return an integer attribute as a truth value. Raises BraidError unless it is 0 or 1."""
    value = node.integer(name, default)
    if value not in (0, 1):
        node.fail(f"attribute '{name}' is {value}, expected 0 or 1")
    return value == 1


def axis(node: Node, name: str, default: int | None, rank: int) -> int:
    """Return an attribute that is a dim, from the front. Raises BraidError if there is none."""
    value = node.integer(name, default)
    if not -rank <= value < rank:
        node.fail(f"attribute '{name}' is {value}, expected {-rank} to {rank - 1}")
    return value % rank
