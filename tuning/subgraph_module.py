"""A subgraph as a module of its own, to be run apart from its model."""

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TensorType, i64
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from braid.analysis.execution.inter_op_streams import set_inter_op_stream
from braid.dialects.braid.attribute_names import INTER_OP_STREAMS, SETTINGS
from braid.dialects.braid.attributes import layout_of, with_layout
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.ports import name_dictionaries
from braid.dialects.braid.regions import GroupOp
from braid.dialects.braid.settings import SettingsAttr, settings_of
from braid.passes.order.block_graph import LEAVES, BlockGraph
from braid.tuning.order_trials import Trial


def subgraph_module(block: BlockGraph, trial: Trial) -> ModuleOp | None:
    """Return a module whose `@main` runs some ops of `block`, as `trial` says.

    Values that they read from others are its inputs, and values that others read from them its
    results. None where that is not a tensor of a known shape, and for control flow.
    """
    ops = [block.ops[number] for number in trial.order]
    members = set(ops)
    reads = dict.fromkeys(value for op in ops for value in op.operands)
    outside = [value for value in reads if value.owner not in members]
    leaves = [v for v in outside if isinstance(v, OpResult) and isinstance(v.op, LEAVES)]
    inputs = [value for value in outside if value not in leaves]
    results = [
        result
        for op in ops
        for result in op.results
        if any(_in_block(use.operation, block.block) not in members for use in result.uses)
    ]
    if not all(map(_is_plain, ops)) or not all(map(_is_known, (*inputs, *results))):
        return None
    body = Block(arg_types=[_row_major(value) for value in inputs])
    values: dict[SSAValue, SSAValue] = {}
    for value, argument in zip(inputs, body.args, strict=True):
        values[value] = _reordered(body, argument, layout_of(value.type))
    body.add_ops(leaf.clone(values) for leaf in dict.fromkeys(leaf.op for leaf in leaves))
    for op, stream in zip(ops, trial.streams, strict=True):
        clone = op.clone(values)
        set_inter_op_stream(clone, stream)
        body.add_op(clone)
    returned = [
        _reordered(body, values[result], Layout.row_major(len(shape_of(result))))
        for result in results
    ]
    body.add_op(func.ReturnOp(*returned))
    types = [argument.type for argument in body.args], [value.type for value in returned]
    function = func.FuncOp(
        "main",
        types,
        Region(body),
        arg_attrs=name_dictionaries(f"input_{n}" for n in range(len(inputs))),
        res_attrs=name_dictionaries(f"output_{n}" for n in range(len(results))),
    )
    function.attributes[INTER_OP_STREAMS] = IntegerAttr(trial.stream_count, i64)
    settings = SettingsAttr.of(settings_of(ops[0]))
    return ModuleOp([function], {SETTINGS: settings})


def _row_major(value: SSAValue) -> Attribute:
    return with_layout(value.type, Layout.row_major(len(shape_of(value))))


def _reordered(body: Block, value: SSAValue, layout: Layout) -> SSAValue:
    """Return the value in `layout`: what comes in and goes out is row-major."""
    if layout_of(value.type) == layout:
        return value
    reorder = ReorderOp.to(value, layout)
    body.add_op(reorder)
    return reorder.output


def _is_plain(op: Operation) -> bool:
    return not op.regions or isinstance(op, GroupOp)


def _is_known(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and DYNAMIC not in shape_of(value)


def _in_block(op: Operation, block: Block) -> Operation | None:
    found: Operation | None = op
    while found is not None and found.parent is not block:
        found = found.parent_op()
    return found
