"""A function as a problem for the partition solver: what its ops, values and starts take where.

Its nodes are the ops of clusters in program order, and nodes of the host: arguments of the function
and of loops, control flow, results. A value that is read in another block than the one that it is
made in comes from the host there, once for each run of that block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.storage.memory_graph import value_bytes
from braid.analysis.storage.tensor_storage import logical_bytes
from braid.analysis.structure.clusters import is_placed
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attribute_names import COLOCATE
from braid.dialects.braid.base import AnyTensor
from braid.solvers.partition import Objective, PartitionProblem
from braid.support.errors import UnsupportedError
from braid.targets.costs.launch_times import link_seconds
from braid.targets.machines.target import Device, Target

_TRANSFER_NUDGE = 1e-9
_BYTE_NUDGE = 1e-15
"""Seconds of a transfer or start, and of one of its bytes, that break ties."""


@dataclass(frozen=True)
class Replicas:
    """Numbers of devices that take turns.

    `may` is which nodes can be on them; with `must`, they can be nowhere else.
    """

    members: list[int]
    may: Sequence[bool]
    must: bool = False


@dataclass
class PartitionGraph:
    """The nodes of `function`, and how many bytes the value of each has.

    Attributes: ops: by node, the op that is assigned to a device; None for nodes of the host.
        operands: by node, the earlier ones whose values it reads.
        runs: by node, expected executions in a run of the function.
        sizes: by node, bytes of its value.
        weights: by node, bytes of the parameters that it reads.
    """

    function: FuncOp
    target: Target
    ops: list[Operation | None] = field(default_factory=list[Operation | None])
    operands: list[list[int]] = field(default_factory=list[list[int]])
    runs: list[float] = field(default_factory=list[float])
    sizes: list[float] = field(default_factory=list[float])
    weights: list[float] = field(default_factory=list[float])

    @staticmethod
    def of(function: FuncOp, target: Target, counts: ExecutionCounts) -> PartitionGraph:
        """Return the graph of a function whose clusters are not applied yet; open dims
        count as 1.
        """
        graph = PartitionGraph(function, target)
        builder = _Builder(graph, counts)
        for block in function.body.blocks:
            builder.add_block(block, [])
        return graph

    @property
    def placed(self) -> list[tuple[int, Operation]]:
        """The nodes that are assigned to devices."""
        return [(node, op) for node, op in enumerate(self.ops) if op is not None]

    def problem(
        self,
        devices: Sequence[Device],
        seconds: NDArray[np.float64],
        objective: Objective,
    ) -> PartitionProblem:
        """Return the problem on `devices`, which include the host.

        `seconds` is node × device, for one run of each; a node of the host is free there, and runs
        nowhere else.
        """
        runs = np.array(self.runs)
        host = [device.name == self.target.host for device in devices]
        work = runs[:, None] * seconds
        for node, op in enumerate(self.ops):
            if op is None:
                work[node] = [0.0 if own else inf for own in host]
        sizes = np.array(self.sizes)
        moved = np.outer(runs * (sizes > 0), np.ones(len(devices)))
        return PartitionProblem(
            seconds=work,
            operands=self.operands,
            receive=moved * _transfers(self.target, devices, sizes, receive=True),
            send=moved * _transfers(self.target, devices, sizes, receive=False),
            start=np.array([device.start_seconds for device in devices]),
            bytes=sizes + np.array(self.weights),
            capacity=np.array([memory_of(self.target, device) for device in devices]),
            colocated=list(self.colocated().values()),
            objective=objective,
            runs=self.runs,
        )

    def with_replicas(
        self, problem: PartitionProblem, seconds: NDArray[np.float64], sets: Sequence[Replicas]
    ) -> PartitionProblem:
        """Return `problem`, where ops may also run on each device of a set, which take turns.

        `seconds` is node × device, for one run of each. Each device of a set takes its share of the
        requests, and the slowest of them counts. Ops in branches and loops are launched by the host
        one by one, and have no replicas.
        """
        if not sets:
            return problem
        members_of = [own.members for own in sets]

        def parts(table: NDArray[np.float64]) -> NDArray[np.float64]:
            columns = [table[..., members].max(axis=-1) / len(members) for members in members_of]
            return np.concatenate([table, np.stack(columns, axis=-1)], axis=-1)

        work = parts(np.array(self.runs)[:, None] * seconds)
        top = np.array([op is not None and op.parent is self._top for op in self.ops], bool)
        work[:, : problem.devices] = problem.seconds
        for column, own in enumerate(sets, problem.devices):
            may = top & np.array(own.may, bool)
            work[~may, column] = inf
            if own.must:
                work[may, : problem.devices] = inf
        return replace(
            problem,
            seconds=work,
            receive=parts(problem.receive),
            send=parts(problem.send),
            start=parts(problem.start),
            capacity=np.append(problem.capacity, [problem.capacity[m].min() for m in members_of]),
            replicas=members_of,
        )

    def with_ties_broken(self, problem: PartitionProblem) -> PartitionProblem:
        """Return `problem` where transfers and starts that take no time count a little.

        Else ops would be scattered over devices that share their memory, at no cost.
        """
        sizes = np.array(self.sizes)
        each = np.array(self.runs) * (sizes > 0) * (_TRANSFER_NUDGE + _BYTE_NUDGE * sizes)
        return replace(
            problem,
            receive=problem.receive + each[:, None],
            send=problem.send + each[:, None],
            start=problem.start + _TRANSFER_NUDGE,
        )

    @property
    def _top(self) -> Block:
        return self.function.body.block

    def colocated(self) -> dict[str, list[int]]:
        """Return the nodes that run together, by the name of each colocation."""
        together: dict[str, list[int]] = {}
        for node, op in self.placed:
            name = op.attributes.get(COLOCATE)
            if isinstance(name, StringAttr):
                together.setdefault(name.data, []).append(node)
        return {name: nodes for name, nodes in together.items() if len(nodes) > 1}


def _transfers(
    target: Target, devices: Sequence[Device], sizes: NDArray[np.float64], *, receive: bool
) -> NDArray[np.float64]:
    """Return node × device: the seconds from the host to the device, or back; all values go through
    it.
    """
    columns: list[list[float]] = []
    for device in devices:
        ends = (target.host, device.name) if receive else (device.name, target.host)
        columns.append([link_seconds(target, *ends, size) for size in sizes.tolist()])
    return np.array(columns).T.reshape(len(sizes), len(devices))


def memory_of(target: Target, device: Device) -> float:
    """Return the bytes of the largest memory of a device; the host has as much as there is.

    A stream loads and stores parts of values in the host's memory: its chip holds as much.
    """
    memories = target.backend_of(device).memories
    streams = device.executes_streams and not device.own_memory
    if device.name == target.host or streams or not memories:
        return inf
    return float(max(memory.bytes for memory in memories))


class _Builder:
    """Adds the nodes of blocks, inner ones before the control flow that they are in."""

    def __init__(self, graph: PartitionGraph, counts: ExecutionCounts) -> None:
        self._graph, self._counts = graph, counts
        self._expressions = ParameterExpressions()
        self._node: dict[tuple[SSAValue, Block], int] = {}

    def add_block(self, block: Block, entered: list[int]) -> list[int]:
        """Add a block that is `entered` with values of nodes; return the node of its last op."""
        for argument in block.args:
            self._add_values(block, None, [argument], entered)
        last: list[int] = []
        for op in block.ops:
            if op.results and not op.regions and self._expressions.all_known(op.results):
                continue
            reads = self._reads(op, block)
            if is_placed(op):
                self._add_values(block, op, op.results, reads)
                continue
            blocks = (inner for region in op.regions for inner in region.blocks)
            inner = [node for each in blocks for node in self.add_block(each, reads)]
            self._add_values(block, None, op.results, [*reads, *inner])
            last = [len(self._graph.ops) - 1]
        return last

    def _reads(self, op: Operation, block: Block) -> list[int]:
        values = dict.fromkeys(value for value in op.operands)
        nodes = (self._value(value, block) for value in values)
        return list(dict.fromkeys(node for node in nodes if node is not None))

    def _value(self, value: SSAValue, block: Block) -> int | None:
        """Return the node that makes `value` in `block`; None for values known before the model
        runs.
        """
        if (value, block) in self._node:
            return self._node[value, block]
        if self._expressions.is_known(value):
            return None
        around = block.parent_op()
        outer = None if around is None else around.parent
        if outer is None:
            return None
        made = self._value(value, outer)
        if made is None:
            return None
        return self._add_values(block, None, [value], [made])

    def _add_values(
        self, block: Block, op: Operation | None, values: Sequence[SSAValue], reads: list[int]
    ) -> int:
        graph, node = self._graph, len(self._graph.ops)
        graph.ops.append(op)
        graph.operands.append(reads)
        graph.runs.append(self._counts.of_block(block))
        graph.sizes.append(float(sum(value_size(value) for value in values if value.uses)))
        read = () if op is None else dict.fromkeys(op.operands)
        known = (value for value in read if self._expressions.is_known(value))
        graph.weights.append(float(sum(map(value_size, known))))
        self._node |= dict.fromkeys(((value, block) for value in values), node)
        return node


def value_size(value: SSAValue) -> int:
    """Return the bytes of a value; open dims count as 1."""
    try:
        return value_bytes(value)
    except UnsupportedError:  # open dims
        return logical_bytes(cast(AnyTensor, value.type))
