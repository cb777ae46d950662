"""Sizes with a name: expressions, assumptions about them, and their consequences.

An extent is `int | Size` (`expression.Extent`). `operators` has operations beyond `+`, `-`, `*`,
`//` and `%`, `assumptions` answers yes, no or unknown, `text` prints and parses, `evaluation`
computes in Python, and `program` makes the steps that the native runtime executes.
"""

from braid.support.sizes import operators, text

__all__ = ["operators", "text"]  # what `//` and `str` of sizes do
