"""The banks of a permute's memory, and the reads of each of its passes."""

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid_hls.design import stream_of
from braid.dialects.braid_hls.permute import PermuteOp
from braid.dialects.braid_hls.stage import Pair
from braid.solvers.hls.banks import Reads, fewest_passes, reads_of
from braid.support.errors import BraidError


def memory_reads(op: PermuteOp) -> Reads:
    """Return the addresses, banks and lanes of each pass.

    Raises BraidError where a pass needs two words of a bank.
    """
    beat, banks, passes = stream_of(op.output).lanes.data, op.banks.value.data, op.ii.value.data
    reads = reads_of(op.numbers, op.words, beat, banks, passes)
    width = stream_of(op.input).lanes.data
    at = np.take_along_axis(reads.addresses, reads.banks, axis=1)
    found = (at * banks + reads.banks) * width + reads.lanes
    if not np.array_equal(found.ravel(), op.numbers):
        needed = fewest_passes(op.numbers, op.words, beat, banks)
        raise BraidError(
            f"ii = {passes} of a permute with {banks} banks, expected {needed} at least",
            location=source_location(op),
            hint="a bank gives one word in a cycle; 'select-hls-schedule' chooses both",
        )
    return reads


def banks_of(op: PermuteOp) -> list[Pair]:
    """Return pairs (banks, passes for a beat): divisors of its words, each faster than with fewer
    banks.
    """
    beat = stream_of(op.output).lanes.data
    found: list[Pair] = []
    for banks in range(1, min(op.words, beat) + 1):
        if op.words % banks == 0:
            passes = fewest_passes(op.numbers, op.words, beat, banks)
            if not found or passes < found[-1][1]:
                found.append((banks, passes))
    return found


def with_banks(op: PermuteOp, chosen: Pair) -> PermuteOp:
    """Return the permute with (banks, passes for a beat); not inserted."""
    banks, passes = chosen
    made = PermuteOp(op.input, stream_of(op.output), op.numbers, passes)
    made.banks = IntegerAttr(banks, i64)
    made.images = op.images
    return made
