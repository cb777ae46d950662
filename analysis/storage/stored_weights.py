"""The form in which weights are stored, if they are expanded when a model is loaded."""

from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, bf16, f16, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue

from braid.analysis.storage.view_groups import only_op
from braid.analysis.structure.conversions import narrow_source
from braid.dialects.braid.attribute_names import PREPARED_KEYS
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import AnyTensor, element_type_of
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.expansion import Expansion, expansion_of
from braid.dialects.braid.movement import ReshapeOp, SliceOp, TransposeOp
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.regions import FusedOp


def weight_key(value: SSAValue) -> Attribute | None:
    """Return the identity of a weight in all functions: its key, or a constant's value."""
    op = value.owner
    if isinstance(op, ParameterOp):
        return op.key
    return op.value if isinstance(op, ConstantOp) else None


def expansion_of_weight(
    op: ConstantOp | ParameterOp, stored: Attribute | None = None
) -> Expansion | None:
    """Return how a weight is expanded that may be stored in another element type, if it is."""
    type = cast(AnyTensor, op.output.type)
    if type.element_type != f32:
        return None
    return expansion_of(type.get_shape(), layout_of(type), to_numpy(stored or f32))


def narrow_parameters(module: ModuleOp) -> dict[str, Attribute]:
    """Return the types of 16 bits that hold all values of a parameter of f32 in `@prepare`.

    By key; such parameters are converted there, and perhaps moved, but not computed with.
    """
    found: dict[str, Attribute] = {}
    for function in module.ops:
        if isinstance(function, FuncOp) and PREPARED_KEYS in function.attributes:
            keys = cast(ArrayAttr[StringAttr], function.attributes[PREPARED_KEYS])
            last = function.body.block.last_op
            assert isinstance(last, ReturnOp)
            for key, value in zip(keys, last.arguments, strict=True):
                if (type := _holding_type(value)) is not None:
                    found[key.data] = type
    return found


def _holding_type(value: SSAValue) -> Attribute | None:
    """Return the type of 16 bits from which `value` is converted, before moves of its elements."""
    while isinstance(op := value.owner, Operation):
        inner = only_op(op) if isinstance(op, FusedOp) else op
        source = None if inner is None else narrow_source(inner)
        if source is not None:
            type = element_type_of(source)
            return type if type in (f16, bf16) else None
        if not isinstance(inner, ReshapeOp | TransposeOp | ReorderOp | SliceOp):
            return None
        value = op.operands[0]
    return None
