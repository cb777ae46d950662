"""Compute the cost of a sequence of executions, which the solver is tested against."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from braid.solvers.rematerialization.problem import Problem


@dataclass(frozen=True)
class LiveRange:
    """A tensor instance resident at the steps `first..last`, both included."""

    tensor: int
    first: int
    last: int


@dataclass(frozen=True)
class Simulation:
    """`profile[i]` is the number of bytes resident while execution `i` runs; `peak` its maximum."""

    peak: int
    duration: float
    profile: NDArray[np.int64]


def live_ranges(problem: Problem, sequence: Sequence[int]) -> list[LiveRange]:
    """Return the live range of every instance of a computed tensor.

    An instance lives from the execution that makes it to its last reader before the tensor is
    made again, and the last instance of a graph output to the end.
    Raises ValueError when an op does not exist, runs before its inputs exist, is required and never
    runs, or is not recomputable and runs twice.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    ranges: list[LiveRange] = []
    seen: set[int] = set()
    for step, index in enumerate(sequence):
        if not 0 <= index < len(problem.ops):
            raise ValueError(f"step {step}: there is no op {index}")
        op = problem.ops[index]
        if index in seen and not op.recomputable:
            raise ValueError(f"op {index} runs twice but cannot be recomputed")
        seen.add(index)
        for tensor in op.inputs:
            if problem.producer[tensor] < 0:
                continue
            if tensor not in first:
                raise ValueError(f"step {step}: op {index} reads tensor {tensor} before it exists")
            last[tensor] = step
        for tensor in op.outputs:
            if tensor in first:
                ranges.append(LiveRange(tensor, first[tensor], last[tensor]))
            first[tensor] = last[tensor] = step
    missing = [index for index in problem.required if index not in seen]
    if missing:
        raise ValueError(f"required ops never run: {missing}")
    for tensor in problem.outputs & first.keys():
        last[tensor] = len(sequence) - 1
    ranges.extend(LiveRange(tensor, first[tensor], last[tensor]) for tensor in first)
    return ranges


def simulate(problem: Problem, sequence: Sequence[int]) -> Simulation:
    """Run `sequence` on paper, holding every tensor only as long as it is read.

    An op writes over the largest tensor that it may overwrite and is the last to read.
    Raises ValueError as `live_ranges` does.
    """
    change = np.zeros(len(sequence) + 1, dtype=np.int64)
    written_over = np.zeros(len(sequence), dtype=np.int64)
    for live in live_ranges(problem, sequence):
        size = problem.sizes[live.tensor]
        change[live.first] += size
        change[live.last + 1] -= size
        kept = live.tensor in problem.outputs and live.last == len(sequence) - 1
        if live.tensor in problem.overwritten(sequence[live.last]) and not kept:
            written_over[live.last] = max(written_over[live.last], size)
    profile = np.cumsum(change)[:-1] + problem.pinned_bytes - written_over
    profile += np.array([problem.ops[index].workspace for index in sequence], dtype=np.int64)
    peak = int(profile.max()) if len(sequence) else problem.pinned_bytes
    return Simulation(peak, sum(problem.ops[index].duration for index in sequence), profile)
