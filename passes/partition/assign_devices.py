"""`assign-devices`: which device of the target runs each op."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from braid.analysis.diagnostics.remarks import RemarkValue, emit_remark
from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.sizes.open_forms import has_open_sizes
from braid.analysis.structure.clusters import clustered_blocks, has_clusters
from braid.dialects.braid.clusters import replicas_of, set_device
from braid.dialects.braid.variants import public_functions
from braid.passes.partition.group_costs import Trial
from braid.passes.partition.host_ops import report_host_ops
from braid.passes.partition.infeasible import infeasible
from braid.passes.partition.partition_graph import PartitionGraph, Replicas
from braid.passes.partition.replicas import check_replicas, replica_sets, turns_of, unify_colocated
from braid.passes.partition.requests import (
    Pin,
    allowed_devices,
    candidates_of,
    check_mapping_lists,
    colocation_error,
    require_used,
    set_candidates,
)
from braid.passes.pipelines import GROUPS, LAYOUTS
from braid.passes.sizes.likely_decisions import DecisionPass
from braid.solvers.deadline import Deadline
from braid.solvers.partition import (
    InfeasiblePartition,
    Objective,
    Partition,
    PartitionProblem,
    cost,
    loads,
)
from braid.solvers.partition.replicas import solve_with_replicas
from braid.support.errors import BraidError
from braid.targets.backends import has_all_backends, is_launched
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.probed_support import ProbedSupport
from braid.targets.machines.resolve import target_of

Seconds = NDArray[np.float64]
Strategy = Literal["priority", "latency", "throughput"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
_LEAST_SECONDS = 0.5
"""The least seconds of a search in one of the last rounds."""
_MOVED = 0.05
"""The share by which a cost has to differ with the chosen layouts for another round."""


@dataclass(frozen=True)
class AssignDevicesPass(DecisionPass):
    """Puts every op on a device of the target that runs it, with `braid.device`.

    The backends that run an op, and their preferences, come from `braid.candidates` on it, else
    from the mapping lists of the target. By `strategy`,

    - `priority`: the backend with the best priority; among equals, with the least transfers;
    - `latency`: the least expected time of all ops, transfers and starts;
    - `throughput`: the least load of the busiest device, where requests run as a pipeline. With
      `replicate`, devices of one kind may take turns at the requests (`braid.replicas`) if that
      saves at least 0.01 %: each then takes its share of these ops.

    Times are expected executions × costs of the groups that ops would be in, in their best layouts.
    When layouts were chosen, in a trial, the answer is costed again; where that moved by more than
    5 %, it is looked for again with the new costs, in `rounds` at most.

    In: a simplified graph. `braid.device` on an op, with `braid.replicas`, and each `pin`
    (`name=gpu:0`, `op:conv=npu`), hold; ops with the same `braid.colocate` run together. Out:
    `braid.candidates`, and `braid.device`, with `braid.replicas`, unless all ops run on the
    target's default device, in the host's memory. Does nothing where ops have cluster ids, or the
    target has one device. `time_limit` is in seconds for all searches of a function. Raises
    UnsupportedError for an op that no device runs, and BraidError for pins and colocations that
    cannot hold and where memories
    are too small.

    ```mlir
    %0 = braid.conv %x, %w …
    // becomes
    %0 = braid.conv %x, %w … {braid.candidates = {npu = 1 : i64}, braid.device = "npu:0"}
    ```
    """

    name = "assign-devices"

    target: str | None = None
    strategy: Strategy = "priority"
    pin: tuple[str, ...] = ()
    rounds: int = 3
    time_limit: float = 10.0
    replicate: bool = True

    def __post_init__(self) -> None:
        if self.rounds < 0:
            raise ValueError(f"rounds is {self.rounds}, expected a number from 0 on")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Assign the ops of each function on its own."""
        target = target_of(op, self.target)
        pins = [Pin.parse(text, target) for text in self.pin]
        for function in runtime_functions(op):
            report_host_ops(function, target, self.name)
        if len(target.devices) < 2 or has_clusters(op):
            return
        own = {block.parent_op() for block in clustered_blocks(op)}
        functions = [function for function in runtime_functions(op) if function in own]
        counts = ExecutionCounts.of(op)
        graphs = [PartitionGraph.of(function, target, counts) for function in functions]
        ops = [each for graph in graphs for _, each in graph.placed]
        check_mapping_lists(target, ops)
        require_used(pins, ops)
        check_replicas(ops, target)
        unify_colocated(ops)
        found: dict[Operation, Sequence[str]] = {}
        for graph in graphs:
            if graph.placed:
                found |= _Assignment(self, ctx, op, graph, pins).devices()
        if is_launched(target, (name for devices in found.values() for name in devices)):
            for each, (device, *replicas) in found.items():
                set_device(each, device, replicas)
            if any(map(has_open_sizes, found)):
                set_device(op, target.host)


@dataclass(frozen=True)
class _Answer:
    """The partition found by the costs of round `model`, 0 for those of groups before layouts.

    `recosted` is what it costs by `problem`, in the layouts that are chosen then.
    """

    found: Partition
    problem: PartitionProblem
    recosted: float
    model: int


class _Assignment:
    """The devices of the ops of one function."""

    def __init__(
        self,
        options: AssignDevicesPass,
        ctx: Context,
        module: ModuleOp,
        graph: PartitionGraph,
        pins: Sequence[Pin],
    ) -> None:
        self._options, self._ctx, self._module, self._graph = options, ctx, module, graph
        self._target = target = graph.target
        support = ProbedSupport(target)
        self._candidates = [candidates_of(op, support) for _, op in graph.placed]
        allowed = [
            allowed_devices(op, candidates, pins, support)
            for (_, op), candidates in zip(graph.placed, self._candidates, strict=True)
        ]
        for (_, op), candidates, able in zip(graph.placed, self._candidates, allowed, strict=True):
            backends = {device.backend for device in able}
            set_candidates(op, {name: p for name, p in candidates.items() if name in backends})
        used = {device.name for each in allowed for device in each} | {target.host}
        used |= {name for _, op in graph.placed for name in replicas_of(op)}
        self._devices = [device for device in target.devices if device.name in used]
        self._allowed = [{device.name for device in each} for each in allowed]
        self._costs = CostSource(target)
        self._sets = self._replica_sets(module)

    def devices(self) -> dict[Operation, Sequence[str]]:
        """Return for each op its device and those that take turns with it, and report how good that
        is.
        """
        strategy = self._options.strategy
        if strategy == "throughput":
            found = self._by_cost(Objective.THROUGHPUT)
        elif strategy == "latency":
            found = self._by_cost(Objective.LATENCY)
        else:
            found = self._by_priority()
        names = self._names(found)
        return {op: turns_of(op) or devices for op, devices in names.items()}

    def _replica_sets(self, module: ModuleOp) -> list[Replicas]:
        """Return the devices that may take turns; only streams of a model without variants let
        them.
        """
        if self._options.strategy != "throughput":
            return []
        able: list[set[str]] = [set() for _ in self._graph.ops]
        for (node, _), names in zip(self._graph.placed, self._allowed, strict=True):
            able[node] = names
        of_kinds = self._options.replicate and len(public_functions(module)) == 1
        graph, devices = self._graph, self._devices
        return replica_sets(self._target, devices, graph.ops, able, of_kinds=of_kinds)

    def _names(self, device: Sequence[int]) -> dict[Operation, Sequence[str]]:
        """Return the names of the devices of each op; numbers in `device` count sets last."""
        known = [(own.name,) for own in self._devices]
        known += [tuple(self._devices[k].name for k in own.members) for own in self._sets]
        return {op: known[device[node]] for node, op in self._graph.placed}

    # ---- By priority ----

    def _by_priority(self) -> Sequence[int]:
        best = [
            min(candidates[self._target.device(name).backend] for name in allowed)
            for candidates, allowed in zip(self._candidates, self._allowed, strict=True)
        ]
        places = {node: place for place, (node, _) in enumerate(self._graph.placed)}
        allowed = [
            {n for n in names if candidates[self._target.device(n).backend] == least}
            for candidates, names, least in zip(self._candidates, self._allowed, best, strict=True)
        ]
        for name, nodes in self._graph.colocated().items():
            together = self._best_together(name, [places[node] for node in nodes])
            for node in nodes:
                allowed[places[node]] = together
        problem = self._problem(self._free(allowed), Objective.LATENCY)
        found = self._solve(self._graph.with_ties_broken(problem), self._options.time_limit)
        each = loads(problem, found.device)
        self._say(found.device, f"transfers and starts {_time(each.sum())}")
        return found.device

    def _best_together(self, name: str, places: Sequence[int]) -> set[str]:
        """Return the devices that run all of these ops, with the least sum of priorities."""
        common = set[str].intersection(*(self._allowed[place] for place in places))
        if not common:
            ops = [self._graph.placed[place][1] for place in places]
            raise colocation_error(ops, name)
        backends = {device: self._target.device(device).backend for device in common}
        sums = {
            device: sum(self._candidates[place][backends[device]] for place in places)
            for device in common
        }
        return {device for device in common if sums[device] == min(sums.values())}

    def _free(self, allowed: Sequence[set[str]]) -> Seconds:
        """Return node × device: 0 where a node may run."""
        seconds = np.zeros((len(self._graph.ops), len(self._devices)))
        for (node, _), names in zip(self._graph.placed, allowed, strict=True):
            seconds[node] = [0.0 if d.name in names else inf for d in self._devices]
        return seconds

    # ---- By cost ----

    def _by_cost(self, objective: Objective) -> Sequence[int]:
        self._check_colocations()
        nodes = [node for node, _ in self._graph.placed]
        seconds = np.zeros((len(self._graph.ops), len(self._devices)))
        groups = self._trial(GROUPS, {})
        asked = [
            {*names, *replicas_of(op)}
            for (_, op), names in zip(self._graph.placed, self._allowed, strict=True)
        ]
        seconds[nodes] = groups.seconds(self._devices, asked, self._costs)
        problem = self._replicated(seconds, objective)
        deadline = Deadline.after(self._options.time_limit)
        best: _Answer | None = None
        for model in range(max(self._options.rounds, 1)):
            found = self._solve(problem, max(0.5 * deadline.remaining, _LEAST_SECONDS))
            if not self._options.rounds or not has_all_backends(self._target):
                best = _Answer(found, problem, found.cost, model)
                break
            seconds = self._recosted(seconds, found)
            problem = self._replicated(seconds, objective)
            answer = _Answer(found, problem, cost(problem, found.device), model)
            if best is None or answer.recosted < best.recosted:
                best = answer
            if abs(answer.recosted - found.cost) <= _MOVED * found.cost:
                break
        assert best is not None
        self._say_cost(best)
        return best.found.device

    def _replicated(self, seconds: Seconds, objective: Objective) -> PartitionProblem:
        """Return the problem for these seconds of devices, where devices may take turns."""
        problem = self._problem(seconds + self._free(self._allowed), objective)
        return self._graph.with_replicas(problem, seconds, self._sets)

    def _trial(self, passes: Sequence[str], devices: Mapping[Operation, Sequence[str]]) -> Trial:
        ops = [op for _, op in self._graph.placed]
        return Trial.run(self._ctx, self._module, passes, ops, devices, self._options.target)

    def _recosted(self, seconds: Seconds, found: Partition) -> Seconds:
        """Return `seconds`, and those of the ops where they are, in the layouts chosen then."""
        on = [[k] for k in range(len(self._devices))] + [own.members for own in self._sets]
        trial = self._trial(LAYOUTS, self._names(found.device))
        result = seconds.copy()
        chosen = trial.chosen_seconds(self._costs)
        for (node, _), taken in zip(self._graph.placed, chosen, strict=True):
            result[node, on[found.device[node]]] = taken
        return result

    def _check_colocations(self) -> None:
        places = {node: place for place, (node, _) in enumerate(self._graph.placed)}
        for name, nodes in self._graph.colocated().items():
            self._best_together(name, [places[node] for node in nodes])

    # ---- Both ----

    def _problem(self, seconds: Seconds, objective: Objective) -> PartitionProblem:
        return self._graph.problem(self._devices, seconds, objective)

    def _solve(self, problem: PartitionProblem, limit: float) -> Partition:
        try:
            return solve_with_replicas(problem, time_limit=limit)
        except InfeasiblePartition as error:
            strategy = self._options.strategy
            raise infeasible(self._graph.function, problem, self._devices, strategy) from error
        except TimeoutError as error:
            raise BraidError(
                f"no assignment within the memories of the devices was found in {limit:g} s",
                hint="give 'time-limit' more seconds, or pin the largest ops",
            ) from error

    def _say_cost(self, answer: _Answer) -> None:
        found = answer.found
        what = "latency" if answer.problem.objective is Objective.LATENCY else "busiest device"
        text = f"{what} {_time(found.cost)}, at least {_time(found.lower_bound)}"
        text += f", gap {100 * found.gap:.2f} % by the costs of groups"
        if answer.model:
            text += f" in the layouts of round {answer.model}"
        figures: dict[str, RemarkValue] = {
            "cost": found.cost,
            "lower_bound": found.lower_bound,
            "gap": found.gap,
            "model": answer.model,
            "sources": self._costs.sources(),
        }
        if has_all_backends(self._target) and self._options.rounds:
            text += f"; {_time(answer.recosted)} in the layouts that are chosen then"
            figures["recosted"] = answer.recosted
        self._say(found.device, text, figures)
        self._say_alone(answer)

    def _say(
        self, device: Sequence[int], text: str, figures: dict[str, RemarkValue] | None = None
    ) -> None:
        names = [" and ".join(each) for each in self._names(device).values()]
        counts = {name: names.count(name) for name in sorted(set(names), key=self._place)}
        each = ", ".join(
            f"{name}{' in turn' * (' and ' in name)} {count}" for name, count in counts.items()
        )
        function: FuncOp = self._graph.function
        emit_remark(
            function,
            self._options.name,
            f"{self._options.strategy}: {len(names)} ops: {each}; {text}",
            strategy=self._options.strategy,
            ops=len(names),
            **(figures or {}),
            **counts,
        )

    def _say_alone(self, answer: _Answer) -> None:
        """Explain why there is no split where several devices could have had a part."""
        found, problem = answer.found, answer.problem
        nodes = [node for node, _ in self._graph.placed]
        (first, *others) = set(self._names(found.device).values())
        could = {n for names in self._allowed for n in names} - set(first)
        if others or not could:
            return
        from braid.passes.partition.best_split import best_split  # rarely asked

        split = best_split(problem, nodes, found.device)
        why = (
            "no other split fits" if split is None else f"the best split found takes {_time(split)}"
        )
        emit_remark(
            self._graph.function,
            self._options.name,
            f"all ops run on {' and '.join(first)}, though {', '.join(sorted(could))} could "
            f"run some: {why}, this {_time(answer.recosted)}",
            best_split=split,
        )

    def _place(self, name: str) -> int:
        """Return where a device, or the first of several, stands in the target."""
        names = [device.name for device in self._devices]
        return names.index(name.partition(" and ")[0])


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.4g} ms"
