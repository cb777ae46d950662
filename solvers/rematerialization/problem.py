"""Describe rematerialization instances and their answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Op:
    """One operation of the graph.

    `duration` is the time of one execution (any unit, >= 0; weigh it by how often the op is
    expected to run). `inputs` and `outputs` are tensor indices. `workspace` bytes are in use only
    while the op runs. An op with `recomputable=False` (it draws random numbers, it has an effect)
    runs at most once. An op without outputs runs for its effect, so it always runs.

    `overwrites` are inputs, no larger than the only output, over one of which the op may write that
    if nothing reads it any more: while the op runs, the two take the bytes of the output.
    """

    duration: float
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    workspace: int = 0
    recomputable: bool = True
    name: str = ""
    overwrites: tuple[int, ...] = ()


@dataclass(frozen=True)
class Problem:
    """A DAG of ops over tensors; `ops` is a topological order, `sizes[t]` is in bytes.

    Tensors without a producer are the graph's inputs: they are resident from beginning to end
    (give them size 0 when somebody else owns their memory). Tensors in `outputs` are resident from
    their last computation to the end.

    Raises ValueError when the ops are not in topological order, a tensor has two producers, an
    index is out of range, a size or duration is negative, or an op overwrites what it cannot.
    """

    ops: tuple[Op, ...]
    sizes: tuple[int, ...]
    outputs: frozenset[int]

    def __post_init__(self) -> None:
        if any(size < 0 for size in self.sizes):
            raise ValueError("a tensor has a negative size")
        if not all(0 <= tensor < len(self.sizes) for tensor in self.outputs):
            raise ValueError("an output is not a tensor of the problem")
        consumed: set[int] = set()
        produced: set[int] = set()
        for index, op in enumerate(self.ops):
            if op.duration < 0 or op.workspace < 0:
                raise ValueError(f"op {index} has a negative duration or workspace")
            if not all(0 <= tensor < len(self.sizes) for tensor in op.inputs + op.outputs):
                raise ValueError(f"op {index} names a tensor that does not exist")
            if op.overwrites and not self._can_overwrite(op):
                raise ValueError(
                    f"op {index} overwrites what is not an input, or larger than its output"
                )
            consumed.update(op.inputs)
            for tensor in op.outputs:
                if tensor in produced:
                    raise ValueError(f"tensor {tensor} has two producers")
                if tensor in consumed:
                    raise ValueError(f"op {index} produces tensor {tensor} after a use of it")
                produced.add(tensor)

    def _can_overwrite(self, op: Op) -> bool:
        largest = max(self.sizes[tensor] for tensor in op.overwrites)
        fits = len(op.outputs) == 1 and largest <= self.sizes[op.outputs[0]]
        return fits and set(op.overwrites) <= set(op.inputs)

    @cached_property
    def producer(self) -> tuple[int, ...]:
        """The op that produces each tensor; -1 for a graph input."""
        producer = [-1] * len(self.sizes)
        for index, op in enumerate(self.ops):
            for tensor in op.outputs:
                producer[tensor] = index
        return tuple(producer)

    @cached_property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """The ops that read each tensor, ascending, each once."""
        consumers: list[list[int]] = [[] for _ in self.sizes]
        for index, op in enumerate(self.ops):
            for tensor in sorted(set(op.inputs)):
                consumers[tensor].append(index)
        return tuple(tuple(users) for users in consumers)

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """The ops whose outputs each op reads, ascending, each once."""
        return tuple(
            tuple(sorted({self.producer[t] for t in op.inputs if self.producer[t] >= 0}))
            for op in self.ops
        )

    @cached_property
    def required(self) -> tuple[int, ...]:
        """The ops that every schedule runs, ascending: effects, producers of outputs, ancestors."""
        needed = {self.producer[t] for t in self.outputs if self.producer[t] >= 0}
        needed |= {index for index, op in enumerate(self.ops) if not op.outputs}
        for index in range(len(self.ops) - 1, -1, -1):
            if index in needed:
                needed.update(self.predecessors[index])
        return tuple(sorted(needed))

    @cached_property
    def base_duration(self) -> float:
        """Duration when every required op runs exactly once."""
        return sum(self.ops[index].duration for index in self.required)

    @cached_property
    def pinned_bytes(self) -> int:
        """Bytes of the graph's inputs, resident all the time."""
        return sum(size for size, maker in zip(self.sizes, self.producer, strict=True) if maker < 0)

    def own_tensors(self, op: int) -> frozenset[int]:
        """Return the computed tensors that must be resident while `op` runs."""
        tensors = self.ops[op].inputs + self.ops[op].outputs
        return frozenset(tensor for tensor in tensors if self.producer[tensor] >= 0)

    def overwritten(self, op: int) -> tuple[int, ...]:
        """Return the computed tensors over one of which `op` may write its output."""
        return tuple(t for t in self.ops[op].overwrites if self.producer[t] >= 0)

    def overwritten_bytes(self, op: int) -> int:
        """Return the bytes that `op` takes less where it writes over an input."""
        return max((self.sizes[tensor] for tensor in self.overwritten(op)), default=0)

    def own_bytes(self, op: int) -> int:
        """Return the bytes without which `op` cannot run at all: its tensors, workspace and graph
        inputs.
        """
        tensors = sum(self.sizes[tensor] for tensor in self.own_tensors(op))
        tensors -= self.overwritten_bytes(op)
        return tensors + self.ops[op].workspace + self.pinned_bytes


@dataclass(frozen=True)
class Schedule:
    """An order of executions within the budget, and how good it is.

    `sequence` lists op indices, an op once for each time it runs. `lower_bound` is a duration that
    no schedule within the same budget undercuts; `gap` is `(duration - lower_bound) / duration`
    (0 for duration 0) and `proven` says that it is 0. With `fixed_order` the bound still holds for
    every order, so the gap is an overestimate.
    """

    sequence: tuple[int, ...]
    duration: float
    peak: int
    lower_bound: float
    gap: float
    proven: bool


class InfeasibleBudgetError(Exception):
    """No schedule within `budget` exists, or none was found.

    `proven` distinguishes the two: it is True when `budget < lower_bound`, the bytes that each of
    `blamed_ops` needs by itself, for `blamed_tensors` (without ops: what the graph's inputs and
    outputs need). `smallest_found` is the peak of the leanest schedule that was found.
    """

    def __init__(
        self,
        budget: int,
        *,
        lower_bound: int,
        smallest_found: int,
        blamed_ops: Sequence[int],
        blamed_tensors: Sequence[int],
    ) -> None:
        self.budget = budget
        self.lower_bound = lower_bound
        self.smallest_found = smallest_found
        self.blamed_ops = tuple(blamed_ops)
        self.blamed_tensors = tuple(blamed_tensors)
        self.proven = budget < lower_bound
        verdict = "is infeasible" if self.proven else "was not reached"
        super().__init__(
            f"a budget of {budget} bytes {verdict}: at least {lower_bound} bytes are needed, and "
            f"the smallest peak found is {smallest_found} bytes"
        )
