"""The least cost of all layouts of a function, by trying all.

Read from the IR and from what ops and reorders cost; no flow, sets or solver of the pass. A value
is made in one layout; in each block below, reorders add layouts for all that is in it.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.dialects.braid.attribute_names import REORDER_COSTS
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.layout_costs import LayoutCosts
from braid.targets.machines.load import load_target

Option = tuple[float, tuple[Layout, ...], tuple[Layout, ...]]
"""Cost, layouts made, layouts read."""

CONTROL = (scf.IfOp, scf.IndexSwitchOp, scf.ForOp, scf.WhileOp)


@dataclass
class Variable:
    """Something that has one of `options`: (cost, layouts made, layouts read)."""

    options: list[Option]
    makes: list[SSAValue]
    reads: list[tuple[SSAValue, Block]]


class BruteForce:
    """All layouts of one function."""

    def __init__(self, module: ModuleOp, function: FuncOp) -> None:
        self._costs = LayoutCosts(module, CostSource(load_target()), "seconds")
        self._counts = ExecutionCounts.of(module)
        self._layouts = _declared(module)
        self._type: Attribute | None = None
        self._extensions: dict[frozenset[Layout], dict[frozenset[Layout], float]] = {}
        self._spreads: dict[object, float] = {}
        entry = function.body.block
        self.variables: list[Variable] = []
        arguments = [a for a in entry.args if isinstance(a.type, TensorType)]
        self._add([(0.0, tuple(layout_of(a.type) for a in arguments), ())], arguments, [])
        self._collect(entry)
        self._close()

    def _add(
        self,
        options: list[Option],
        makes: list[SSAValue],
        reads: list[tuple[SSAValue, Block]],
    ) -> None:
        self.variables.append(Variable(options, makes, reads))
        for value in (*makes, *(value for value, _ in reads)):
            self._type = value.type
            if layout_of(value.type) not in self._layouts:
                self._layouts.append(layout_of(value.type))
        for _, made, read in options:
            self._layouts.extend(x for x in (*made, *read) if x not in self._layouts)

    def _collect(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, CONTROL):
                self._carried(op)
                for region in op.regions:
                    for inner in region.blocks:
                        self._collect(inner)
            elif isinstance(op, TensorOp | FusedOp):
                weight = self._counts.of_block(block)
                options = [
                    (weight * c.cost, tuple(c.layouts.results), tuple(c.layouts.operands))
                    for c in self._costs.choices(op)
                ]
                self._add(options, list(op.results), [(v, block) for v in op.operands])

    def _carried(self, op: Operation) -> None:
        """One layout for all that control flow hands from one name to another."""
        for makes, reads in _handed(op):
            self.variables.append(Variable([], makes, reads))

    def _close(self) -> None:
        """Carried values may have any layout there is."""
        for variable in self.variables:
            if not variable.options:
                variable.options = [
                    (0.0, (x,) * len(variable.makes), (x,) * len(variable.reads))
                    for x in self._layouts
                ]

    def assignments(self) -> int:
        """How many there are to try."""
        return math.prod(len(variable.options) for variable in self.variables)

    def least(self) -> float:
        """Return the least cost; infinity if no choices are compatible."""
        options = (variable.options for variable in self.variables)
        return min(map(self._cost, itertools.product(*options)))

    def _cost(self, chosen: Sequence[Option]) -> float:
        total = 0.0
        made: dict[SSAValue, Layout] = {}
        wanted: dict[SSAValue, dict[Block, set[Layout]]] = {}
        for variable, (cost, makes, reads) in zip(self.variables, chosen, strict=True):
            total += cost
            made.update(zip(variable.makes, makes, strict=True))
            for (value, block), layout in zip(variable.reads, reads, strict=True):
                wanted.setdefault(value, {}).setdefault(block, set()).add(layout)
        for value, blocks in wanted.items():
            total += self._value(value, made[value], blocks)
            if math.isinf(total):
                return total
        return total

    def _value(self, value: SSAValue, made: Layout, wanted: dict[Block, set[Layout]]) -> float:
        key = (value, made, frozenset((b, frozenset(w)) for b, w in wanted.items()))
        if key not in self._spreads:
            home = value.owner if isinstance(value.owner, Block) else value.owner.parent
            assert home is not None
            self._spreads[key] = self._spread(home, frozenset((made,)), wanted)
        return self._spreads[key]

    def _spread(
        self, block: Block, have: frozenset[Layout], wanted: Mapping[Block, set[Layout]]
    ) -> float:
        """Least cost of the reorders in `block` and below, if `have` is there already."""
        children = {child for user in wanted for child in _child(block, user)}
        weight, here = self._counts.of_block(block), wanted.get(block, set[Layout]())
        best = math.inf
        for more, cost in self._extend(have).items():
            now = have | more
            if here <= now and math.isfinite(cost) and weight * cost < best:
                below = sum(self._spread(child, now, wanted) for child in children)
                best = min(best, weight * cost + below)
        return best

    def _extend(self, have: frozenset[Layout]) -> dict[frozenset[Layout], float]:
        """Return the cost of adding each set of other layouts to `have`."""
        if have in self._extensions:
            return self._extensions[have]
        best = {frozenset[Layout](): 0.0}
        others = [x for x in self._layouts if x not in have]
        for size in range(1, len(others) + 1):
            for added in map(frozenset, itertools.combinations(others, size)):
                best[added] = min(
                    best[added - {last}]
                    + min(self._reorder(s, last) for s in have | (added - {last}))
                    for last in added
                )
        self._extensions[have] = best
        return best

    def _reorder(self, source: Layout, target: Layout) -> float:
        assert self._type is not None
        return self._costs.reorder(self._type, source, target)


def _handed(op: Operation) -> Iterator[tuple[list[SSAValue], list[tuple[SSAValue, Block]]]]:
    """Return the names that one value has in control flow, and where it is read under each."""
    blocks = [region.block for region in op.regions if region.blocks]
    ends = [(block.last_op, block) for block in blocks]
    assert op.parent is not None
    if isinstance(op, scf.ForOp):
        (end, block), *_ = ends
        for index, result in enumerate(op.results):
            reads = [(op.iter_args[index], op.parent), (end.operands[index], block)]
            yield [block.args[index + 1], result], reads
    elif isinstance(op, scf.WhileOp):
        (condition, before), (end, after) = ends
        for index, argument in enumerate(before.args):
            yield [argument], [(op.arguments[index], op.parent), (end.operands[index], after)]
        for index, result in enumerate(op.results):
            yield [after.args[index], result], [(condition.operands[index + 1], before)]
    else:
        for index, result in enumerate(op.results):
            yield [result], [(end.operands[index], block) for end, block in ends]


def _child(block: Block, user: Block) -> Iterator[Block]:
    """Return the block directly inside of `block` that contains `user`, or None."""
    current: Block | None = user
    while current is not None:
        parent = current.parent_op()
        outer = parent.parent if parent is not None else None
        if outer is block:
            yield current
            return
        current = outer


def _declared(module: ModuleOp) -> list[Layout]:
    entries = module.attributes.get(REORDER_COSTS, ())
    names = (entry.data[key].data for entry in entries for key in ("source", "target"))
    return list(dict.fromkeys(map(Layout.named, names)))
