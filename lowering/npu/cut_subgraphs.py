"""Cuts the ops of a block into subgraphs that compile on their own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.ir import Operation

from braid.dialects.braid.names import names_of
from braid.dialects.braid.opaque import OpaqueOp
from braid.lowering.npu.compile_subgraph import SubgraphSource
from braid.passes.order.block_graph import BlockGraph
from braid.passes.order.latency_problem import ChipProblem
from braid.solvers.ordering import Graph, LatencyProblem, Traffic, Value
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.steps import steps_of
from braid.targets.simulator.stream_object import Placement


@dataclass(frozen=True)
class Cut:
    """The ops of `block` in `pieces`, in data-flow order.

    Values that only the next piece reads stay on the chip between them, as far as they fit. All
    other values of later pieces go through memory, and each piece loads the inputs that it reads.
    """

    block: BlockGraph
    chip: ChipProblem
    backend: BackendDescription
    pieces: Sequence[Sequence[int]]

    @cached_property
    def traffic(self) -> Traffic:
        """Return the traffic of the whole block."""
        assert self.chip.problem.traffic is not None
        return self.chip.problem.traffic

    @cached_property
    def piece_of(self) -> dict[int, int]:
        """The piece of each op."""
        return {op: number for number, piece in enumerate(self.pieces) for op in piece}

    @cached_property
    def carried(self) -> frozenset[int]:
        """The values that stay on the chip between their piece and the next."""
        found: dict[int, list[int]] = {}
        for number, value in enumerate(self.traffic.values):
            if value.producer is not None:
                maker = self.piece_of[value.producer]
                if {self.piece_of[op] for op in value.consumers} - {maker} == {maker + 1}:
                    found.setdefault(maker, []).append(number)
        kept: set[int] = set()
        for values in found.values():
            left = self.traffic.capacity
            for number in sorted(values, key=self._size):
                left -= self._size(number)
                if left >= 0:
                    kept.add(number)
        return frozenset(kept)

    def source(self, piece: int, search_seconds: float = 0.0) -> SubgraphSource:
        """Return the input of a piece's compilation."""
        imports, inner = self._imports[piece], self.pieces[piece]
        local = {op: place for place, op in enumerate((*imports, *inner))}
        predecessors = self.block.graph.predecessors
        edges = [(local[before], local[op]) for op in inner for before in predecessors[op]]
        whole = self.chip.problem
        place = {number: place for place, number in enumerate(self._values[piece])}
        values = tuple(
            replace(
                self._value(number, piece, local),
                over=tuple(place[o] for o in self.traffic.values[number].over if o in place),
                # A load ahead of time still comes after the stores of what it is a part of.
                sources=tuple(place[s] for s in self.traffic.values[number].sources if s in place),
            )
            for number in self._values[piece]
        )
        problem = LatencyProblem(
            Graph.from_edges(len(local) + 1, edges),
            (*(() for _ in imports), *(whole.stages[op] for op in inner), ()),
            replace(self.traffic, values=values),
            whole.counts,
        )
        steps = (
            *(() for _ in imports),
            *(steps_of(self.block.ops[op], self.backend) for op in inner),
            (),
        )
        return SubgraphSource(problem, steps, len(imports), search_seconds)

    def placement(self, piece: int) -> Placement:
        """Return the positions of a piece's ops and values in the whole."""
        ops = (*self._imports[piece], *self.pieces[piece])
        values = self._values[piece]
        return Placement(
            ops,
            values,
            tuple(self.traffic.values[number].sources for number in values),
            tuple(label(self.block.ops[op]) for op in ops),
            tuple(self.traffic.reads.get(op, ()) for op in ops),
        )

    @cached_property
    def _imports(self) -> list[tuple[int, ...]]:
        """The ops of earlier pieces that each piece waits for, ascending."""
        predecessors = self.block.graph.predecessors
        needed = [
            {before for op in piece for before in predecessors[op]} - {*piece}
            for piece in self.pieces
        ]
        for number in self.carried:
            producer = self.traffic.values[number].producer
            assert producer is not None
            needed[self.piece_of[producer] + 1].add(producer)
        return [tuple(sorted(ops)) for ops in needed]

    @cached_property
    def _values(self) -> list[tuple[int, ...]]:
        """The values that each piece reads or makes."""
        used: list[list[int]] = [[] for _ in self.pieces]
        for number, value in enumerate(self.traffic.values):
            makers = () if value.producer is None else (value.producer,)
            for piece in {self.piece_of[op] for op in (*makers, *value.consumers)}:
                used[piece].append(number)
        return [tuple(numbers) for numbers in used]

    def _value(self, number: int, piece: int, local: dict[int, int]) -> Value:
        value = self.traffic.values[number]
        made_here = value.producer is not None and self.piece_of[value.producer] == piece
        users = [op for op in value.consumers if self.piece_of[op] == piece]
        elsewhere = len(users) < len(value.consumers)
        stays = number in self.carried
        consumers = [local[op] for op in users]
        if made_here and stays:
            consumers.append(len(local))
        arrives = made_here or stays
        return replace(
            value,
            producer=local[value.producer] if value.producer is not None and arrives else None,
            consumers=tuple(consumers),
            output=made_here and (value.output or (elsewhere and not stays)),
        )

    def _size(self, number: int) -> int:
        return self.traffic.values[number].size


def label(op: Operation) -> str:
    """Return a name for reports: that of the model's layer, or the op's own and `#` for a
    number.
    """
    if names := names_of(op):
        return "+".join(names)
    kind = op.kind.data if isinstance(op, OpaqueOp) else op.name.removeprefix("braid.")
    return f"{kind}#"
