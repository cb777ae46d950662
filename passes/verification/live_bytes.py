"""The most bytes that are live at once, counted op by op.

A tensor is live from the op that makes it to the last reader of it or of a view of it. This
is all that the passes' claims of peaks rest on; numbers of ops, graphs and solvers have no part.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator

from braid.analysis.storage.memory_graph import value_bytes
from braid.analysis.storage.tensor_storage import is_view, logical_bytes
from braid.analysis.storage.view_groups import only_op
from braid.analysis.structure.nesting import ops_outside_groups
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.regions import FusedOp, GroupOp, YieldOp


@dataclass(frozen=True)
class Count:
    """The rules by which a pass counts: see the passes' own descriptions.

    `handed_on`: what the terminator hands on counts, until the end of the block. `in_place`: an
    op may write over an operand that it is the last to read. `views_read`: a view that nothing
    reads keeps its tensor too.
    """

    handed_on: bool
    in_place: bool
    views_read: bool


ORDER = Count(handed_on=False, in_place=True, views_read=True)
RECOMPUTED_ORDER = Count(handed_on=True, in_place=True, views_read=False)
RECOMPUTED = Count(handed_on=True, in_place=False, views_read=False)


def shown(value: SSAValue) -> SSAValue:
    """Return the tensor whose memory `value` is."""
    while isinstance(value, OpResult) and is_view(value.op):
        value = value.op.operands[0]
    return value


def read_by(op: Operation) -> Iterator[SSAValue]:
    """Yield what `op` and the ops in its regions read."""
    for inner in op.walk():
        yield from inner.operands


def block_peak(block: Block, count: Count, inner: Count | None = None) -> int:
    """Return the most bytes that ops of `block` make and that are live while one of them runs.

    An op with regions adds the peak of the largest while it runs, counted by `inner`.
    """
    ops = [op for op in block.ops if not _makes_nothing(op)]
    last_read: dict[SSAValue, int] = {}
    for place, op in enumerate(ops):
        if not is_view(op) or count.views_read:
            last_read.update((shown(value), place) for value in read_by(op))
    leaving = _leaving(block)
    live = peak = 0
    dying: defaultdict[int, list[SSAValue]] = defaultdict(list)
    for place, op in enumerate(ops):
        made = [r for r in op.results if isinstance(r.type, TensorType) and not is_view(op)]
        made = [r for r in made if count.handed_on or r not in leaving]
        for value in made:
            live += value_bytes(value)
            end = len(ops) - 1 if value in leaving else last_read.get(value, place)
            dying[end].append(value)
        spared = _spared(op, made, dying[place], leaving) if count.in_place else 0
        peak = max(peak, live - spared + _inside(op, inner or count))
        live -= sum(map(value_bytes, dying[place]))
    return peak


def _inside(op: Operation, count: Count) -> int:
    if isinstance(op, GroupOp):
        return 0
    blocks = (block for region in op.regions for block in region.blocks)
    return max((block_peak(block, count) for block in blocks), default=0)


def _makes_nothing(op: Operation) -> bool:
    return isinstance(op, ConstantOp | ParameterOp | arith.ConstantOp) or op.has_trait(IsTerminator)


def _leaving(block: Block) -> set[SSAValue]:
    last = block.last_op
    if last is None or not last.has_trait(IsTerminator):
        return set()
    return {shown(value) for value in last.operands}


def _spared(
    op: Operation, made: list[OpResult], dying: list[SSAValue], leaving: set[SSAValue]
) -> int:
    """Return the bytes of the largest operand that `op` may write its only result over."""
    if len(made) != 1 or len(op.results) != 1:
        return 0
    result = made[0]
    over = [
        shown(value)
        for value in dict.fromkeys(op.operands)
        if value.type == result.type and _reads_as_it_writes(op, value)
    ]
    sizes = (value_bytes(v) for v in over if v in dying and v is not result and v not in leaving)
    return max((size for size in sizes if size == value_bytes(result)), default=0)


def _reads_as_it_writes(op: Operation, value: SSAValue) -> bool:
    """Return whether `op` needs an element of `value` only for the same element of its result.

    So do elementwise ops and groups of them, unless another operand aliases the same memory.
    """
    same = [index for index, o in enumerate(op.operands) if o is value]
    if any(o is not value and shown(o) is shown(value) for o in op.operands):
        return False
    if isinstance(op, FusedOp):
        return all(_only_elementwise(op.body.block.args[index]) for index in same)
    return isinstance(op, ElementwiseOp)


def _only_elementwise(value: SSAValue) -> bool:
    users = [use.operation for use in value.uses]
    return all(
        isinstance(user, YieldOp)
        or (isinstance(user, ElementwiseOp) and all(map(_only_elementwise, user.results)))
        for user in users
    )


def linear_peak(function: FuncOp) -> int:
    """Return the most bytes of all tensors that ops in `function` make, in the order of its text.

    Values that a loop reads from outside stay live until the loop ends. Values that control flow
    carries count as its results; arguments of the function, weights, constants and views do not
    count.
    """
    ops, weights = list(ops_outside_groups(function)), ParameterExpressions()
    begin = {op: place for place, op in enumerate(ops)}
    changes: defaultdict[int, int] = defaultdict(int)
    for place, op in enumerate(ops):
        is_weight = bool(op.results) and weights.is_known(op.results[0])
        if is_view(op) or is_weight or isinstance(op, ConstantOp | ParameterOp):
            continue
        for result in op.results:
            end = max((_read_at(use, op, begin) for use in _readers(result)), default=place)
            changes[place] += _stored_bytes(result)
            changes[end + 1] -= _stored_bytes(result)
    live = peak = 0
    for place in range(len(ops)):
        live += changes[place]
        peak = max(peak, live)
    return peak


def _readers(value: SSAValue) -> Iterator[Operation]:
    """Yield the ops that read `value`, and those that read views of it."""
    for use in value.uses:
        yield use.operation
        if is_view(use.operation):
            yield from _readers(use.operation.results[0])


def _read_at(reader: Operation, maker: Operation, begin: dict[Operation, int]) -> int:
    """Return when `reader` reads for the last time what `maker` made: in a loop, when that ends."""
    last, op = begin[reader], reader
    while op.parent is not maker.parent:
        outer = op.parent_op()
        assert outer is not None
        op = outer
        if isinstance(op, scf.ForOp | scf.WhileOp):
            last = max(begin[inner] for inner in ops_outside_groups(op))
    return last


def _stored_bytes(value: SSAValue) -> int:
    """Return the bytes of a tensor, the logical ones in an abstract layout; a reorder keeps
    declared ones.
    """
    source = value
    while isinstance(source.owner, FusedOp) and isinstance(only_op(source.owner), ReorderOp):
        source = source.owner.operands[0]
    if isinstance(source.owner, OpaqueOp) and source.owner.bytes is not None:
        return value_bytes(source)
    type_ = cast(AnyTensor, value.type)
    is_abstract = isinstance(value.type, TensorType) and layout_of(type_).is_abstract
    return logical_bytes(type_) if is_abstract else value_bytes(value)
