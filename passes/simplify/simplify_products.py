"""`simplify-products`: large operands of products are neither scaled nor repeated before these."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType, bf16, f16, f32, f64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.dialects.braid.attribute_names import NAME
from braid.dialects.braid.base import TensorOp, element_type_of, shape_of
from braid.dialects.braid.clusters import run_together, union_placements
from braid.dialects.braid.constants import ConstantOp, splat_value
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.elementwise import ELEMENTWISE, ElementwiseOp, elementwise
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import BroadcastOp, ReshapeOp, TransposeOp
from braid.dialects.braid.names import inherit_names, union_names
from braid.targets.machines.resolve import runs_on, target_of

_FLOATS = (f32, f64)
_VIEWS = (BroadcastOp, ReshapeOp, TransposeOp)

_LARGEST_SCALE = 2.0**16
"""The largest scale that is applied later, and its inverse the least: without the scale, values may
overflow or vanish only within this factor of the type's limits."""

_MOST_ROWS = 64
"""The most rows of a product by an operand that is repeated no longer. With more rows a copy of it
is cheap compared with the matmul, and attention works by tiles of heads."""


@dataclass(frozen=True)
class SimplifyProductsPass(ModulePass):
    """Scales small tensors instead of large ones, and repeats no operand for groups of batches.

    In: any module. Out: a number that the right operand of a `braid.matmul` of f32 or f64 is
    multiplied or divided by, possibly before it is moved, is applied to the result if that is
    smaller, or if the left operand is scaled, too, as queries and keys are in ONNX's attention. A
    right operand that is repeated for groups of batches, as keys are for several heads of queries,
    is no longer repeated: rows of a group become rows of one product, up to 64. A conversion from
    16 bits is done before the move. A product by a column is one of a row by a transpose, which is
    a layout: the matrix is read where it lies, and results are next to each other. With `devices`
    only products on these are changed; with strict numerics nothing is scaled later. ```mlir %s =
    braid.mul %k, %c : (tensor<8x64x2048xf32>, tensor<1x1x1xf32>) -> tensor<8x64x2048xf32> %y =
    braid.matmul %q, %s : … -> tensor<8x1x2048xf32> // %p = braid.matmul %q, %k : … ->
    tensor<8x1x2048xf32> // %y = braid.mul %p, %c : (tensor<8x1x2048xf32>, tensor<1x1x1xf32>) ->
    tensor<8x1x2048xf32> ```
    """

    name = "simplify-products"

    target: str | None = None
    devices: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite product by product."""
        target = target_of(op, self.target)
        for product in [inner for inner in op.walk() if isinstance(inner, MatmulOp)]:
            if runs_on(product, self.devices, target) and not _is_open(product):
                # With strict numerics, values that a scale keeps small must not overflow before it.
                is_strict = target.settings.is_strict
                scaled = product if is_strict else _scale_result(product)
                _merge_groups(_convert_first(_as_row(scaled)))


def _is_open(product: MatmulOp) -> bool:
    values = (*product.operands, product.output)
    return any(DYNAMIC in shape_of(value) or 0 in shape_of(value) for value in values)


def _scale_result(product: MatmulOp) -> MatmulOp:
    """Apply scales of operands to the result, and return the product.

    The scale of the right operand is moved if the result is smaller; both are moved if both
    operands are scaled, since one factor after the product replaces two passes over its operands.
    """
    if element_type_of(product.output) not in _FLOATS:
        return product
    right, left = _scaled(product.rhs), _scaled(product.lhs)
    if right is None or not run_together(product, right.scale, *right.views):
        return product
    if left is not None and not run_together(product, left.scale, *left.views):
        left = None
    if left is None and _elements(product.output) > _elements(right.scale.output):
        return product
    scaled = [right] if left is None else [left, right]
    factor = math.prod(one.factor for one in scaled)
    if not all(_is_moderate(number) for number in (factor, *(one.factor for one in scaled))):
        return product
    operands = [product.lhs if left is None else left.again(product), right.again(product)]
    new = _product(product, *operands)
    _replace(product, elementwise("mul", new.output, _number(factor, new)))
    for one in scaled:
        _erase_unread([*reversed(one.views), one.scale])
    return new


def _is_moderate(factor: float) -> bool:
    return 1 / _LARGEST_SCALE <= abs(factor) <= _LARGEST_SCALE


@dataclass(frozen=True)
class _Scaled:
    """An operand that is `scale`, which multiplies by `factor`, after the ops that move it."""

    scale: ElementwiseOp
    factor: float
    views: list[Operation]

    def again(self, product: MatmulOp) -> SSAValue:
        """Return the operand as it would be without the scale."""
        return _again(self.views, self.scale.operands[0], product)


def _scaled(operand: SSAValue) -> _Scaled | None:
    """Return the product of an operand that is multiplied or divided by one number, for one
    reader.
    """
    value, views = _moved(operand)
    op = value.owner
    if not isinstance(op, ElementwiseOp) or op.ROW.name not in ("mul", "div"):
        return None
    tensor, number = op.operands
    constant = splat_value(number.owner) if isinstance(number.owner, ConstantOp) else None
    if not isinstance(constant, float) or not constant or not math.isfinite(constant):
        return None
    if not value.has_one_use() or tensor.type != op.output.type:
        return None
    return _Scaled(op, constant if op.ROW.name == "mul" else 1 / constant, views)


def _elements(value: SSAValue) -> int:
    return math.prod(shape_of(value))


def _as_row(product: MatmulOp) -> MatmulOp:
    """Replace a product of floats by one column by one of a row by the transpose, and return it."""
    left, right = shape_of(product.lhs), shape_of(product.rhs)
    if right[-1] != 1 or left[-2] == 1 or element_type_of(product.lhs) not in _FLOATS:
        return product
    row = _made(ReshapeOp.get(product.rhs, (*right[:-2], 1, right[-2])), product)
    turned = _made(TransposeOp.get(product.lhs, _swap(len(left))), product)
    new = _product(product, row, turned)
    _replace(product, ReshapeOp.get(new.output, shape_of(product.output)))
    return new


def _convert_first(product: MatmulOp) -> MatmulOp:
    """Move the right operand after its conversion from 16 bits instead of before, and return the
    product.

    Matmuls read a moved operand in place, and convert it as they load it.
    """
    conversion = product.rhs.owner
    if not isinstance(conversion, ELEMENTWISE["cast"]) or not product.rhs.has_one_use():
        return product
    value, views = _moved(conversion.operands[0])
    kinds = element_type_of(value), element_type_of(product.rhs)
    if not views or kinds not in ((f16, f32), (bf16, f32)):
        return product
    if not run_together(product, conversion, *views):
        return product
    wide = elementwise("cast", value, element_type=f32)
    union_names(wide, conversion)
    wide.location = conversion.location
    Rewriter.insert_op(wide, InsertPoint.before(product))
    product.operands[1] = _again(views, wide.output, product)
    _erase_unread([conversion, *reversed(views)])
    return product


def _moved(value: SSAValue) -> tuple[SSAValue, list[Operation]]:
    """Return the source of `value` for one reader, and the ops that move it, in order."""
    views: list[Operation] = []
    while isinstance(owner := value.owner, _VIEWS) and value.has_one_use():
        views.insert(0, owner)
        value = owner.operands[0]
    return value, views


def _again(views: Sequence[Operation], value: SSAValue, product: MatmulOp) -> SSAValue:
    """Return `value` moved by copies of `views`, before the product."""
    for view in views:
        copy = view.clone()
        copy.operands[0] = value
        type = TensorType(element_type_of(value), shape_of(view.results[0]))
        Rewriter.insert_op(copy, InsertPoint.before(product))
        value = Rewriter.replace_value_with_new_type(copy.results[0], type)
    return value


def _erase_unread(ops: Sequence[Operation]) -> None:
    for op in ops:
        if op.results[0].first_use is None:
            Rewriter.erase_op(op)


def _number(factor: float, product: MatmulOp) -> SSAValue:
    """Return a number, after a product, with as many dims as its result."""
    shape = [1] * len(shape_of(product.output))
    new = ConstantOp.of(np.full(shape, factor, to_numpy(element_type_of(product.output))))
    Rewriter.insert_op(new, InsertPoint.after(product))
    return new.output


def _merge_groups(product: MatmulOp) -> None:
    """Make batches that share their right operand rows of one batch."""
    turn = product.rhs.owner if isinstance(product.rhs.owner, TransposeOp) else None
    repeated = product.rhs if turn is None else turn.input
    shared = _shared(repeated)
    *batch, rows, depth = shape_of(product.lhs)
    if shared is None or tuple(batch) != shape_of(product.rhs)[:-2]:
        return
    *kept, _, _, _ = shape_of(shared)
    rows *= batch[-1] // kept[-1]
    is_swap = turn is None or list(turn.permutation.get_values()) == _swap(len(batch) + 2)
    if rows > _MOST_ROWS or not is_swap or not run_together(product, *_makers(product)):
        return
    left = _made(ReshapeOp.get(product.lhs, (*kept, rows, depth)), product)
    right = _made(ReshapeOp.get(shared, (*kept, *shape_of(repeated)[-2:])), product)
    if turn is not None:
        right = _made(TransposeOp.get(right, _swap(len(kept) + 2)), product)
    new = _product(product, left, right)
    _replace(product, ReshapeOp.get(new.output, shape_of(product.output)))


def _shared(value: SSAValue) -> SSAValue | None:
    """Return the value that `value` repeats for groups of its last batch dim:
    `[…, groups, 1, rows, columns]`.
    """
    joined = value.owner
    repeat = joined.input.owner if isinstance(joined, ReshapeOp) else None
    if not isinstance(repeat, BroadcastOp):
        return None
    before, after = shape_of(repeat.input), shape_of(repeat.output)
    place = len(before) - 3
    if place < 1 or before[place] != 1:
        return None
    if before != (*after[:place], 1, *after[place + 1 :]):
        return None
    whole = (*after[: place - 1], after[place - 1] * after[place], *after[place + 1 :])
    return repeat.input if shape_of(value) == whole else None


def _swap(rank: int) -> list[int]:
    return [*range(rank - 2), rank - 1, rank - 2]


def _makers(product: MatmulOp) -> list[Operation]:
    """Return the views that make the right operand."""
    found: list[Operation] = []
    value = product.rhs
    while isinstance(owner := value.owner, _VIEWS):
        found.append(owner)
        value = owner.operands[0]
    return found


def _made(op: ReshapeOp | TransposeOp, product: MatmulOp) -> SSAValue:
    """Return the result of `op`, which is before the product, for it."""
    union_placements(op, product)
    op.location = product.location
    Rewriter.insert_op(op, InsertPoint.before(product))
    return op.results[0]


def _product(product: MatmulOp, left: SSAValue, right: SSAValue) -> MatmulOp:
    """Return the product of other operands, before `product`; it has its attributes, but no
    names.
    """
    new = MatmulOp.on(left, right, accumulator=product.accumulator)
    new.attributes |= {k: v for k, v in product.attributes.items() if k != NAME}
    new.location = product.location
    Rewriter.insert_op(new, InsertPoint.before(product))
    return new


def _replace(product: MatmulOp, last: TensorOp) -> None:
    """Put `last`, the end of the computation on another product, in the place of `product`."""
    Rewriter.insert_op(last, InsertPoint.before(product))
    inherit_names(product, [last.results[0]], inserted=[last])
    product.output.replace_all_uses_with(last.results[0])
    Rewriter.erase_op(product)
