"""`group-upstream-ops`: tensor ops of upstream dialects become groups, and so kernels.

An op joins the group of its users where they are all in one; then the group has one op whose
results leave it, and no cycle can arise, as in `select-fusion`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.structure.loop_nests import op_name
from braid.analysis.structure.nesting import blocks_outside_groups
from braid.analysis.structure.undefined_ops import define
from braid.analysis.structure.upstream_ops import (
    is_free,
    is_upstream_compute,
    require_computing,
)
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.measured_times import sum_measured
from braid.dialects.braid.names import union_names
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.support.errors import UnsupportedError


@dataclass
class _Group:
    """Ops in reverse order; the first one is the root, whose results leave the group."""

    ops: list[Operation] = field(default_factory=list[Operation])


@dataclass(frozen=True)
class GroupUpstreamOpsPass(ModulePass):
    """Puts ops of `linalg`, `tensor`, `arith` and `math` that make tensors into `braid.fused`.

    Scalar constants, splats and empty tensors are copied into each group that reads them; dense
    constants that others read become `braid.constant`. Layouts are chosen before: upstream's ops
    know none but row-major. Raises UnsupportedError for an op that reads a scalar or an index
    that is computed at run time.

    ```mlir
    %e = tensor.empty() : tensor<4x4xf32>
    %y = linalg.matmul ins(%x, %x : …) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    // becomes
    %y = braid.fused(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
    ^bb0(%0: tensor<4x4xf32>):
      %e = tensor.empty() : tensor<4x4xf32>
      %1 = linalg.matmul ins(%0, %0 : …) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
      braid.yield %1 : tensor<4x4xf32>
    }
    ```
    """

    name = "group-upstream-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Group the ops of every function that runs with the model, in place."""
        for function in runtime_functions(op):
            for block in list(blocks_outside_groups(function)):
                for group in _groups(block):
                    _replace_by_group(group)
                _finish_constants(block)


def _groups(block: Block) -> list[_Group]:
    groups: list[_Group] = []
    group_of: dict[Operation, _Group] = {}
    for op in reversed(list(block.ops)):
        if not is_upstream_compute(op) or is_free(op):
            continue
        require_computing(op)
        users = {use.operation for result in op.results for use in result.uses}
        readers = [group_of.get(user) for user in users]
        group = readers[0] if readers else None
        if (
            group is None
            or any(reader is not group for reader in readers)
            or not run_together(op, *group.ops)
        ):
            group = _Group()
            groups.append(group)
        group.ops.append(op)
        group_of[op] = group
    return groups


def _replace_by_group(group: _Group) -> None:
    root, ops = group.ops[0], list(reversed(group.ops))
    inside = {result for op in ops for result in op.results}
    inputs: list[SSAValue] = []
    copied: list[Operation] = []
    for op in ops:
        for value in _read_from_outside(op):
            owner = value.owner
            if value in inside or value in inputs:
                continue
            if isinstance(owner, Operation) and is_free(owner):
                if owner not in copied:
                    copied.append(owner)
            elif isinstance(value.type, TensorType):
                inputs.append(value)
            else:
                raise UnsupportedError(
                    f"'{op_name(op)}' reads a value of type {value.type} that is computed at run "
                    "time; only tensors and constants are passed to kernels",
                    location=source_location(op),
                )
    body = Block(arg_types=[value.type for value in inputs])
    values: dict[SSAValue, SSAValue] = dict(zip(inputs, body.args, strict=True))
    body.add_ops([op.clone(values) for op in (*copied, *ops)])
    for op in list(body.walk()):
        define(op)
    body.add_op(YieldOp(*(values[result] for result in root.results)))
    fused = FusedOp(inputs, list(root.result_types), body)
    fused.location = root.location
    union_names(fused, *ops)
    sum_measured(fused, ops)
    Rewriter.insert_op(fused, InsertPoint.before(root))
    for old, new in zip(root.results, fused.results, strict=True):
        old.replace_all_uses_with(new)
    for op in group.ops:
        Rewriter.erase_op(op)


def _read_from_outside(op: Operation) -> Iterator[SSAValue]:
    """Yield the operands of `op` and of its nested ops, without values defined there."""
    defined: set[SSAValue] = set()
    for inner in op.walk():
        for region in inner.regions:
            defined.update(argument for block in region.blocks for argument in block.args)
        yield from (operand for operand in inner.operands if operand not in defined)
        if inner is not op:
            defined.update(inner.results)


def _finish_constants(block: Block) -> None:
    """Drop values that only groups read; tensors with other readers become braid's constants."""
    for op in list(block.ops):
        if not is_free(op):
            continue
        if not op.results[0].uses:
            Rewriter.erase_op(op)
        elif not is_upstream_compute(op):
            continue  # A scalar that control flow reads.
        elif isinstance(op, arith.ConstantOp) and isinstance(op.value, DenseIntOrFPElementsAttr):
            constant = ConstantOp.on(value=cast(Attribute, op.value))
            constant.location = op.location
            union_names(constant, op)
            Rewriter.replace_op(op, constant)
        else:
            _replace_by_group(_Group([op]))
