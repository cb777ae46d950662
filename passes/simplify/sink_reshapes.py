"""`sink-reshapes`: what follows a product elementwise is computed in the product's shape."""

import math
from collections.abc import Container, Iterator, Sequence, Set
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriterListener,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.execution.compute_ops import runtime_functions
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import ReshapeOp
from braid.dialects.braid.names import derive_names, inherit_names
from braid.passes.canonicalize.dead_ops import erase_dead_ops
from braid.passes.canonicalize.tensor_patterns import TensorPatterns

Shape = Sequence[int]


@dataclass(frozen=True)
class SinkReshapesPass(ModulePass):
    """Moves reshapes of a product's result after the elementwise ops that read them.

    In: any module. Out: those ops are in the product's own shape, so that fusion can make them its
    epilogue; their other operands are reshaped, which moves nothing. Importers and exporters write
    products of more than two dims as reshape, product, reshape. Where an op moved, reshapes are
    canonical again. A second run moves nothing.

    ```mlir
    %y = braid.matmul %x, %w : (tensor<128x768xf32>, tensor<768x3072xf32>) -> tensor<128x3072xf32>
    %r = braid.reshape %y : (tensor<128x3072xf32>) -> tensor<1x128x3072xf32>
    %z = braid.add %r, %bias : (tensor<1x128x3072xf32>, tensor<1x1x3072xf32>) -> …
    // becomes
    %b = braid.reshape %bias : (tensor<1x1x3072xf32>) -> tensor<1x3072xf32>
    %s = braid.add %y, %b : (tensor<128x3072xf32>, tensor<1x3072xf32>) -> tensor<128x3072xf32>
    %z = braid.reshape %s : (tensor<128x3072xf32>) -> tensor<1x128x3072xf32>
    ```
    """

    name = "sink-reshapes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite ops in order, so that a whole chain of them moves in one pass."""
        for func in runtime_functions(op):
            if count := _sink_all(func):
                _canonicalize_reshapes(func)
                message = f"{count} elementwise ops are in the shape of a product"
                emit_remark(func, self.name, message, ops=count)


def _sink_all(func: Operation) -> int:
    """Return how many ops moved; operands come before their readers."""
    # Results of products, and values computed from one in its shape.
    made, count = set[SSAValue](), 0
    for op in list(func.walk()):
        if isinstance(op, ElementwiseOp):
            if not _follows(op, made) and (moved := _sink(op, made)) is not None:
                op, count = moved, count + 1
            if _follows(op, made):
                made.add(op.output)
        elif isinstance(op, ConvOp | MatmulOp):
            made.add(op.output)
    return count


def _follows(op: ElementwiseOp, made: Set[SSAValue]) -> bool:
    """Return whether `op` has the shape of a product that it reads."""
    shape = shape_of(op.output)
    return not made.isdisjoint(each for each in op.inputs if shape_of(each) == shape)


def _sink(op: ElementwiseOp, made: Container[SSAValue]) -> ElementwiseOp | None:
    """Return `op` in the shape of a product that it reads through reshapes, if it can be."""
    shape = shape_of(op.output)
    for value in op.inputs:
        if shape_of(value) != shape or (product := _product_before(value, made)) is None:
            continue
        source = shape_of(product)
        shapes = [_shape_before(shape_of(operand), source, shape) for operand in op.inputs]
        if None not in shapes and run_together(op, *_reshapes_of(value)):
            return _moved(op, source, [each for each in shapes if each is not None])
    return None


def _moved(op: ElementwiseOp, shape: Shape, shapes: Sequence[Shape]) -> ElementwiseOp:
    """Replace `op` by one of result `shape` and its reshape; `shapes` are those of operands."""
    moved = op.clone()
    moved.operands = [
        _reshaped(operand, wanted, op) for operand, wanted in zip(op.inputs, shapes, strict=True)
    ]
    Rewriter.insert_op(moved, InsertPoint.before(op))
    kind = TensorType(element_type_of(op.output), shape)
    result = Rewriter.replace_value_with_new_type(moved.output, kind)
    back = ReshapeOp.get(result, shape_of(op.output))
    back.location = op.location
    derive_names(back, op, "reshape")
    Rewriter.replace_op(op, back)
    return moved


def _reshapes_of(value: SSAValue) -> Iterator[ReshapeOp]:
    """Yield the reshapes from another value to `value`, the last one first."""
    while isinstance(value.owner, ReshapeOp):
        yield value.owner
        value = value.owner.input


def _product_before(value: SSAValue, made: Container[SSAValue]) -> SSAValue | None:
    """Return the result of a product, or of later ops, of which `value` is a reshape."""
    sources = (reshape.input for reshape in _reshapes_of(value))
    found = next((source for source in sources if source in made), None)
    if found is None or {0, DYNAMIC} & {*shape_of(found), *shape_of(value)}:
        return None
    return found


def _reshaped(value: SSAValue, shape: Shape, op: ElementwiseOp) -> SSAValue:
    """Return `value` in another shape: the source of its reshape, or a view before `op`."""
    sources = (value, *(reshape.input for reshape in _reshapes_of(value)))
    alike = [source for source in sources if shape_of(source) == tuple(shape)]
    if alike:
        return alike[-1]
    view = ReshapeOp.get(value, shape)
    view.location = op.location
    derive_names(view, op, "reshape")
    Rewriter.insert_op(view, InsertPoint.before(op))
    return view.output


class _Reshapes(RewritePattern):
    """The patterns of `canonicalize` for reshapes, and for no other op."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if isinstance(op, ReshapeOp):
            _PATTERNS.match_and_rewrite(op, rewriter)


_PATTERNS = TensorPatterns()


def _canonicalize_reshapes(func: Operation) -> None:
    """Merge and fold the remaining ones, and drop unused ones."""
    names = PatternRewriterListener(operation_replacement_handler=[inherit_names])
    walker = PatternRewriteWalker(_Reshapes(), post_walk_func=erase_dead_ops, listener=names)
    for region in func.regions:
        walker.rewrite_region(region)


def _shape_before(operand: Shape, source: Shape, result: Shape) -> list[int] | None:
    """Return the shape of an operand that is repeated along dims of `result`, for the shape
    `source`.

    The result is None if it is repeated along only a part of dims that a reshape merges.
    """
    shape: list[int] = []
    for before, after in _groups(source, result):
        extents = [operand[dim] for dim in after]
        if extents == [result[dim] for dim in after]:
            shape += [source[dim] for dim in before]
        elif all(extent == 1 for extent in extents):
            shape += [1] * len(before)
        else:
            return None
    return shape


def _groups(source: Shape, result: Shape) -> list[tuple[list[int], list[int]]]:
    """Return the dims of both shapes that hold the same elements, as few at a time as can be."""
    groups: list[tuple[list[int], list[int]]] = []
    first = second = 0
    while first < len(source) or second < len(result):
        before, after = [*range(first, first + 1)], [*range(second, second + 1)]
        before, after = before[: len(source) - first], after[: len(result) - second]
        while (left := _extent(source, before)) != (right := _extent(result, after)):
            (before if left < right else after).append(
                first + len(before) if left < right else second + len(after)
            )
        groups.append((before, after))
        first, second = first + len(before), second + len(after)
    return groups


def _extent(shape: Shape, dims: Sequence[int]) -> int:
    return math.prod(shape[dim] for dim in dims)
