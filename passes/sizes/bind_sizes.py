"""`bind-sizes`: numbers in place of symbols, in types and wherever else sizes stand."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    FunctionType,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.attribute_names import SYMBOLS
from braid.dialects.braid.attributes import layout_of, with_layout
from braid.dialects.braid.base import extents_of, tensor_type
from braid.dialects.braid.names import inherit_names
from braid.dialects.braid.size_limits import require_extents
from braid.dialects.braid.sized_ops import SizedOp
from braid.dialects.braid.sizes import (
    SizesAttr,
    assumptions_of,
    extents_of_type,
    sizes_of_type,
    symbols_attribute,
)
from braid.support.errors import BraidError
from braid.support.sizes.assumptions import Assumed
from braid.support.sizes.expression import Atom, Extent, SizeError, Symbol, substitute, symbols_of


@dataclass(frozen=True)
class BindSizesPass(ModulePass):
    """Put numbers in place of symbols.

    In: any module. `values` lists names and numbers, such as `values="batch=1,sequence=128"`.
    Out: no type, slice, padding or `braid.size_values` has these symbols; what has no symbol left
    is as in a module of fixed sizes. Raises BraidError for a name that no function has, a number
    that it does not allow, and where an op is impossible at these sizes.

    ```mlir
    func.func @main(%x: tensor<?x8xf32, #braid.sizes<["batch"]>>) -> …
    // becomes, with values="batch=4"
    func.func @main(%x: tensor<4x8xf32>) -> …
    ```
    """

    name = "bind-sizes"

    values: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """See the class."""
        bind_sizes(op, _parsed(self.values))


_NUMBER = re.compile(r"\d{1,18}", re.ASCII)


def _parsed(text: str) -> dict[str, int]:
    """Return names and numbers of `name=number,…`. Raises BraidError for any other text."""
    found: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = entry.rpartition("=")
        if not name or not _NUMBER.fullmatch(number.strip()):
            raise BraidError(
                f"bind-sizes: '{entry}' is no name and number",
                hint='write values="batch=1,sequence=128"',
            )
        found[name.strip()] = int(number)
    return found


def bind_sizes(module: ModuleOp, values: Mapping[str, int]) -> None:
    """Put the numbers in place of the symbols in all functions of a module.

    Raises BraidError for a name that no function has, a number that is not allowed, and where an
    op is impossible at these sizes.
    """
    functions = [op for op in module.walk() if isinstance(op, FuncOp)]
    _check(functions, values)
    binding = _Binding({Symbol(name): number for name, number in values.items()}, values)
    for function in functions:
        for op in list(function.walk()):
            binding.bind(op)
        function.function_type = cast(FunctionType, binding.bound(function.function_type))
        _drop_symbols(function, values)
    for function in functions:
        _verify(function, values)


def _check(functions: Iterable[FuncOp], values: Mapping[str, int]) -> None:
    """Raise BraidError for a symbol that there is not, or a number that one does not allow."""
    known = {name: Assumed() for f in functions for name in symbols_used(f)}
    known |= {name: own for f in functions for name, own in assumptions_of(f).symbols}
    for name, number in values.items():
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            raise BraidError(
                f"there is no size '{name}' to bind", hint=f"the open sizes are: {names}"
            )
        assumed = known[name]
        if not assumed.allows(number):
            most = "" if assumed.maximum is None else f" and at most {assumed.maximum}"
            multiple = "" if assumed.multiple_of == 1 else f", a multiple of {assumed.multiple_of}"
            raise BraidError(
                f"size '{name}' is {number}, expected at least {assumed.minimum}{most}{multiple}"
            )


def symbols_used(root: Operation) -> set[str]:
    """Return the names of all symbols in the types inside of an op."""
    found: set[str] = set()
    for op in root.walk():
        arguments = [arg for region in op.regions for block in region.blocks for arg in block.args]
        for value in (*op.results, *arguments):
            if isinstance(value.type, TensorType):
                found |= symbols_of(*extents_of(value))
    return found


def _drop_symbols(function: FuncOp, values: Mapping[str, int]) -> None:
    left = {name: own for name, own in assumptions_of(function).symbols if name not in values}
    if left:
        function.attributes[SYMBOLS] = symbols_attribute(left)
    else:
        function.attributes.pop(SYMBOLS, None)


def _verify(function: FuncOp, values: Mapping[str, int]) -> None:
    """Raise BraidError for an op that these sizes make impossible."""
    for op in function.walk():
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException as error:
            raise _impossible(op, values, str(error)) from error


def _impossible(op: Operation, values: Mapping[str, int], why: str) -> BraidError:
    sizes = ", ".join(f"{name} = {number}" for name, number in values.items())
    return BraidError(
        f"'{op.name}' is impossible at {sizes}: {why}",
        location=source_location(op),
        hint="give other sizes",
    )


@dataclass(frozen=True)
class _Binding:
    """What symbols become."""

    by_atom: Mapping[Atom, Extent]
    values: Mapping[str, int]

    def bind(self, op: Operation) -> None:
        """Put the numbers into an op, its results and the arguments of its blocks."""
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
        return tuple(substitute(extent, self.by_atom) for extent in extents)

    def _bind_attributes(self, op: SizedOp) -> None:
        """Put the numbers into the sizes of an op: a plain one where all are known."""
        for name, held in list(op.attributes.items()):
            if isinstance(held, SizesAttr):
                op.attributes[name] = SizesAttr.of(self._all(held.get_values()))
        if (plain := op.bound()) is not None:
            inherit_names(op, plain.results, [plain])
            Rewriter.replace_op(op, plain)
