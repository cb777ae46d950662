"""Control flow between launches as functions of the host, so that it is a stage like others.

A function of the host (`braid.host_stage`) runs on the launching thread, and may launch and await
other functions. Ops without regions between launches that compute values for control flow, such as
its condition, move into the function.
"""

from collections.abc import Iterable

from xdsl.dialects import scf
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, TensorType, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.execution.stages import origin
from braid.dialects.braid.attribute_names import DEVICE, HOST_STAGE
from braid.dialects.braid.launch import AwaitOp, LaunchOp, TokenType
from braid.dialects.braid.names import names_of, set_names
from braid.dialects.braid.variants import free_symbols

_CONTROL_FLOW = (scf.IfOp, scf.IndexSwitchOp, scf.ForOp, scf.WhileOp)
_PREFIX = "host_"


def outline_host_stages(function: FuncOp, module: ModuleOp, device: str) -> int:
    """Make functions of the control flow beside launches in `function`, and return how many there
    are.

    Nothing changes if a part of it cannot become a host stage, because its results, or values that
    it reads from other control flow, are not tensors.
    """
    block = function.body.block
    found = [op for op in block.ops if isinstance(op, _CONTROL_FLOW)]
    if not found or not any(isinstance(op, LaunchOp) for op in block.ops):
        return 0
    if not all(_can_be_a_function(op, block) for op in found):
        return 0
    symbols = free_symbols(module, _PREFIX)
    for op in found:
        _outline(op, block, module, next(symbols), device)
    for op in reversed(list(block.ops)):
        is_waste = not isinstance(op, LaunchOp | ReturnOp) and not any(r.uses for r in op.results)
        if is_waste and (not isinstance(op, AwaitOp) or _is_awaited(op)):
            op.detach()
            op.erase()
    return len(found)


def _is_awaited(op: AwaitOp) -> bool:
    """Return whether others wait for all that `op` waits for."""
    return all(any(use.operation is not op for use in token.uses) for token in op.tokens)


def _outside(op: Operation) -> list[SSAValue]:
    """Return the values from outside that `op` and its nested ops read."""
    inside = {value for inner in op.walk() for value in inner.results}
    inside |= {a for i in op.walk() for r in i.regions for b in r.blocks for a in b.args}
    read = dict.fromkeys(value for inner in op.walk() for value in inner.operands)
    return [value for value in read if value not in inside]


def _is_copied(value: SSAValue) -> bool:
    """Return whether a function of the host computes `value` itself: no launch, control flow,
    argument.
    """
    if not isinstance(value, OpResult):
        return False
    return not value.op.regions and not isinstance(value.op, LaunchOp | AwaitOp)


def _reads(op: Operation) -> tuple[list[Operation], list[SSAValue]]:
    """Return the ordered ops that a function of `op` copies, and its operands."""
    copied: dict[Operation, None] = {}
    operands: dict[SSAValue, None] = {}

    def visit(values: Iterable[SSAValue]) -> None:
        for value in values:
            if not _is_copied(value):
                operands[value] = None
            elif isinstance(value, OpResult) and value.op not in copied:
                visit(value.op.operands)
                copied[value.op] = None

    visit(_outside(op))
    return list(copied), list(operands)


def _can_be_a_function(op: Operation, block: Block) -> bool:
    _, operands = _reads(op)
    values = [*op.results, *operands]
    return all(isinstance(value.type, TensorType) for value in values)


def _outline(op: Operation, block: Block, module: ModuleOp, symbol: str, device: str) -> None:
    """Move `op` into a new function, and put a launch in its place."""
    copied, operands = _reads(op)
    body = Block(arg_types=[value.type for value in operands])
    mapping: dict[SSAValue, SSAValue] = dict(zip(operands, body.args, strict=True))
    for inner in (*copied, op):
        clone = inner.clone(mapping)
        body.add_op(clone)
        mapping.update(zip(inner.results, clone.results, strict=True))
    body.add_op(ReturnOp(*(mapping[result] for result in op.results)))
    types = [value.type for value in operands], [result.type for result in op.results]
    function = FuncOp(
        symbol, FunctionType.from_lists(*types), Region(body), visibility=StringAttr("private")
    )
    function.attributes[DEVICE] = StringAttr(device)
    function.attributes[HOST_STAGE] = UnitAttr()
    module.body.block.add_op(function)
    inputs = [origin(value) for value in operands]
    launch = LaunchOp(symbol, inputs, types[1], _tokens(inputs))
    launch.location = op.location
    set_names(launch, names_of(op))
    block.insert_op_before(launch, op)
    _replace(op, launch, block)


def _tokens(values: Iterable[SSAValue]) -> list[SSAValue]:
    """Return the tokens of the launches that make `values`."""
    owners = dict.fromkeys(value.owner for value in values)
    return [owner.token for owner in owners if isinstance(owner, LaunchOp)]


def _replace(op: Operation, launch: LaunchOp, block: Block) -> None:
    """Let launches that read the results of `launch` wait for it, and everything else await it."""

    def waits_itself(use: Use) -> bool:
        return isinstance(use.operation, LaunchOp) and use.operation.parent is block

    awaited = [r for r in op.results if not all(map(waits_itself, r.uses))]
    readers = dict.fromkeys(u.operation for r in op.results for u in r.uses if waits_itself(u))
    if awaited:
        own = dict(zip(op.results, launch.outputs, strict=True))
        waiting = AwaitOp([launch.token], [own[result] for result in awaited])
        block.insert_op_before(waiting, op)
        for old, new in zip(awaited, waiting.outputs, strict=True):
            for use in [use for use in old.uses if not waits_itself(use)]:
                use.operation.operands[use.index] = new
    for old, new in zip(op.results, launch.outputs, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    for reader in readers:
        assert isinstance(reader, LaunchOp)
        _add_dependency(reader, launch.token)
    op.detach()
    op.erase()


def _add_dependency(reader: LaunchOp, token: SSAValue) -> None:
    assert isinstance(token.type, TokenType)
    types = [value.type for value in reader.outputs]
    dependencies = [*reader.dependencies, token]
    new = LaunchOp(reader.callee.string_value(), list(reader.inputs), types, dependencies)
    new.attributes |= reader.attributes
    new.location = reader.location
    for old, result in zip(reader.results, new.results, strict=True):
        result.name_hint = old.name_hint
    Rewriter.insert_op(new, InsertPoint.before(reader))
    Rewriter.replace_op(reader, [], list(new.results))
