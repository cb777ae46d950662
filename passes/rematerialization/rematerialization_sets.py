"""Select by thresholds which sets of ops are recomputed for which reader.

A set is named by one tensor and one reader of it: its producer, and those ops before it whose large
results would otherwise be kept for it."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator

from braid.analysis.storage.memory_graph import MemoryGraph, viewed
from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.regions import GroupOp
from braid.passes.rematerialization.rematerialization_rules import RematerializationRules


@dataclass(frozen=True)
class Criteria:
    """The criteria of edges from producer to reader worth recomputing; sizes are in bytes.

    `fuse` switches the criterion on that is named after the fusion rules; `rules` also say how
    far sets grow. A peak is of what the graph makes, with `count_all` also of what it only reads.
    With `require_all`, all given criteria must hold, otherwise one of them.
    """

    rules: RematerializationRules
    tensor: int | None = None
    peak: int | None = None
    jump: int | None = None
    fuse: bool = False
    require_all: bool = False
    count_all: bool = False


@dataclass(frozen=True)
class RecomputeSet:
    """The ops `members` (ascending) of a graph, recomputed for what op `reader` reads of `tensor`.

    `reasons` are the names of the criteria that held.
    """

    tensor: int
    reader: int
    members: tuple[int, ...]
    reasons: tuple[str, ...]


def readers_of(graph: MemoryGraph, tensor: int, reader: int) -> list[Operation]:
    """Return the ops that read a tensor where op `reader` of the graph does: itself, or in its
    regions.

    A view reads nothing: it is what reads the view that does.
    """
    op, value = graph.ops[reader], graph.tensors[tensor]
    inside = [op] if isinstance(op, GroupOp) else op.walk()
    computing = (each for each in inside if not is_view(each))
    return [each for each in computing if any(viewed(read) is value for read in each.operands)]


def select_sets(
    graph: MemoryGraph, criteria: Criteria
) -> tuple[list[RecomputeSet], frozenset[int]]:
    """Return the sets that `criteria` pick, by reader and then by tensor, and the ops that run
    themselves.

    A reader that will not be run itself, because all that reads it is served by sets, gets none.
    """
    return _Selection(graph, criteria).run()


class _Selection:
    def __init__(self, graph: MemoryGraph, criteria: Criteria) -> None:
        self.graph = graph
        self.criteria = criteria
        self.picked: dict[tuple[int, int], tuple[str, ...]] = {}
        """Tensor and reader -> the criteria that held."""

    def run(self) -> tuple[list[RecomputeSet], frozenset[int]]:
        """Judge every edge, readers in order, since a set grows through edges judged before."""
        graph = self.graph
        for reader in range(len(graph.ops)):
            for tensor in graph.inputs[reader]:
                if graph.producer[tensor] >= 0:
                    self._judge(tensor, reader)
        kept = {graph.producer[tensor] for tensor in graph.results}
        kept |= {op for op, made in enumerate(graph.outputs) if not self._is_read(made)}
        kept |= {op for op in range(len(graph.ops)) if not graph.can_recompute(op)}
        chosen: list[RecomputeSet] = []
        for reader in reversed(range(len(graph.ops))):
            if reader not in kept:
                continue
            for tensor in reversed(graph.inputs[reader]):
                reasons = self.picked.get((tensor, reader))
                if reasons is None:
                    kept.add(graph.producer[tensor])
                else:
                    members = self._grow(tensor, reader)
                    chosen.append(RecomputeSet(tensor, reader, members, reasons))
                    kept.update(graph.producer[t] for t in self._inputs(members))
        return chosen[::-1], frozenset(kept)

    def _is_read(self, tensors: tuple[int, ...]) -> bool:
        return any(self.graph.readers[tensor] for tensor in tensors)

    def _judge(self, tensor: int, reader: int) -> None:
        graph, producer = self.graph, self.graph.producer[tensor]
        readers = readers_of(graph, tensor, reader)
        # Values that a region yields are needed after it, and stay.
        is_handed_on = any(op.has_trait(IsTerminator) for op in readers)
        is_tensor = isinstance(graph.tensors[tensor].type, TensorType)
        if not readers or is_handed_on or not is_tensor or not graph.can_recompute(producer):
            return
        criteria = dict(self._criteria(tensor, reader, readers))
        holds = all if self.criteria.require_all else any
        if criteria and holds(criteria.values()):
            self.picked[tensor, reader] = tuple(name for name, held in criteria.items() if held)

    def _criteria(
        self, tensor: int, reader: int, readers: Sequence[Operation]
    ) -> Iterator[tuple[str, bool]]:
        """Yield the criteria that are given, and whether they hold."""
        graph, criteria = self.graph, self.criteria
        size, producer = graph.sizes[tensor], graph.producer[tensor]
        indirect = graph.has_indirect_path(producer, reader)
        large = criteria.tensor is not None and size > criteria.tensor
        high = (
            criteria.peak is not None
            and indirect
            and graph.peak_between(producer, reader, everything=criteria.count_all) > criteria.peak
        )
        if criteria.tensor is not None and criteria.peak is not None:
            # Each has its own kind of edge, so together they are one criterion.
            yield ("peak", high) if indirect else ("tensor", large)
        elif criteria.tensor is not None:
            yield "tensor", large
        elif criteria.peak is not None:
            yield "peak", high
        if criteria.jump is not None:
            jump, members = criteria.jump, self._grow(tensor, reader)
            yield "jump", any(size - s > jump for s in self._input_sizes(members))
        if criteria.fuse:
            yield "fusion", indirect or all(self._fuses(producer, op) for op in readers)

    def _grow(self, tensor: int, reader: int) -> tuple[int, ...]:
        """Return the producer of `tensor` with what it needs.

        An op joins when its result should not exist either, because its own edge was picked; or
        when its result is as large as `tensor`, is not live at the reader anyway, and would have
        to be kept for it. Nearer ops come first, and only one anchor joins.
        """
        graph = self.graph
        producer, size = graph.producer[tensor], graph.sizes[tensor]
        indirect = graph.has_indirect_path(producer, reader)
        members, frontier = {producer}, deque([producer])
        anchored = self._is_anchor(producer)
        while frontier:
            member = frontier.popleft()
            for read in graph.inputs[member]:
                maker = graph.producer[read]
                if maker < 0 or maker in members or not graph.can_recompute(maker):
                    continue
                if anchored and self._is_anchor(maker):
                    continue
                picked = (read, member) in self.picked
                held = graph.sizes[read] >= size and graph.last_use[read] < reader
                if picked or (held and (indirect or self._fuses(maker, graph.ops[member]))):
                    members.add(maker)
                    frontier.append(maker)
                    anchored = anchored or self._is_anchor(maker)
        return tuple(sorted(members))

    def _is_anchor(self, op: int) -> bool:
        return self.criteria.rules.is_anchor(self.graph.ops[op])

    def _fuses(self, producer: int, reader: Operation) -> bool:
        """Return whether a rule lets the producer fuse with the reader; not through a view."""
        first = self.graph.ops[producer]
        direct = any(operand.owner is first for operand in reader.operands)
        return direct and self.criteria.rules.allow(first, reader)

    def _inputs(self, members: tuple[int, ...]) -> set[int]:
        """Return the tensors that the ops read and none of them makes."""
        made = {tensor for op in members for tensor in self.graph.outputs[op]}
        return {tensor for op in members for tensor in self.graph.inputs[op]} - made

    def _input_sizes(self, members: tuple[int, ...]) -> list[int]:
        """Return the bytes of the inputs; weights and constants take no memory while the model
        runs.
        """
        values = {tensor: self.graph.tensors[tensor] for tensor in self._inputs(members)}
        return [
            self.graph.sizes[tensor]
            for tensor, value in values.items()
            if isinstance(value.type, TensorType) and not _is_weight(value)
        ]


def _is_weight(value: SSAValue) -> bool:
    return isinstance(value, OpResult) and is_leaf(value.op)
