"""A relaxation whose optimum no schedule of any order undercuts.

Let the *cuts* c_1, …, c_k be required ops on one path. In every schedule their first executions
happen in that order, at times t_1 < … < t_k, and divide the schedule into k + 1 stages. The model
keeps, of the schedule, only *whether* an op runs in a stage and *whether* a tensor is carried
across a cut, and of the memory constraint only what these imply:

- an op that runs in a stage finds each input carried into the stage or made in it;
- at t_j the tensors of c_j and all that are carried across t_j are resident;
- throughout a stage, tensors are resident that are carried into it, and out of it without
  being made in it.

Every schedule within the budget satisfies all this with at most its own duration, whatever the
order inside the stages and however often ops run there; so every lower bound of the model is one
of the problem. With all ops of a chain as cuts it is close to Checkmate's formulation; with a few
cuts at the memory peak it is small enough for graphs of thousands of ops.
"""

from collections.abc import Sequence

from ortools.sat.python import cp_model

from braid.solvers.deadline import NEVER, Deadline
from braid.solvers.rematerialization.cp_sat import weighted_sum
from braid.solvers.rematerialization.problem import Problem
from braid.solvers.rematerialization.scaling import Scale


class CutModel:
    """The CP-SAT model for `cuts`; `ceiling` is the scaled duration of a known schedule, if any."""

    def __init__(
        self,
        problem: Problem,
        cuts: Sequence[int],
        budget: int,
        ceiling: int | None,
        deadline: Deadline = NEVER,
    ) -> None:
        """Build the model. Raises OutOfTime at `deadline`."""
        self.problem = problem
        self.cuts = cuts
        self.scale = Scale.of(problem, budget)
        self.cp = cp_model.CpModel()
        self.runs: dict[tuple[int, int], cp_model.IntVar] = {}
        self.carried: dict[tuple[int, int], cp_model.IntVar] = {}
        self._stage_of_cut = {op: stage for stage, op in enumerate(cuts)}
        self._deadline = deadline
        self._add_variables()
        for stage in range(len(cuts) + 1):
            deadline.check()
            self._add_flow(stage)
            self._add_cut_memory(stage)
            self._add_stage_memory(stage)
        self._add_counts(ceiling)

    def _add_variables(self) -> None:
        earliest = [0] * len(self.problem.ops)
        for op in self.problem.required:
            for maker in self.problem.predecessors[op]:
                after = self._stage_of_cut.get(maker, -1) + 1
                earliest[op] = max(earliest[op], earliest[maker], after)
            first = max(earliest[op], self._stage_of_cut.get(op, 0))
            for stage in range(first, len(self.cuts) + 1):
                self.runs[stage, op] = self.cp.new_bool_var("")
                for tensor in self.problem.ops[op].outputs:
                    self.carried[stage, tensor] = self.cp.new_bool_var("")

    def _sources(self, stage: int, tensor: int) -> list[cp_model.IntVar]:
        """Return the literals of which at least one must hold for `tensor` to be available in
        `stage`."""
        candidates = [
            self.runs.get((stage, self.problem.producer[tensor])),
            self.carried.get((stage - 1, tensor)),
        ]
        return [literal for literal in candidates if literal is not None]

    def _add_flow(self, stage: int) -> None:
        for op in self.problem.required:
            run = self.runs.get((stage, op))
            if run is None:
                continue
            for tensor in set(self.problem.ops[op].inputs):
                if self.problem.producer[tensor] >= 0:
                    self.cp.add_bool_or([run.negated(), *self._sources(stage, tensor)])
            for tensor in self.problem.ops[op].outputs:
                carried = self.carried[stage, tensor]
                self.cp.add_bool_or([carried.negated(), *self._sources(stage, tensor)])

    def _add_cut_memory(self, stage: int) -> None:
        """Bound what is resident while the cut that ends `stage` runs, or at the very end."""
        if stage < len(self.cuts):
            cut = self.cuts[stage]
            own = self.problem.own_tensors(cut)
            overwritten = self.problem.overwritten(cut)
            if len(overwritten) == 1:
                own = own.difference(overwritten)  # It counts where it is carried across.
            used = sum(self.scale.sizes[tensor] for tensor in own) + self.scale.workspaces[cut]
            if len(overwritten) > 1:
                used -= self._overwritten(cut)
        else:
            own, used = frozenset[int](), 0
            for tensor in self.problem.outputs:
                if (stage, tensor) in self.carried:
                    self.cp.add(self.carried[stage, tensor] == 1)
        across = [t for at, t in self.carried if at == stage and t not in own]
        sizes = [self.scale.sizes[tensor] for tensor in across]
        if used + sum(sizes) > self.scale.capacity:
            literals = [self.carried[stage, tensor] for tensor in across]
            total = weighted_sum(literals, sizes)
            self.cp.add(total <= self.scale.capacity - used)

    def _overwritten(self, op: int) -> int:
        """Return what `op` takes less at most, by writing over an input that may or may not be
        dead.
        """
        return max((self.scale.sizes[t] for t in self.problem.overwritten(op)), default=0)

    def _held_throughout(self, stage: int) -> dict[int, cp_model.IntVar]:
        """Return literals that are true for the tensors that are resident in all of `stage`."""
        last = self.cuts[stage] if stage < len(self.cuts) else None
        reads = self.problem.ops[last].inputs if last is not None else ()
        held: dict[int, cp_model.IntVar] = {}
        for at, tensor in list(self.carried):
            if at != stage - 1:
                continue
            held[tensor] = self.cp.new_bool_var("")
            clause = [
                held[tensor],
                self.carried[at, tensor].negated(),
                self.runs[stage, self.problem.producer[tensor]],
            ]
            if tensor not in reads:
                clause.append(self.carried[stage, tensor].negated())
            self.cp.add_bool_or(clause)
        return held

    def _add_stage_memory(self, stage: int) -> None:
        """Bound what each op that runs in `stage`, apart from its cut, finds resident."""
        if stage == 0:
            return
        held = self._held_throughout(stage)
        sizes = self.scale.sizes
        most = sum(sizes[tensor] for tensor in held)
        total = self.cp.new_int_var(0, max(0, self.scale.capacity), "")
        literals = list(held.values())
        self.cp.add(total >= weighted_sum(literals, [sizes[tensor] for tensor in held]))
        cut = self.cuts[stage] if stage < len(self.cuts) else None
        for op in self.problem.required:
            if op == cut or (stage, op) not in self.runs:
                continue
            self._deadline.check()
            own = self.problem.own_tensors(op)
            need = sum(sizes[tensor] for tensor in own) + self.scale.workspaces[op]
            need -= self._overwritten(op)
            if most + need <= self.scale.capacity:
                continue
            shared = [tensor for tensor in own if tensor in held]
            twice = weighted_sum(
                [held[tensor] for tensor in shared], [sizes[tensor] for tensor in shared]
            )
            free = self.scale.capacity - need
            fits = self.cp.add(total - twice <= free)
            fits.only_enforce_if(self.runs[stage, op])  # pyright: ignore[reportUnknownMemberType]

    def _add_counts(self, ceiling: int | None) -> None:
        """Make every op run; the duration is minimized, below `ceiling` where one is known."""
        durations = self.scale.durations
        base = sum(durations[op] for op in self.problem.required)
        stages = range(len(self.cuts) + 1)
        for op in self.problem.required:
            runs = [self.runs[stage, op] for stage in stages if (stage, op) in self.runs]
            if op in self._stage_of_cut:
                self.cp.add(runs[0] == 1)
            else:
                self.cp.add_bool_or(runs)
            most = len(runs) if self.problem.ops[op].recomputable else 1
            if ceiling is not None and durations[op]:
                most = min(most, 1 + (ceiling - base) // durations[op])
            if most < len(runs):
                self.cp.add(sum(runs) <= most)
        weights = [durations[op] for _, op in self.runs]
        total = weighted_sum(list(self.runs.values()), weights)
        if ceiling is not None:
            self.cp.add(total <= ceiling)
        self.cp.minimize(total)
