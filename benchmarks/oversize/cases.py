"""The models of the oversize suite: small inputs and results, and a huge tensor in between."""

from benchmarks.oversize import (
    attention,
    cross_entropy,
    differences,
    distances,
    one_hot,
    unfold,
    upsampling,
)

CASES = (
    attention.CASE,
    distances.CASE,
    one_hot.CASE,
    differences.CASE,
    cross_entropy.CASE,
    upsampling.CASE,
    unfold.CASE,
)
"""All models of the suite."""
