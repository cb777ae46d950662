"""A function with some of its ops: missing operands become inputs, unused values results."""

from collections.abc import Iterator, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsolatedFromAbove, IsTerminator

from braid.analysis.structure.parameter_expressions import is_leaf


def removable(module: ModuleOp) -> list[int]:
    """Return the numbers, in a walk over `module`, of the ops that can be left out."""
    return [number for number, op in enumerate(_walk(module)) if _is_removable(op)]


def subset(module: ModuleOp, kept: Sequence[int]) -> ModuleOp:
    """Return a copy of `module` with only the removable ops numbered in `kept`.

    The results of a removed op become arguments of its function. Functions return values without a
    reader, and unused weights disappear.
    """
    copy = module.clone()
    wanted = set(kept)
    gone = [
        op for number, op in enumerate(_walk(copy)) if _is_removable(op) and number not in wanted
    ]
    for op in gone:
        function = _function_of(op)
        if function is None:
            op.detach()
            continue
        for result in op.results:
            if any(_is_outside(use.operation, op) for use in result.uses):
                argument = function.body.block.insert_arg(result.type, len(function.args))
                result.replace_all_uses_with(argument)
    for op in reversed(gone):
        if op.parent is not None:
            op.detach()
            op.erase(safe_erase=False)
    for op in copy.ops:
        if isinstance(op, FuncOp) and op.body.blocks:
            _close(op)
    return copy


def unwrapped(module: ModuleOp) -> Iterator[ModuleOp]:
    """Yield copies of `module` in which one region replaces its control-flow op."""
    for number, op in enumerate(_walk(module)):
        if isinstance(op, scf.IfOp | scf.IndexSwitchOp | scf.ForOp | scf.WhileOp):
            for index in range(len(op.regions)):
                if op.regions[index].blocks:
                    copy = module.clone()
                    _unwrap(list(_walk(copy))[number], index)
                    yield copy


def _walk(module: ModuleOp) -> Iterator[Operation]:
    """Yield every op, except those inside groups: a group is reduced as a whole."""
    for function in module.ops:
        yield function
        yield from _inside(function)


def _inside(op: Operation) -> Iterator[Operation]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield inner
                if not inner.has_trait(IsolatedFromAbove):
                    yield from _inside(inner)


def _is_removable(op: Operation) -> bool:
    return not (op.has_trait(IsTerminator) or is_leaf(op) or _is_entry(op))


def _is_entry(op: Operation) -> bool:
    return isinstance(op, FuncOp) and op.sym_visibility is None


def _function_of(op: Operation) -> FuncOp | None:
    current = op.parent_op()
    while current is not None and not isinstance(current, FuncOp):
        current = current.parent_op()
    return current


def _is_outside(user: Operation, op: Operation) -> bool:
    current: Operation | None = user
    while current is not None and current is not op:
        current = current.parent_op()
    return current is None


def _close(function: FuncOp) -> None:
    """Return from `function` what has no reader, and drop dead weights and arguments."""
    block = function.body.block
    last = block.last_op
    if isinstance(last, ReturnOp):
        last.detach()
        last.erase()
    for op in reversed(list(block.ops)):
        if is_leaf(op) and not any(result.uses for result in op.results):
            op.detach()
            op.erase()
    for argument in list(block.args):
        if not argument.uses:
            block.erase_arg(argument)
    open_ends = [result for op in block.ops for result in op.results if not result.uses]
    block.add_op(ReturnOp(*open_ends))
    function.properties.pop("arg_attrs", None)
    function.properties.pop("res_attrs", None)
    function.update_function_type()


def _unwrap(op: Operation, index: int) -> None:
    """Replace an op by the ops of its region; the region's arguments become inputs."""
    function = _function_of(op)
    assert function is not None
    block = op.regions[index].block
    terminator = block.last_op
    assert terminator is not None
    operands = list(terminator.operands)
    ends: list[SSAValue] = operands[len(operands) - len(op.results) :]
    terminator.detach()
    terminator.erase()
    entry = function.body.block
    new = [entry.insert_arg(argument.type, len(entry.args)) for argument in block.args]
    Rewriter.inline_block(block, InsertPoint.before(op), new)
    for position, result in enumerate(op.results):
        fits = position < len(ends) and ends[position].type == result.type
        value = ends[position] if fits else entry.insert_arg(result.type, len(entry.args))
        result.replace_all_uses_with(value)
    op.detach()
    op.erase(safe_erase=False)
    _close(function)
