"""`measure-order`: decides between the best orders of each subgraph by running them here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.execution.inter_op_streams import inter_op_stream_of, set_inter_op_stream
from braid.dialects.braid.attribute_names import ORDER
from braid.dialects.braid.order import order_attribute
from braid.dialects.braid.variants import public_functions
from braid.passes.order.assign_inter_op_streams import (
    AssignInterOpStreamsPass,
    require_pool,
    searched_order,
)
from braid.passes.order.block_graph import BlockGraph
from braid.passes.order.inter_op_problem import inter_op_problem
from braid.passes.order.memory_problem import memory_problem
from braid.passes.order.search_order import SearchOrderPass, block_order
from braid.passes.order.subgraphs import pieces_of
from braid.targets.costs.device_costs import DeviceCosts
from braid.targets.machines.resolve import target_of
from braid.targets.machines.target import Target
from braid.tuning.order_timing import Run, prepare_on_host
from braid.tuning.order_trials import Trial, inter_op_trials, order_trials
from braid.tuning.subgraph_module import subgraph_module

ROUNDS = 5
MARGIN = 0.97
"""The share of the time of the searched order that a better order takes at most."""

Prepare = Callable[[ModuleOp], Run]
Candidates = Callable[[Sequence[int], Sequence[int], Trial], list[Trial]]


def measured_seconds(runs: Sequence[Run]) -> list[float]:
    """Return the least time of each, in turns, so that all meet the same machine."""
    least = [run() for run in runs]
    for _ in range(ROUNDS):
        least = [min(seconds, run()) for seconds, run in zip(least, runs, strict=True)]
    return least


@dataclass(frozen=True)
class MeasureOrderPass(ModulePass):
    """Searches as `search-order`, then times the best orders of every subgraph on this machine.

    In: the input of `search-order` in the default pipeline. Out: `braid.order`, where the order of
    a subgraph with at least two is the one of up to `candidates` that runs fastest: the one found
    by the search, and others of the least peak memory. Only one that is clearly faster replaces
    it. With `streams`, threads of the pool of `target`, it searches as `assign-inter-op-streams`
    instead; it times its schedule and those of list scheduling, each on this many threads,
    and `braid.inter_op_stream` is written as well.

    Subgraphs are not begun after `time_limit` seconds; those with control flow, and functions with
    open dims, stay as searched. One remark a subgraph, with all times in seconds.

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.order = [array<i64: 1, 0>]}
    ```
    """

    name = "measure-order"

    candidates: int = 4
    time_limit: float = 60.0
    search_seconds: float = 2.0
    target: str | None = None
    streams: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Search, measure, and write the decision."""
        self.search().apply(ctx, op)
        target = target_of(op, self.target)
        Measuring(self, prepare_on_host, target).run(op)

    def search(self) -> SearchOrderPass | AssignInterOpStreamsPass:
        """Return the pass whose decision is the first one tried."""
        if self.streams == 1:
            return SearchOrderPass(time_limit=self.search_seconds)
        return AssignInterOpStreamsPass(self.streams, self.target, self.search_seconds)


@dataclass(frozen=True)
class Measuring:
    """Times orders as `options` say, on the machine that `prepare` compiles for."""

    options: MeasureOrderPass
    prepare: Prepare
    target: Target

    def run(self, module: ModuleOp) -> None:
        """Replace the orders in `module` of subgraphs that run faster in another."""
        deadline = monotonic() + self.options.time_limit
        for function in public_functions(module):
            self._measure(function, deadline)

    def _measure(self, function: FuncOp, deadline: float) -> None:
        block = BlockGraph.of(function.body.block)
        searched = searched_order(function, block)
        candidates = self._candidates(block)
        position = {number: place for place, number in enumerate(searched)}
        joined: list[int] = []
        for piece in pieces_of(block.graph, 1, 2):
            order = tuple(sorted(piece, key=position.__getitem__))
            streams = tuple(inter_op_stream_of(block.ops[number]) for number in order)
            first = Trial(order, streams, self.options.streams)
            trials = [t.of(piece) for t in candidates(piece, joined, first.within(piece))]
            chosen = trials[0]
            if len(trials) > 1 and monotonic() < deadline:
                chosen = self._fastest(block, trials)
            joined += chosen.order
            for number, stream in zip(chosen.order, chosen.streams, strict=True):
                set_inter_op_stream(block.ops[number], stream)
        function.attributes[ORDER] = order_attribute([block_order(block, joined)])

    def _candidates(self, block: BlockGraph) -> Candidates:
        """Return the trials of the ops of a piece, after those that are ordered already."""
        count, streams = self.options.candidates, self.options.streams
        if streams > 1:
            backend, _ = require_pool(self.target, streams)
            schedules = inter_op_problem(block, DeviceCosts(backend), streams)
            return lambda piece, _, first: inter_op_trials(schedules.restrict(piece), first, count)
        memory = memory_problem(block, [0] * len(block.ops))
        return lambda piece, done, first: order_trials(memory.restrict(piece, done), first, count)

    def _fastest(self, block: BlockGraph, trials: Sequence[Trial]) -> Trial:
        modules = [subgraph_module(block, trial) for trial in trials]
        runs = [self.prepare(module) for module in modules if module is not None]
        if len(runs) < len(trials):
            return trials[0]
        seconds = measured_seconds(runs)
        best = min(range(len(trials)), key=seconds.__getitem__)
        chosen = best if seconds[best] <= MARGIN * seconds[0] else 0
        emit_remark(
            block.ops[trials[0].order[0]],
            self.options.name,
            f"{len(trials)} orders of {len(trials[0].order)} ops measured: "
            f"{seconds[chosen]:.3g} s, searched {seconds[0]:.3g} s",
            seconds=seconds[chosen],
            searched=seconds[0],
            candidates=len(trials),
            chosen=chosen,
        )
        return trials[chosen]
