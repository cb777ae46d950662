"""Build the graph that layout selection decides: where layouts are chosen and where values flow.

A layout variable is an op, or a value that control flow carries; it takes one of its options. An
option has a layout for each value that it makes, and one for each that it reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.execution.compute_ops import is_compute
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.structure.carried_values import Carried, carried_values, terminator_of
from braid.analysis.structure.nesting import ops_outside_groups, parent_block
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import GroupOp
from braid.passes.layout.stored_weights import StoredWeights
from braid.targets.costs.cost import Source
from braid.targets.costs.layout_costs import LayoutCosts


@dataclass(frozen=True)
class ValueLayouts:
    """A value made or read by a variable, with its layout in every option of the variable.

    `op` is the op that makes or reads it, or whose region has it.
    """

    value: SSAValue
    block: Block
    layouts: tuple[Layout, ...]
    op: Operation


@dataclass(frozen=True)
class LayoutVariable:
    """Something that picks one of `len(costs)` options; costs are per run of `block`.

    `owner` is the op that the choice belongs to; `slot` numbers the values that a control-flow op
    carries, None for an op that is not control flow; `carried` are the layouts to choose from.
    `choices` are all layouts of a compute op, including those of known operands; `families` are the
    kernel families and `sources` the sources of the costs in each choice; `copies` is what weights
    cost in it that no function decided before has stored so, however often the block runs.
    """

    owner: Operation
    slot: int | None
    block: Block
    costs: tuple[float, ...]
    makes: tuple[ValueLayouts, ...]
    reads: tuple[ValueLayouts, ...]
    choices: tuple[LayoutChoice, ...] | None = None
    carried: tuple[Layout, ...] = ()
    families: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    copies: tuple[float, ...] = ()

    def once(self, option: int) -> float:
        """Return the cost of the option besides the runs of the block."""
        return self.copies[option] if self.copies else 0.0


@dataclass
class Flow:
    """The variables of a function; values that are known at compile time flow for nothing."""

    variables: list[LayoutVariable] = field(default_factory=list[LayoutVariable])


def is_tensor(value: SSAValue) -> bool:
    """Return whether `value` is a tensor, and so has a layout."""
    return isinstance(value.type, TensorType)


def collect_flow(
    func: FuncOp,
    costs: LayoutCosts,
    stored: StoredWeights | None = None,
    *,
    change_signature: bool = False,
) -> Flow:
    """Return the variables of `func`, in the order of its ops.

    Weights in other layouts than those that are `stored` cost a copy. The layouts of arguments
    and results are those of their types, or free with `change_signature`.
    """
    expressions = ParameterExpressions()
    flow = Flow()
    entry = func.body.block
    carried = signature_values(func) if change_signature else []
    if not change_signature:
        flow.variables.append(_fixed(func, entry, entry.args, ()))
    for op in ops_outside_groups(func):
        if op.results and expressions.is_known(op.results[0]):
            continue
        if change_signature and isinstance(op, ReturnOp):
            continue
        if isinstance(op, scf.IfOp | scf.IndexSwitchOp | scf.ForOp | scf.WhileOp):
            carried.extend(carried_values(op))
        elif not _hands_on_to_control_flow(op):
            flow.variables.append(_op_variable(op, costs, expressions, stored))
    flow.variables.extend(_carried_variables(carried, flow.variables, costs, expressions))
    return flow


def signature_values(func: FuncOp) -> list[Carried]:
    """Return the tensors among the arguments and results of `func`, numbered consecutively."""
    end = terminator_of(func.body.block)
    rows: list[tuple[tuple[SSAValue, ...], tuple[tuple[Operation, int], ...]]] = [
        *(((argument,), ()) for argument in func.body.block.args),
        *(((), ((end, index),)) for index in range(len(end.operands))),
    ]
    carried = (Carried(func, slot, makes, reads) for slot, (makes, reads) in enumerate(rows))
    return [item for item in carried if is_tensor(item.value)]


def _hands_on_to_control_flow(op: Operation) -> bool:
    return isinstance(op, scf.YieldOp | scf.ConditionOp)


def _block_of(op: Operation) -> Block:
    assert op.parent is not None
    return op.parent


def _fixed(
    owner: Operation, block: Block, makes: Sequence[SSAValue], reads: Sequence[SSAValue]
) -> LayoutVariable:
    """Return a layout variable with one option, that of the types."""

    def ports(values: Sequence[SSAValue]) -> tuple[ValueLayouts, ...]:
        return tuple(
            ValueLayouts(v, block, (layout_of(v.type),), owner) for v in values if is_tensor(v)
        )

    return LayoutVariable(owner, None, block, (0.0,), ports(makes), ports(reads))


def _op_variable(
    op: Operation,
    costs: LayoutCosts,
    expressions: ParameterExpressions,
    stored: StoredWeights | None,
) -> LayoutVariable:
    block = _block_of(op)
    reads = [v for v in op.operands if not expressions.is_known(v)]
    if not (is_compute(op) or isinstance(op, GroupOp)):
        return _fixed(op, block, op.results, reads)
    choices = costs.choices(op)
    read_ports = tuple(
        ValueLayouts(
            operand, block, tuple(choice.layouts.operands[index] for choice in choices), op
        )
        for index, operand in enumerate(op.operands)
        if not expressions.is_known(operand)
    )
    make_ports = tuple(
        ValueLayouts(result, block, tuple(choice.layouts.results[index] for choice in choices), op)
        for index, result in enumerate(op.results)
    )
    layouts = tuple(choice.layouts for choice in choices)
    return LayoutVariable(
        op,
        None,
        block,
        tuple(choice.cost for choice in choices),
        make_ports,
        read_ports,
        layouts,
        families=tuple(choice.family for choice in choices),
        sources=tuple(choice.source for choice in choices),
        copies=tuple(stored.copies(op, choice) for choice in layouts) if stored else (),
    )


def _carried_variables(
    carried: Sequence[Carried],
    variables: Sequence[LayoutVariable],
    costs: LayoutCosts,
    expressions: ParameterExpressions,
) -> list[LayoutVariable]:
    """Return variables whose options are all layouts that can be best for the value."""
    options = _candidate_layouts(carried, variables, costs)
    result: list[LayoutVariable] = []
    for item, ordered in zip(carried, options, strict=True):
        result.append(
            LayoutVariable(
                item.owner,
                item.slot,
                parent_block(item.value)
                if isinstance(item.owner, FuncOp)
                else _block_of(item.owner),
                (0.0,) * len(ordered),
                tuple(
                    ValueLayouts(value, parent_block(value), ordered, item.owner)
                    for value in item.makes
                ),
                tuple(
                    ValueLayouts(user.operands[index], _block_of(user), ordered, user)
                    for user, index in item.reads
                    if not expressions.is_known(user.operands[index])
                ),
                carried=ordered,
            )
        )
    return result


def _candidate_layouts(
    carried: Sequence[Carried], variables: Sequence[LayoutVariable], costs: LayoutCosts
) -> list[tuple[Layout, ...]]:
    """Return the layouts of all that a carried value is connected to, and those on the way between
    them.
    """
    parent: dict[SSAValue, SSAValue] = {}
    for item in carried:
        first, *others = _values(item)
        for value in others:
            parent[_root(parent, value)] = _root(parent, first)
    layouts: dict[SSAValue, dict[Layout, None]] = {}
    for variable in variables:
        for port in (*variable.makes, *variable.reads):
            layouts.setdefault(_root(parent, port.value), {}).update(dict.fromkeys(port.layouts))
    for item in carried:
        found = layouts.setdefault(_root(parent, item.value), {})
        if not any(layout.is_abstract for layout in found):
            found[layout_of(item.value.type)] = None
    result: list[tuple[Layout, ...]] = []
    for item in carried:
        found = tuple(layouts[_root(parent, item.value)])
        result.append((*found, *costs.stopovers(item.value.type, found, meeting=True)))
    return result


def _values(item: Carried) -> list[SSAValue]:
    return [*item.makes, *(user.operands[index] for user, index in item.reads)]


def _root(parent: dict[SSAValue, SSAValue], value: SSAValue) -> SSAValue:
    """Return the value that stands for all that `value` is connected to (R. E. Tarjan, 1975)."""
    while (above := parent.get(value, value)) is not value:
        parent[value] = parent.get(above, above)
        value = above
    return value
