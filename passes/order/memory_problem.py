"""The memory that the ops of a block take, as an ordering problem."""

from collections import Counter
from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, OpResult, SSAValue, Use

from braid.analysis.storage.memory_graph import value_bytes
from braid.analysis.storage.tensor_storage import is_view
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.passes.order.block_graph import BlockGraph
from braid.passes.storage.storage import tensor_bytes
from braid.solvers.ordering import MemoryProblem, Tensor
from braid.support.sizes.expression import known


def memory_problem(block: BlockGraph, workspace: Sequence[int]) -> MemoryProblem:
    """Return the problem of ordering `block` for the least peak of live bytes.

    It counts the values that `plan-memory` puts into the arena: results of ops, and `workspace`
    bytes of each op while it runs. Inputs, parameters and what a function returns live elsewhere. A
    view shares its operand's bytes, and values that a branch or a loop yields share the bytes of
    the op's results. A result may lie over an operand that its op is the last to read
    (`may_overwrite`). That a part of a concatenation may lie inside it is not counted:
    `select-storage` decides on it later, and only where the peak does not grow. Raises
    UnsupportedError for open dims.
    """
    tensors: list[Tensor] = []
    number: dict[SSAValue, int] = {}
    for producer, op in enumerate(block.ops):
        if is_view(op):
            continue
        for result in op.results:
            if isinstance(result.type, TensorType):
                tensor = _tensor(block, producer, result)
                if tensor is not None:
                    number[result] = len(tensors)
                    tensors.append(tensor)
    in_place: list[tuple[int, ...]] = []
    for op in block.ops:
        made = [tensors[number[result]].size for result in op.results if result in number]
        operands = (number[root] for root in may_overwrite(op) if root in number)
        in_place.append(tuple(t for t in operands if [tensors[t].size] == made))
    return MemoryProblem(block.graph, tuple(tensors), tuple(workspace), in_place=tuple(in_place))


def _tensor(block: BlockGraph, producer: int, result: OpResult) -> Tensor | None:
    """Return the storage that begins with `result`; None where the op around the block
    provides it.
    """
    shared = _with_views(block, result)
    if any(block.escapes(value) for value in shared):
        return None
    users = {user for value in shared for user in block.users(value)}
    return Tensor(result_bytes(result), producer, tuple(sorted(users)))


def may_overwrite(op: Operation) -> list[SSAValue]:
    """Return the tensors over which `op` may write its result, if it is the last to read them.

    Kernels state it themselves, but only after lowering (`braid.in_place`). Every kernel can
    overwrite an operand of the result's type that it reads element by element, unless an opaque op
    declares another size.
    """
    if len(op.results) != 1 or not isinstance(op, ElementwiseOp | FusedOp):
        return []
    roots = [storage_root(operand) for operand in op.operands]
    times_read, times_given = Counter(roots), Counter(op.operands)
    otherwise = _read_otherwise(op.body.block) if isinstance(op, FusedOp) else set[SSAValue]()
    arguments = op.body.block.args if isinstance(op, FusedOp) else ()
    inside = {op.operands[argument.index] for argument in arguments if argument in otherwise}
    return [
        root
        for operand, root in dict(zip(op.operands, roots, strict=True)).items()
        if operand.type == op.results[0].type
        and value_bytes(root) == value_bytes(op.results[0])
        and times_read[root] == times_given[operand]
        and operand not in inside
    ]


def _read_otherwise(block: Block) -> set[SSAValue]:
    """Return the values in a group that reach its results through ops other than elementwise
    ones."""
    found = set[SSAValue]()

    def reads_otherwise(use: Use) -> bool:
        reader = use.operation
        is_elementwise = isinstance(reader, ElementwiseOp)
        return any(r in found for r in reader.results) or not (
            is_elementwise or isinstance(reader, YieldOp)
        )

    for op in reversed(tuple(block.ops)):
        found.update(r for r in op.results if any(map(reads_otherwise, r.uses)))
    found.update(argument for argument in block.args if any(map(reads_otherwise, argument.uses)))
    return found


def storage_root(value: SSAValue) -> SSAValue:
    """Return the operand of which `value` is a view."""
    while isinstance(value, OpResult) and is_view(value.op):
        value = value.op.operands[0]
    return value


def _with_views(block: BlockGraph, value: SSAValue) -> list[SSAValue]:
    shared = [value]
    for alias in shared:
        for user in block.users(alias):
            op = block.ops[user]
            if is_view(op):
                shared.append(op.results[0])
    return shared


def result_bytes(result: OpResult) -> int:
    """Return the bytes of `result` in memory: as declared by an opaque op, otherwise by its
    type.
    """
    op = result.op
    if isinstance(op, OpaqueOp) and op.bytes is not None:
        return op.bytes.get_values()[result.index]
    return known(tensor_bytes(result.type, op))
