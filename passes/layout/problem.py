"""The layout problem of a function as a strategy assignment problem, and back.

Nodes are the variables and, per value and block, the set of layouts in which the value is
available there; edges are the reorders, weighted by how often their block runs. A value with one
user in its own block needs no set: the edge between maker and user is the cheapest way between
their layouts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue

from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.storage.tensor_storage import stored_alike
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.layout import Layout
from braid.passes.layout.availability import Available, LayoutSets, Matrix, block_tree
from braid.passes.layout.boundaries import sides
from braid.passes.layout.flow import Flow, LayoutVariable, ValueLayouts
from braid.passes.layout.memory_forms import Reader, ValueForms
from braid.passes.layout.memory_rows import MemoryRows
from braid.solvers.strategy import ProblemBuilder, Solution, StrategyProblem
from braid.targets.costs.layout_costs import LayoutCosts


@dataclass(frozen=True)
class Reorder:
    """`value` is made available in `target`, from `source`, in `block`."""

    value: SSAValue
    source: Layout
    target: Layout
    block: Block
    device: str | None = None
    """On the cheaper side of a boundary between devices; None where no op says its device."""

    @property
    def is_view(self) -> bool:
        """Return whether nothing moves: the layouts differ in dims of extent 1 alone."""
        shape = cast(AnyTensor, self.value.type).get_shape()
        return stored_alike(shape, self.source, self.target)


@dataclass(frozen=True)
class _User:
    node: int
    port: ValueLayouts


@dataclass
class _Value:
    """A value with more than one possible layout: who makes and who reads it."""

    maker: int
    port: ValueLayouts
    users: list[_User] = field(default_factory=list[_User])


@dataclass
class LayoutProblem:
    """The problem, and the meaning of its nodes: the first ones are the variables, in order."""

    variables: Sequence[LayoutVariable]
    problem: StrategyProblem
    available: list[Available]
    values: dict[SSAValue, _Value]
    direct: dict[SSAValue, LayoutSets]
    """The layouts of values that need no sets."""

    costs: LayoutCosts

    @property
    def most_layouts(self) -> int | None:
        """The most layouts of a value of which not all sets are considered; None: all sets are."""
        cut = [len(item.sets.layouts) for item in self.available if not item.sets.is_complete]
        return max(cut, default=None)

    def checked(self, solution: Solution) -> Solution:
        """Return `solution` with a bound for all sets of layouts, also those that were left out."""
        if self.most_layouts is None:
            return solution
        # The least cost of reorders is not known then.
        bound = sum(float(costs.min()) for costs in self.problem.node_costs)
        return replace(solution, lower_bound=min(bound, solution.cost), proven=False)

    def reorders(self, assignment: Sequence[int]) -> list[Reorder]:
        """Return the reorders of an assignment; for each value, outer blocks and sources come
        first.
        """
        result: list[Reorder] = []
        for item in self.available:
            sets = item.sets
            have = self._before(item, assignment)
            for source, target in sets.steps(have, sets.sets[assignment[item.node]]):
                layouts = sets.layouts[source], sets.layouts[target]
                result.append(self._reorder(item.value, *layouts, item.block))
        for value, sets in self.direct.items():
            flow = self.values[value]
            (user,) = flow.users
            made = sets.layouts.index(flow.port.layouts[assignment[flow.maker]])
            wanted = sets.layouts.index(user.port.layouts[assignment[user.node]])
            for source, target in sets.path(made, wanted):
                layouts = sets.layouts[source], sets.layouts[target]
                result.append(self._reorder(value, *layouts, flow.port.block))
        return result

    def _reorder(self, value: SSAValue, source: Layout, target: Layout, block: Block) -> Reorder:
        """Return a reorder with the device where it is to run, if it moves anything."""
        reorder = Reorder(value, source, target, block)
        if reorder.is_view or not (devices := sides(value, block)):
            return reorder
        device = self.costs.cheaper_side(value.type, source, target, devices)
        return replace(reorder, device=device)

    def _before(self, item: Available, assignment: Sequence[int]) -> frozenset[int]:
        """Return the layouts available before the reorders of `item`'s block."""
        if item.parent is not None:
            return item.sets.sets[assignment[item.parent.node]]
        flow = self.values[item.value]
        made = flow.port.layouts[assignment[flow.maker]]
        return frozenset((item.sets.layouts.index(made),))


class LayoutProblemBuilder:
    """Turns a flow into a `LayoutProblem`."""

    def __init__(
        self, func: FuncOp, flow: Flow, costs: LayoutCosts, counts: ExecutionCounts
    ) -> None:
        self._func = func
        self._flow = flow
        self._costs = costs
        self._counts = counts
        self._builder = ProblemBuilder()
        self._available: list[Available] = []
        self._direct: dict[SSAValue, LayoutSets] = {}
        self._sets: dict[tuple[object, tuple[Layout, ...], tuple[str, ...]], LayoutSets] = {}

    def build(self, memory_limit: int | None = None) -> LayoutProblem:
        """Return the problem of the whole function; with a limit in bytes, see `memory_rows`."""
        memory = None if memory_limit is None else MemoryRows(self._func, self._builder)
        values: dict[SSAValue, _Value] = {}
        for index, variable in enumerate(self._flow.variables):
            weight = self._counts.of_block(variable.block)
            self._builder.add_node(
                [weight * cost + variable.once(n) for n, cost in enumerate(variable.costs)]
            )
            for port in variable.makes:
                values[port.value] = _Value(index, port)
        for index, variable in enumerate(self._flow.variables):
            for port in variable.reads:
                values[port.value].users.append(_User(index, port))
        for value, flow in values.items():
            layouts = _layouts(flow)
            if len(layouts) > 1 and flow.users:
                self._connect(value, flow, layouts, memory)
            elif memory is not None:
                memory.add_fixed(value, (flow.maker, flow.port.layouts))
        problem = self._builder.build(memory_limit=memory_limit)
        return LayoutProblem(
            self._flow.variables, problem, self._available, values, self._direct, self._costs
        )

    def _connect(
        self,
        value: SSAValue,
        flow: _Value,
        layouts: tuple[Layout, ...],
        memory: MemoryRows | None,
    ) -> None:
        home = flow.port.block
        sets = self._layout_sets(value, layouts, home)
        has_one_user = len(flow.users) == 1 and flow.users[0].port.block is home
        if has_one_user and memory is None:
            self._direct[value] = sets
            user = flow.users[0]
            rows = [layouts.index(layout) for layout in flow.port.layouts]
            columns = [layouts.index(layout) for layout in user.port.layouts]
            costs = _weighted(sets.distances[np.ix_(rows, columns)], self._counts.of_block(home))
            self._builder.add_edge(flow.maker, user.node, costs)
            return
        nodes = self._add_sets(value, flow, layouts)
        for user in flow.users:
            node = nodes[user.port.block].node
            self._builder.add_edge(node, user.node, sets.contains(user.port.layouts))
        self._available.extend(nodes.values())
        if memory is not None:
            readers = [Reader(user.port.op, user.node, user.port.layouts) for user in flow.users]
            maker = (flow.maker, flow.port.layouts)
            ValueForms(memory, value, maker, sets, list(nodes.values()), readers).add()

    def _add_sets(
        self, value: SSAValue, flow: _Value, layouts: tuple[Layout, ...]
    ) -> dict[Block, Available]:
        """Return the nodes for where the value is available, with the reorders between them."""
        nodes: dict[Block, Available] = {}
        users = [user.port.block for user in flow.users]
        for block, parent in block_tree(flow.port.block, users).items():
            sets = self._layout_sets(value, layouts, block)
            node = self._builder.add_node(np.zeros(len(sets.sets)))
            above = nodes[parent] if parent is not None else None
            nodes[block] = Available(value, block, sets, node, above)
            matrix = sets.from_sets if above else sets.from_layout(flow.port.layouts)
            source = above.node if above else flow.maker
            weighted = _weighted(matrix, self._counts.of_block(block))
            self._builder.add_edge(source, node, weighted)
        return nodes

    def _layout_sets(
        self, value: SSAValue, layouts: tuple[Layout, ...], block: Block
    ) -> LayoutSets:
        """Return the cost of reorders of `value` in `block`."""
        devices = sides(value, block)
        key = (value.type, layouts, devices)
        if key not in self._sets:
            stopovers = self._costs.stopovers(value.type, layouts)
            self._sets[key] = LayoutSets.of(
                (*layouts, *stopovers),
                lambda source, target: self._costs.reorder(value.type, source, target, devices),
            )
        return self._sets[key]


def _layouts(flow: _Value) -> tuple[Layout, ...]:
    """Return all layouts that the value may be made or wanted in."""
    ports = (flow.port, *(user.port for user in flow.users))
    return tuple(dict.fromkeys(layout for port in ports for layout in port.layouts))


def _weighted(costs: Matrix, executions: float) -> Matrix:
    """Return `costs` times executions; impossible ones stay impossible in blocks that never run."""
    return np.where(np.isinf(costs), np.inf, 0.0) if executions == 0 else executions * costs
