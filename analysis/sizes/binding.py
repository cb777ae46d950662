"""A substitution of sizes in types and attributes: numbers or simpler sizes in place of symbols."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import FunctionType, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.attribute_names import DEVICE, OPEN_OP, OPEN_TYPES
from braid.dialects.braid.attributes import layout_of, with_layout
from braid.dialects.braid.base import tensor_type
from braid.dialects.braid.names import inherit_names
from braid.dialects.braid.size_limits import require_extents
from braid.dialects.braid.sized_ops import SizedOp
from braid.dialects.braid.sizes import SizesAttr, extents_of_type, sizes_of_type
from braid.support.errors import BraidError
from braid.support.sizes.expression import Atom, Extent, SizeError, Symbol, substitute
from braid.support.sizes.program import is_int64


@dataclass(frozen=True)
class Binding:
    """Puts other sizes in place of those that types and attributes have.

    `values` are the numbers of symbols, for diagnostics.
    """

    replaced: Callable[[Extent], Extent]
    values: Mapping[str, int] = field(default_factory=dict[str, int])

    @staticmethod
    def of(values: Mapping[str, int]) -> "Binding":
        """Return a function that replaces symbols by these numbers, by name."""
        numbers: dict[Atom, Extent] = {Symbol(name): number for name, number in values.items()}
        return Binding(lambda extent: substitute(extent, numbers), values)

    @staticmethod
    def replacing(symbol: Symbol, size: Extent) -> "Binding":
        """Return a function that puts a size in place of a symbol."""
        return Binding(lambda extent: substitute(extent, {symbol: size}))

    def bind_all(self, root: Operation) -> None:
        """Bind the ops inside of `root`, and itself. Raises BraidError as `bind`."""
        for op in list(root.walk()):
            self.bind(op)
        if isinstance(root, FuncOp):
            root.function_type = cast(FunctionType, self.bound(root.function_type))

    def verify(self, root: Operation) -> None:
        """Raise BraidError for an op that these sizes make impossible."""
        for op in root.walk():
            try:
                op.verify(verify_nested_ops=False)
            except VerifyException as error:
                raise _impossible(op, self.values, str(error)) from error

    def bind(self, op: Operation) -> None:
        """Put the numbers into an op, its results and the arguments of its blocks.

        Raises BraidError for a size that has no value at these numbers.
        """
        try:
            for block in (block for region in op.regions for block in region.blocks):
                for argument in block.args:
                    self._bind_type(argument)
            for result in op.results:
                self._bind_type(result)
            if isinstance(op, SizedOp):
                self._bind_attributes(op)
        except SizeError as error:
            raise _impossible(op, self.values, error.message) from error
        except VerifyException as error:
            raise _impossible(op, self.values, str(error)) from error

    def _bind_type(self, value: SSAValue) -> None:
        new = self.bound(value.type)
        if new != value.type:
            Rewriter.replace_value_with_new_type(value, new)

    def bound(self, attribute: Attribute) -> Attribute:
        """Return a type with the numbers in it."""
        if isinstance(attribute, TensorType):
            return self._bound_tensor(cast("TensorType[Any]", attribute))
        if isinstance(attribute, FunctionType):
            return FunctionType.from_lists(
                [self.bound(type) for type in attribute.inputs],
                [self.bound(type) for type in attribute.outputs],
            )
        return attribute

    def _bound_tensor(self, type: "TensorType[Any]") -> "TensorType[Any]":
        if sizes_of_type(type) is None:
            return type
        extents = self._all(extents_of_type(type))
        require_extents(extents)
        return with_layout(tensor_type(type.element_type, extents), layout_of(type))

    def _all(self, extents: Iterable[Extent]) -> tuple[Extent, ...]:
        return tuple(map(self.replaced, extents))

    def _bind_attributes(self, op: SizedOp) -> None:
        """Put the numbers into the sizes of an op: a plain one where all are known."""
        for name, held in list(op.attributes.items()):
            if isinstance(held, SizesAttr):
                values = self._all(held.get_values())
                for value in values:
                    if isinstance(value, int) and not is_int64(value):
                        raise SizeError(f"its {name} have {value}, which is beyond 64 bits")
                op.attributes[name] = SizesAttr.of(values)
        plain = op.bound()
        if plain is not None:
            # Its type was inferred, and says no layout.
            Rewriter.replace_value_with_new_type(plain.results[0], op.results[0].type)
            inherit_names(op, plain.results, [plain])
            for name in (DEVICE, OPEN_OP, OPEN_TYPES):
                if name in op.attributes:
                    plain.attributes[name] = op.attributes[name]
            Rewriter.replace_op(op, plain)


def _impossible(op: Operation, values: Mapping[str, int], why: str) -> BraidError:
    sizes = ", ".join(f"{name} = {number}" for name, number in values.items())
    return BraidError(
        f"'{op.name}' is impossible at {sizes}: {why}",
        location=source_location(op),
        hint="give other sizes",
    )
