"""`apply-product-types`: products of narrower numbers, to which what they read is rounded."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, FloatAttr, ModuleOp, TensorType, f32
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attribute_names import PRODUCT_TYPE
from braid.dialects.braid.base import AnyTensor, TensorOp, element_type_of
from braid.dialects.braid.dtypes import is_float
from braid.dialects.braid.elementwise import ELEMENTWISE
from braid.dialects.braid.movement import ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from braid.dialects.braid.names import derive_names, inherit_names

_MOVING = (ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp)
"""The ops that move numbers to a product, after these are rounded."""
_CAST = ELEMENTWISE["cast"]


@dataclass(frozen=True)
class ApplyProductTypesPass(ModulePass):
    """Makes products in their `braid.product_type`, with sums in f32.

    The operands of such a product are rounded where they are computed, and all float computations
    read the rounded value: it is stored once, in the narrow type. In: `braid.product_type` as
    `select-product-types` writes it. Out: none.

    ```mlir
    %y = braid.matmul %x, %w {braid.product_type = bf16}
        : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32>
    // %n = braid.cast %x : (tensor<64x512xf32>) -> tensor<64x512xbf16>
    // %v = braid.cast %w : (tensor<512x512xf32>) -> tensor<512x512xbf16>
    // %y = braid.matmul %n, %v {accumulator = f32}
    //     : (tensor<64x512xbf16>, tensor<512x512xbf16>) -> tensor<64x512xf32>
    ```
    """

    name = "apply-product-types"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite all products that say so."""
        products = [each for each in op.walk() if PRODUCT_TYPE in each.attributes]
        rounding = _Rounding(ParameterExpressions())
        for product in products:
            kind = product.attributes.pop(PRODUCT_TYPE)
            operands = [rounding.rounded(value, kind) for value in product.operands]
            _replace(product, operands, f32, {"accumulator": f32})


@dataclass
class _Rounding:
    """The values that were rounded so far, by value and type."""

    known: ParameterExpressions
    made: dict[tuple[SSAValue, Attribute], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Attribute], SSAValue]
    )

    def rounded(self, value: SSAValue, kind: Attribute) -> SSAValue:
        """Return `value` in this type; all else that computes with it reads it rounded from
        now on.
        """
        if element_type_of(value) == kind:
            return value
        if (value, kind) not in self.made:
            self.made[value, kind] = self._round(value, kind)
        return self.made[value, kind]

    def _round(self, value: SSAValue, kind: Attribute) -> SSAValue:
        owner = value.owner
        if isinstance(owner, _CAST) and element_type_of(owner.operands[0]) == kind:
            return owner.operands[0]
        if self.known.is_known(value):
            return _cast(value, kind, owner)
        readers = list(value.uses)
        if isinstance(owner, _MOVING):
            operands = [self.rounded(operand, kind) for operand in owner.operands]
            narrow = _moved(owner, operands, kind)
        else:
            narrow = _cast(value, kind, owner)
        wide = _cast(narrow, element_type_of(value), narrow.owner)
        for use in readers:
            if isinstance(use.operation, TensorOp) and _computes(use.operation, kind):
                use.operation.operands[use.index] = wide
        self.made[wide, kind] = narrow
        if not wide.uses:
            Rewriter.erase_op(cast(Operation, wide.owner))
        return narrow


def _computes(op: TensorOp, kind: Attribute) -> bool:
    """Return whether results are as close as the type is: no numbers, indices or truths that are
    others.

    Conversions to the type itself are what rounds.
    """
    types = [element_type_of(result) for result in op.results]
    return all(map(is_float, types)) and not (isinstance(op, _CAST) and types == [kind])


def _cast(value: SSAValue, kind: Attribute, owner: Operation | Block) -> SSAValue:
    op = _CAST.create(operands=[value], result_types=[_with(value, kind)])
    if isinstance(owner, Block):
        Rewriter.insert_op(op, InsertPoint.at_start(owner))
    else:
        Rewriter.insert_op(op, InsertPoint.after(owner))
        op.location = owner.location
        derive_names(op, owner, "cast")
    return op.results[0]


def _moved(op: Operation, operands: Iterable[SSAValue], kind: Attribute) -> SSAValue:
    """Return the result of `op` on operands of another type; `op` stays for its other readers."""
    attributes = {name: _number(value, kind) for name, value in op.attributes.items()}
    types = [_with(op.results[0], kind)]
    new = type(op).create(operands=list(operands), result_types=types, attributes=attributes)
    new.location = op.location
    Rewriter.insert_op(new, InsertPoint.after(op))
    derive_names(new, op, "cast")
    return new.results[0]


def _number(attribute: Attribute, kind: Attribute) -> Attribute:
    """Return the padding value in another type."""
    if not isinstance(attribute, FloatAttr):
        return attribute
    number = cast(FloatAttr[AnyFloat], attribute)
    return FloatAttr(number.value.data, cast(AnyFloat, kind)) if number.type == f32 else number


def _replace(
    op: Operation, operands: list[SSAValue], kind: Attribute, attributes: dict[str, Attribute]
) -> None:
    types = [_with(op.results[0], kind)]
    new = type(op).create(
        operands=operands, result_types=types, attributes={**op.attributes, **attributes}
    )
    new.location = op.location
    Rewriter.insert_op(new, InsertPoint.before(op))
    inherit_names(op, new.results)
    op.results[0].replace_all_uses_with(new.results[0])
    Rewriter.erase_op(op)


def _with(value: SSAValue, kind: Attribute) -> AnyTensor:
    type = cast(AnyTensor, value.type)
    return TensorType(kind, type.get_shape(), type.encoding)
