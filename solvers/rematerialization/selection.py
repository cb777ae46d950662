"""Choose the best subsequence of a sequence of candidate executions, exactly, with CP-SAT.

A *supersequence* lists candidate executions in order. Choosing which of them happen decides
recomputation and, if an op occurs several times before it is needed, its position as well. A
supersequence that repeats a topological order is Checkmate's stage matrix (Jain et al., MLSys
2020); one that holds a schedule and some insertions is a neighbourhood of that schedule.

The model has one Boolean per candidate and one per *gap* between consecutive events of a tensor
(the retention intervals of MOCCASIN, Bartan et al., 2023, cut at events), and one linear memory
constraint per candidate.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil

from ortools.sat.python import cp_model

from braid.solvers.deadline import NEVER, Deadline
from braid.solvers.rematerialization.cp_sat import weighted_sum
from braid.solvers.rematerialization.problem import Problem
from braid.solvers.rematerialization.scaling import Scale


@dataclass(frozen=True)
class _Gap:
    """`held` says that `tensor` stays resident between two of its consecutive events.

    The gap ends at place `end` with a production or a use (of the op at that place).
    """

    tensor: int
    end: int
    production: bool
    held: cp_model.IntVar


class SelectionModel:
    """The CP-SAT model of one supersequence."""

    def __init__(
        self,
        problem: Problem,
        places: Sequence[int],
        budget: int,
        deadline: Deadline = NEVER,
    ) -> None:
        """Build the model. Raises OutOfTime at `deadline`."""
        self.problem = problem
        self.places = places
        self.scale = Scale.of(problem, budget)
        self.cp = cp_model.CpModel()
        self.runs = [self.cp.new_bool_var("") for _ in places]
        self.gaps: list[_Gap] = []
        self._last: dict[int, int] = {}
        self._available: dict[int, list[cp_model.IntVar]] = {}
        self._written_over: dict[int, cp_model.IntVar] = {}
        self._memory: list[list[tuple[int, cp_model.IntVar]]] = [[] for _ in places]
        for place, op in enumerate(places):
            deadline.check()
            self._add_place(place, op)
        self._add_ends()
        self._add_memory(deadline)
        self._add_counts()

    def _open_gap(self, tensor: int, end: int, *, production: bool) -> cp_model.IntVar | None:
        """Create the gap of `tensor` from its last event to `end`; None before its first event."""
        if tensor not in self._last:
            return None
        held = self.cp.new_bool_var("")
        self.cp.add_bool_or([held.negated(), *self._available[tensor]])
        if (written_over := self._written_over.pop(tensor, None)) is not None:
            self.cp.add_implication(written_over, held.negated())
        for place in range(self._last[tensor] + 1, min(end + 1, len(self.places))):
            self._memory[place].append((self.scale.sizes[tensor], held))
        self.gaps.append(_Gap(tensor, end, production, held))
        return held

    def _add_place(self, place: int, op: int) -> None:
        run = self.runs[place]
        for tensor in sorted(set(self.problem.ops[op].inputs)):
            if self.problem.producer[tensor] < 0:
                continue
            held = self._open_gap(tensor, place, production=False)
            if held is None:
                self.cp.add(run == 0)
                continue
            self.cp.add_implication(run, held)
            self._last[tensor], self._available[tensor] = place, [held]
        self._write_over(place, op)
        for tensor in self.problem.ops[op].outputs:
            held = self._open_gap(tensor, place, production=True)
            self._memory[place].append((self.scale.sizes[tensor], run))
            self._last[tensor], self._available[tensor] = place, [run]
            if held is not None:
                self.cp.add_implication(run, held.negated())
                self._available[tensor].append(held)
        self._memory[place].append((self.scale.workspaces[op], run))

    def _write_over(self, place: int, op: int) -> None:
        """Let the output of `op` be where an input was that nothing reads any more."""
        choices: list[cp_model.IntVar] = []
        for tensor in self.problem.overwritten(op):
            if tensor in self._last:
                literal = self.cp.new_bool_var("")
                self.cp.add_implication(literal, self.runs[place])
                self._memory[place].append((-self.scale.sizes[tensor], literal))
                self._written_over[tensor] = literal
                choices.append(literal)
        if len(choices) > 1:
            self.cp.add_at_most_one(choices)

    def _add_ends(self) -> None:
        for tensor in sorted(self.problem.outputs):
            if self.problem.producer[tensor] >= 0:
                held = self._open_gap(tensor, len(self.places), production=False)
                if held is None:
                    self.cp.add_bool_or([])
                else:
                    self.cp.add(held == 1)

    def _add_memory(self, deadline: Deadline) -> None:
        for terms in self._memory:
            deadline.check()
            if sum(max(size, 0) for size, _ in terms) > self.scale.capacity:
                sizes = [size for size, _ in terms]
                used = weighted_sum([literal for _, literal in terms], sizes)
                self.cp.add(used <= self.scale.capacity)

    def _add_counts(self) -> None:
        candidates: dict[int, list[cp_model.IntVar]] = {op: [] for op in self.problem.required}
        for place, op in enumerate(self.places):
            candidates.setdefault(op, []).append(self.runs[place])
        for op, runs in candidates.items():
            if op in self.problem.required:
                self.cp.add_bool_or(runs)
            if not self.problem.ops[op].recomputable:
                self.cp.add_at_most_one(runs)

    def fix(self, places: Collection[int], *, run: bool) -> None:
        """Decide the executions at `places` beforehand."""
        for place in places:
            self.cp.add(self.runs[place] == int(run))

    def hint(self, places: Collection[int]) -> None:
        """Suggest the selection that runs exactly `places`."""
        for place, run in enumerate(self.runs):
            self.cp.add_hint(run, place in places)
        wanted: dict[int, bool] = dict.fromkeys(self.problem.outputs, True)
        for gap in reversed(self.gaps):
            runs = gap.end in places
            later = gap.end < len(self.places) and wanted.get(gap.tensor, False)
            if gap.end == len(self.places):
                value = True
            elif gap.production:
                value = later and not runs
            else:
                value = later or runs
            wanted[gap.tensor] = value
            self.cp.add_hint(gap.held, value)

    def minimize(self, floor: float) -> None:
        """Ask for the selection of least duration, which is known to be at least `floor` ticks."""
        weights = [self.scale.durations[op] for op in self.places]
        total = weighted_sum(self.runs, weights)
        self.cp.add(total >= ceil(floor - 1e-6))
        self.cp.minimize(total)

    def selected(self, solver: cp_model.CpSolver) -> tuple[int, ...]:
        """Return the sequence that `solver` found."""
        chosen = zip(self.places, self.runs, strict=True)
        return tuple(op for op, run in chosen if solver.boolean_value(run))
