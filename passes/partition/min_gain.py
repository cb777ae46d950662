"""Clusters that are not worth their start: moved to a device beside them."""

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.passes.partition.group_costs import Trial
from braid.passes.partition.partition_graph import PartitionGraph
from braid.passes.partition.requests import candidates_of
from braid.passes.pipelines import GROUPS
from braid.solvers.partition import Objective, PartitionProblem, cost
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.probed_support import ProbedSupport
from braid.targets.machines.target import Target


class Gains:
    """The gains of a function's clusters, by the costs of the groups that its ops would be in."""

    def __init__(
        self, ctx: Context, module: ModuleOp, function: FuncOp, target: Target, option: str | None
    ) -> None:
        """Take `option`, the target that the pass was given, if any."""
        graph = PartitionGraph.of(function, target, ExecutionCounts.of(module))
        ops = [op for _, op in graph.placed]
        self._node = {op: node for node, op in graph.placed}
        self._devices = {device.name: place for place, device in enumerate(target.devices)}
        self._host = self._devices[target.host]
        support = ProbedSupport(target)
        allowed = [
            {d.name for d in target.devices if d.backend in candidates_of(op, support)}
            for op in ops
        ]
        trial = Trial.run(ctx, module, GROUPS, ops, {}, option)
        seconds = np.zeros((len(graph.ops), len(target.devices)))
        nodes = [node for node, _ in graph.placed]
        seconds[nodes] = trial.seconds(target.devices, allowed, CostSource(target))
        for node, names in zip(nodes, allowed, strict=True):
            for name, place in self._devices.items():
                if name not in names:
                    seconds[node, place] = inf
        self._problem: PartitionProblem = graph.problem(target.devices, seconds, Objective.LATENCY)

    def dissolved(
        self,
        devices: Mapping[Operation, Sequence[str]],
        clusters: Sequence[Sequence[Operation]],
        least: float,
    ) -> tuple[Sequence[Operation], str] | None:
        """Return the cluster that saves least, and where its ops cost least instead.

        `devices` are those of each op; for a single request, the first one runs. None where all
        save at least `least` seconds in a run of the function, or none can move.
        """
        first = {op: names[0] for op, names in devices.items()}
        now = self._cost(first, (), "")
        worst: tuple[float, Sequence[Operation], str] | None = None
        for ops in clusters:
            own = first[ops[0]]
            if self._devices[own] == self._host or ops[0] not in self._node:
                continue
            for other in self._beside(ops, first):
                gain = self._cost(first, ops, other) - now
                if gain < least and (worst is None or gain < worst[0]):
                    worst = gain, ops, other
        return None if worst is None else worst[1:]

    def _beside(self, ops: Sequence[Operation], devices: Mapping[Operation, str]) -> set[str]:
        """Return the devices of what the ops read, and of what reads them, and the host."""
        makers = {value.owner for op in ops for value in op.operands}
        readers = {use.operation for op in ops for result in op.results for use in result.uses}
        near = {
            devices[op] for op in makers | readers if isinstance(op, Operation) and op in devices
        }
        host = next(name for name, place in self._devices.items() if place == self._host)
        return (near | {host}) - {devices[ops[0]]}

    def _cost(self, devices: Mapping[Operation, str], moved: Sequence[Operation], to: str) -> float:
        """Return the seconds of a request where `moved` are on `to`; infinite where it does not run
        them.
        """
        places = [self._host] * self._problem.ops
        for op, node in self._node.items():
            places[node] = self._devices[devices[op]]
        for op in moved:
            places[self._node[op]] = self._devices[to]
        if not np.isfinite(self._problem.seconds[np.arange(len(places)), places]).all():
            return inf
        together = ({places[node] for node in nodes} for nodes in self._problem.colocated)
        return inf if any(len(each) > 1 for each in together) else cost(self._problem, places)
