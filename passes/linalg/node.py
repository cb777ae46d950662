"""An op of an upstream tensor dialect while it is converted to ops of braid."""

from typing import Any, NoReturn, cast

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, TensorType
from xdsl.dialects.linalg.ops import FillOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import dense_is_splat, is_element_type, numpy_from_dense
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.movement import BroadcastOp
from braid.passes.conversion.replacement import Replacement
from braid.passes.linalg.index_values import index_value
from braid.support.sizes.expression import Extent


class NotConvertedError(Exception):
    """Raised if braid has no ops for an op, which is then left to upstream's lowering."""


class UpstreamNode(Replacement[Operation]):
    """An upstream op being converted, with helpers that insert its replacement."""

    def leave(self) -> NoReturn:
        """Raise NotConvertedError, which leaves the op to upstream's lowering."""
        raise NotConvertedError

    def undo(self) -> None:
        """Erase the ops that were inserted, and those that failed verification."""
        values = {value for inner in self.op.walk() for value in inner.operands}
        values.update(result for op in self.inserted for result in op.results)
        for user in {use.operation for value in values for use in value.uses}:
            if not isinstance(user.get_toplevel_object(), ModuleOp):
                user.drop_all_references()  # an op that failed verification and was never inserted
        for op in reversed(self.inserted):
            Rewriter.erase_op(op)

    def attribute(self, name: str) -> Attribute | None:
        """Return a property or attribute of the op, None if it has neither."""
        return self.op.properties.get(name, self.op.attributes.get(name))

    def shape(self, value: SSAValue) -> tuple[Extent, ...]:
        """Return the shape of a tensor, with the sizes of open dims.

        Raises NotConvertedError where the size of one is unknown, and for element types that braid
        does not have.
        """
        if not isinstance(value.type, TensorType) or DYNAMIC in extents_of(value):
            self.leave()
        if not is_element_type(element_type_of(value)):
            self.leave()
        return extents_of(value)

    def index(self, value: SSAValue) -> Extent:
        """Return a scalar that is a number or made of sizes; raise NotConvertedError for data."""
        found = index_value(value, self.assumptions)
        if found is None:
            self.leave()
        return found

    def number_in(self, value: SSAValue) -> float | int | bool | None:
        """Return the constant that all elements of `value` have, None if it is not known.

        A `tensor.empty` that is read holds zeros, as in the interpreter, never stale memory.
        """
        owner = value.owner
        match owner:
            case tensor.EmptyOp():
                return 0
            case BroadcastOp():
                return self.number_in(owner.input)
            case FillOp():
                return self.number_in(owner.inputs[0])
            case tensor.SplatOp():
                return self.number_in(owner.input)
            case ConstantOp() if dense_is_splat(owner.value):
                return numpy_from_dense(owner.value).reshape(-1)[0].item()
            case arith.ConstantOp():
                return _number_of(owner.value)
            case _:
                return None


def _number_of(value: Attribute) -> float | int | bool | None:
    """Return the constant that an attribute is, or that all of its elements are, else None."""
    if isinstance(value, DenseIntOrFPElementsAttr):
        dense = cast(DenseIntOrFPElementsAttr[Any], value)
        return numpy_from_dense(dense).reshape(-1)[0].item() if dense_is_splat(dense) else None
    return getattr(getattr(value, "value", None), "data", None)
