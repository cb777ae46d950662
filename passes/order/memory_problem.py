"""The memory that the ops of a block take, as an ordering problem."""

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import OpResult, SSAValue

from braid.analysis.tensor_storage import is_view
from braid.dialects.braid.opaque import OpaqueOp
from braid.passes.memory.storage import tensor_bytes
from braid.passes.order.block_graph import BlockGraph
from braid.solvers.ordering import MemoryProblem, Tensor


def memory_problem(block: BlockGraph, workspace: Sequence[int]) -> MemoryProblem:
    """The problem of ordering `block` for the least peak of live bytes.

    What counts is what `plan-memory` puts into the arena: results of ops, and `workspace` bytes
    of each op while it runs. Inputs, parameters and what a function returns live elsewhere. A
    view shares its operand's bytes, and what a branch or a loop hands on the result of that op.
    Raises UnsupportedError for open dims.
    """
    tensors: list[Tensor] = []
    for producer, op in enumerate(block.ops):
        if is_view(op):
            continue
        for result in op.results:
            if isinstance(result.type, TensorType):
                tensor = _tensor(block, producer, result)
                tensors += [tensor] if tensor is not None else []
    return MemoryProblem(block.graph, tuple(tensors), tuple(workspace))


def _tensor(block: BlockGraph, producer: int, result: OpResult) -> Tensor | None:
    """The storage that begins with `result`; None where the op around the block provides it."""
    shared = _with_views(block, result)
    if any(block.escapes(value) for value in shared):
        return None
    users = {user for value in shared for user in block.users(value)}
    return Tensor(result_bytes(result), producer, tuple(sorted(users)))


def _with_views(block: BlockGraph, value: SSAValue) -> list[SSAValue]:
    shared = [value]
    for alias in shared:
        for user in block.users(alias):
            op = block.ops[user]
            if is_view(op):
                shared.append(op.results[0])
    return shared


def result_bytes(result: OpResult) -> int:
    """Bytes of `result` in memory: as declared by an opaque op, otherwise by its type."""
    op = result.op
    if isinstance(op, OpaqueOp) and op.bytes is not None:
        return op.bytes.get_values()[result.index]
    return tensor_bytes(result.type, op)
