"""Pass `convert-braid-to-linalg`."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    ModuleOp,
    NoneAttr,
    TensorType,
    UnrealizedConversionCastOp,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.attributes import layout_of, with_layout
from braid.dialects.braid.base import (
    AnyTensor,
    DecomposableOp,
    IndirectOp,
    StructuredOp,
    TensorOp,
    shape_of,
)
from braid.dialects.braid.box_selection import NonMaxSuppressionOp
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.decomposition import decompose_all
from braid.dialects.braid.indexing import GatherBase
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import ConcatOp, ReshapeOp
from braid.dialects.braid.placement import CopyingOp, ReorderOp
from braid.dialects.braid.scattering import ScatterOp
from braid.dialects.braid.sorting import TopKOp
from braid.lowering.common.element_types import has_encoding, signless_tensor, tensor_type_of
from braid.lowering.common.linalg_builders import copied, dense_constant, empty, row_major
from braid.lowering.common.linalg_stages import StageEmitter
from braid.lowering.common.physical_iteration import is_sliceable
from braid.lowering.common.reshape import reshaped
from braid.lowering.common.scatter import scattered
from braid.lowering.common.top_k import top_k
from braid.support.errors import UnsupportedError

FAMILIES_ONLY = (NonMaxSuppressionOp,)
"""The ops that only kernel families of the host make: linalg cannot say what they compute."""


@dataclass(frozen=True)
class ConvertBraidToLinalgPass(ModulePass):
    """Rewrites braid's tensor ops in functions as `linalg`, `tensor`, `arith` and `math` ops.

    Structured ops become one `linalg.generic` a stage, derived from their structure;
    decomposable ones are decomposed first. Layouts stay in the types of the tensors, for
    `materialize-layouts`. Unsigned integers become signless ones. Raises UnsupportedError for
    an op without code, such as `braid.opaque`.

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = braid.neg %x : (tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }
    // becomes
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = tensor.empty() : tensor<4xf32>
      %1 = linalg.generic {…} ins(%x : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
      ^bb0(%in: f32, %out: f32):
        %2 = arith.negf %in : f32
        linalg.yield %2 : f32
      } -> tensor<4xf32>
      func.return %1 : tensor<4xf32>
    }
    ```
    """

    name = "convert-braid-to-linalg"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Convert every function in place."""
        known = set(op.walk())
        reorders = [
            reorder
            for inner in op.walk()
            if isinstance(inner, DecomposableOp)
            for reorder in _reorder_results(inner)
        ]
        decompose_all(op)
        for reorder in reorders:
            if layout_of(reorder.output.type).is_permutation:
                _take_layout(reorder.input, layout_of(reorder.output.type), known)
        for function in [op for op in op.walk() if isinstance(op, FuncOp)]:
            for block in function.body.blocks:
                convert_block(block)
            function.update_function_type()


def _reorder_results(op: DecomposableOp) -> list[ReorderOp]:
    """Take the layouts from the results of `op`: a decomposition knows nothing of them.

    Returns a function that brings the results into their layouts.
    """
    reorders: list[ReorderOp] = []
    for result in list(op.results):
        if has_encoding(result):
            plain = Rewriter.replace_value_with_new_type(result, row_major(result))
            reorder = ReorderOp.to(plain, layout_of(result.type))
            Rewriter.insert_op(reorder, InsertPoint.after(op))
            plain.replace_uses_with_if(
                reorder.output, lambda use, reorder=reorder: use.operation is not reorder
            )
            reorders.append(reorder)
    return reorders


def _take_layout(value: SSAValue, layout: Layout, known: Container[Operation]) -> None:
    """Convert a value to the layout that its reader needs, and its operands likewise.

    Only ops that a decomposition made for this use, and ops that take any layout: `known` ops stay.
    """
    op = value.owner
    if not isinstance(op, StructuredOp | GatherBase) or op in known:
        return
    if has_encoding(value) or not value.has_one_use():
        return
    type = with_layout(row_major(value), layout)
    result = Rewriter.replace_value_with_new_type(value, type)
    for operand in dict.fromkeys(op.operands):
        if len(shape_of(operand)) == len(shape_of(result)):
            _take_layout(operand, layout, known)


def convert_block(block: Block) -> None:
    """Convert the ops of a block in place."""
    ops = list(block.ops)
    tensors: dict[SSAValue, AnyTensor] = {
        value: tensor_type_of(value)
        for value in (*block.args, *(result for op in ops for result in op.results))
        if isinstance(value.type, TensorType)
    }
    # Arguments keep their signs until all ops are converted, which ask their operands for them.
    casts = [
        UnrealizedConversionCastOp.get([argument], [signless_tensor(tensors[argument])])
        for argument in block.args
        if argument in tensors and signless_tensor(tensors[argument]) != argument.type
    ]
    if ops:
        block.insert_ops_before(casts, ops[0])
    values: dict[SSAValue, SSAValue] = {c.operands[0]: c.results[0] for c in casts}
    replaced: list[Operation] = []
    for op in ops:
        operands = [values.get(operand, operand) for operand in op.operands]
        if not isinstance(op, TensorOp):
            op.operands = operands
            continue
        builder = Builder(InsertPoint.before(op))
        operand_types = [tensors[operand] for operand in op.operands]
        results = convert_op(builder, op, operands, operand_types)
        values.update(zip(op.results, results, strict=True))
        replaced.append(op)
    for op in reversed(replaced):
        op.detach()
        op.erase()
    for inner in casts:
        argument, value = inner.operands[0], inner.results[0]
        inner.detach()
        inner.operands = []
        value.replace_all_uses_with(Rewriter.replace_value_with_new_type(argument, value.type))
        inner.erase()


def convert_op(
    builder: Builder, op: TensorOp, operands: Sequence[SSAValue], types: Sequence[AnyTensor]
) -> Sequence[SSAValue]:
    """Emit one op on upstream's tensors `operands`, which are `types` in braid.

    The results have the layouts of the op's results. Raises UnsupportedError for an op without
    code.
    """
    result_types = [op.result_type(i) for i in range(len(op.results))]
    if isinstance(op, StructuredOp | IndirectOp):
        emitter = StageEmitter(builder, operands, types, result_types)
        return emitter.emit(op.structure())
    targets = [signless_tensor(result) for result in result_types]
    if isinstance(op, ConcatOp):
        return [_concatenated(builder, operands, op.dim.value.data, targets[0])]
    if isinstance(op, CopyingOp):
        return [copied(builder, operands[0], targets[0])]
    plain = [copied(builder, operand, row_major(operand)) for operand in operands]
    if isinstance(op, ReshapeOp):
        results = [reshaped(builder, plain[0], _without_layout(targets[0]))]
    elif isinstance(op, ConstantOp):
        results = [dense_constant(builder, _signless_elements(op.value))]
    elif isinstance(op, ScatterOp):
        results = [scattered(builder, op, plain, types)]
    elif isinstance(op, TopKOp):
        results = list(top_k(builder, op, plain[0], types[0]))
    else:
        raise UnsupportedError(f"no code for '{op.name}'", location=source_location(op))
    return [copied(builder, r, t) for r, t in zip(results, targets, strict=True)]


def _without_layout(tensor_type: AnyTensor) -> AnyTensor:
    return TensorType(tensor_type.element_type, tensor_type.get_shape(), NoneAttr())


def _signless_elements(value: DenseIntOrFPElementsAttr) -> DenseIntOrFPElementsAttr:
    elements_type = signless_tensor(cast(AnyTensor, value.type))
    return DenseIntOrFPElementsAttr(elements_type, value.data)


def _concatenated(
    builder: Builder, operands: Sequence[SSAValue], dim: int, target: AnyTensor
) -> SSAValue:
    """Insert every operand into its slice of the result; in row-major if blocks are in the way."""
    shapes = [cast(AnyTensor, operand.type).get_shape() for operand in operands]
    offsets = [sum(shape[dim] for shape in shapes[:i]) for i in range(len(shapes))]
    starts = [[o if d == dim else 0 for d in range(len(shapes[0]))] for o in offsets]
    layout = layout_of(target)
    fits = all(
        is_sliceable(layout, target.get_shape(), start, shape)
        for start, shape in zip(starts, shapes, strict=True)
    )
    stored = target if fits else _without_layout(target)
    result = empty(builder, stored)
    for operand, start, shape in zip(operands, starts, shapes, strict=True):
        part_type = TensorType(stored.element_type, shape, stored.encoding)
        part = copied(builder, operand, part_type)
        insert = tensor.InsertSliceOp.from_static_parameters(part, result, start, shape)
        result = builder.insert(insert).result
    return copied(builder, result, target)
