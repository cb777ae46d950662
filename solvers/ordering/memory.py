"""The memory objective: the peak of live bytes while ops run in an order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from braid.solvers.ordering.graph import Graph


@dataclass(frozen=True)
class Tensor:
    """A value of `size` bytes, live from when its producer runs until its last consumer ran.

    A tensor without a producer is live from the start. A pinned one is never freed: an output.
    """

    size: int
    producer: int | None
    consumers: tuple[int, ...] = ()
    pinned: bool = False


@dataclass(frozen=True)
class MemoryProblem:
    """Find the topological order of `graph` with the least peak of live bytes.

    While an op runs, earlier live values, its outputs and its workspace are in memory. The tensors'
    edges need not be in `graph`: they are added. `in_place` lists for each op the operands of which
    its output may overwrite one, if no other op reads that one later.
    """

    graph: Graph
    tensors: tuple[Tensor, ...]
    workspace: tuple[int, ...] = ()
    base: int = field(default=0)
    """Bytes that are live throughout."""
    in_place: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        size = len(self.graph)
        if self.workspace and len(self.workspace) != size:
            raise ValueError(f"{len(self.workspace)} workspaces for {size} ops: expected as many")
        if self.in_place and len(self.in_place) != size:
            raise ValueError(f"{len(self.in_place)} in-place lists for {size} ops")
        edges = {
            (tensor.producer, consumer)
            for tensor in self.tensors
            if tensor.producer is not None
            for consumer in tensor.consumers
        }
        present = {(b, op) for op, before in enumerate(self.graph.predecessors) for b in before}
        if edges - present:
            object.__setattr__(self, "graph", Graph.from_edges(size, edges | present))

    def __len__(self) -> int:
        return len(self.graph)

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """Bytes that each op makes."""
        made = [0] * len(self)
        for tensor in self.tensors:
            if tensor.producer is not None:
                made[tensor.producer] += tensor.size
        return tuple(made)

    @cached_property
    def needs(self) -> tuple[int, ...]:
        """Bytes that each op adds to what is live while it runs."""
        extra = self.workspace or (0,) * len(self)
        return tuple(map(sum, zip(self.outputs, extra, strict=True)))

    @cached_property
    def reused(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The tensors that each op may write over, and how many bytes that spares."""
        return tuple(
            tuple(
                (index, min(self.tensors[index].size, self.outputs[op]))
                for index in set(indices)
                if not self.tensors[index].pinned and op in self.tensors[index].consumers
            )
            for op, indices in enumerate(self.in_place or ((),) * len(self))
        )

    @cached_property
    def freeable(self) -> tuple[tuple[int, ...], ...]:
        """The tensors that may die when each op has run."""
        found: list[list[int]] = [[] for _ in range(len(self))]
        for index, tensor in enumerate(self.tensors):
            users = set(tensor.consumers)
            if not users and tensor.producer is not None:
                users = {tensor.producer}
            for op in users if not tensor.pinned else ():
                found[op].append(index)
        return tuple(map(tuple, found))

    @cached_property
    def user_counts(self) -> tuple[int, ...]:
        """Return by tensor the number of ops that must have run before it dies."""
        return tuple(max(len(set(tensor.consumers)), 1) for tensor in self.tensors)

    @cached_property
    def initial(self) -> int:
        """Bytes that are live before any op runs."""
        return self.base + sum(t.size for t in self.tensors if t.producer is None)

    def profile(self, order: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield `(live while it runs, live after)` for each op of `order`."""
        live = self.initial
        left = list(self.user_counts)
        for op in order:
            dying = (size for index, size in self.reused[op] if left[index] == 1)
            during = live + self.needs[op] - max(dying, default=0)
            live += self.outputs[op]
            for index in self.freeable[op]:
                left[index] -= 1
                if not left[index]:
                    live -= self.tensors[index].size
            yield during, live

    def evaluate(self, order: Sequence[int]) -> int:
        """Return the peak of live bytes under `order`."""
        return max((during for during, _ in self.profile(order)), default=self.initial)

    def lower_bound(self) -> int:
        """Return what every order needs: all outputs, and each op what it uses and makes.

        Pinned tensors that are surely live when an op runs (no producer, or one of its ancestors)
        count as well, and so do tensors between its ancestors and its descendants (the latter
        only in graphs of up to 2000 ops, since finding them is quadratic).
        """
        live = self._surely_live() if len(self) <= 2000 else self._own_needs()
        kept = self.base + sum(tensor.size for tensor in self.tensors if tensor.pinned)
        return max(self.initial, kept, max(live, default=0))

    def _own_needs(self) -> Iterator[int]:
        pinned = sum(t.size for t in self.tensors if t.pinned and t.producer is None)
        operands = [0] * len(self)
        for tensor in self.tensors:
            for op in set(tensor.consumers):
                operands[op] += 0 if tensor.pinned and tensor.producer is None else tensor.size
        for op, own in enumerate(operands):
            spared = max((size for _, size in self.reused[op]), default=0)
            yield self.base + pinned + own + self.needs[op] - spared

    def _surely_live(self) -> Iterator[int]:
        before = [0] * len(self)
        for op in self.graph.topological_order:
            for parent in self.graph.predecessors[op]:
                before[op] |= before[parent] | 1 << parent
        after = [0] * len(self)
        for op in reversed(self.graph.topological_order):
            for child in self.graph.successors[op]:
                after[op] |= after[child] | 1 << child
        sources = [1 << t.producer if t.producer is not None else 0 for t in self.tensors]
        users = [sum(1 << op for op in set(t.consumers)) for t in self.tensors]
        for op in range(len(self)):
            late = after[op] | 1 << op
            dying = (size for t, size in self.reused[op] if not users[t] & after[op])
            yield (
                self.base
                + self.needs[op]
                - max(dying, default=0)
                + sum(
                    tensor.size
                    for tensor, source, user in zip(self.tensors, sources, users, strict=True)
                    if source & before[op] == source and (tensor.pinned or user & late)
                )
            )

    def restrict(self, ops: Sequence[int], done: Sequence[int]) -> "MemoryProblem":
        """Return the problem of ordering `ops` after `done` and before all others.

        Op and tensor numbers are local; what is live throughout goes into `base`.
        """
        local = {op: place for place, op in enumerate(ops)}
        ran = set(done)
        base = self.base
        tensors: list[Tensor] = []
        number: dict[int, int] = {}
        for index, tensor in enumerate(self.tensors):
            users = tuple(local[op] for op in tensor.consumers if op in local)
            maker = tensor.producer
            if maker is not None and maker not in local and maker not in ran:
                continue
            kept = tensor.pinned or any(
                op not in local and op not in ran for op in tensor.consumers
            )
            if maker is not None and maker in local:
                number[index] = len(tensors)
                tensors.append(Tensor(tensor.size, local[maker], users, kept))
            elif kept or (maker is None and not tensor.consumers):
                base += tensor.size
            elif users:
                number[index] = len(tensors)
                tensors.append(Tensor(tensor.size, None, users))
        workspace = tuple(self.workspace[op] for op in ops) if self.workspace else ()
        own = (self.in_place[op] for op in ops) if self.in_place else ()
        in_place = tuple(tuple(number[t] for t in indices if t in number) for indices in own)
        return MemoryProblem(self.graph.restrict(ops), tuple(tensors), workspace, base, in_place)
