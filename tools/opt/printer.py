"""Print IR for `braid-opt`: the printing flags of mlir-opt, over xDSL's printer."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from typing_extensions import override
from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerType, NameLoc
from xdsl.ir import Attribute, Block, BlockArgument, Dialect, Operation, OpResult, Region, SSAValue

from braid.dialects.braid.dtypes import dense_is_splat
from braid.dialects.printing import CachingPrinter

_NO_IDENTIFIER = re.compile(r"[^\w$.-]", re.ASCII)


@dataclass(frozen=True)
class PrintFormat:
    """The format that the printing flags give. Limits are None to print everything."""

    generic: bool = False
    debuginfo: bool = False
    upstream: bool = False
    """In the form that upstream tools can check with braid's IRDL."""
    skip_regions: bool = False
    unique_ids: bool = False
    """No two values of the text have one name, also in different functions."""
    location_names: bool = False
    """Values are named by the `loc("name")` of their definition."""
    value_users: bool = False
    most_elements: int | None = None
    """Elements of a dense attribute beyond which only its type is printed."""
    most_plain_elements: int | None = None
    """Elements of a dense attribute beyond which its bytes are printed."""
    most_characters: int | None = None
    """Characters of a resource beyond which it is left out."""


class FormattedPrinter(CachingPrinter):
    """A printer to a string that prints as a `PrintFormat` says."""

    def __init__(self, print_format: PrintFormat) -> None:
        generic = print_format.generic or print_format.upstream
        super().__init__(generic=generic, debuginfo=print_format.debuginfo)
        self._format = print_format
        self._numbers: dict[Operation, str] = {}

    @override
    def print_attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, DenseIntOrFPElementsAttr):
            dense = cast(DenseIntOrFPElementsAttr, attribute)
            if (text := self._short_elements(dense)) is not None:
                self.print_string(f"{text} : ")
                self.print_attribute(cast(Attribute, dense.type))
                return
        super().print_attribute(cast(Attribute, attribute))

    def _short_elements(self, dense: DenseIntOrFPElementsAttr) -> str | None:
        """Return the text that replaces many elements, None to print all of them."""
        most, plain = self._format.most_elements, self._format.most_plain_elements
        if (most is None and plain is None) or dense_is_splat(dense):
            return None
        count = len(dense)
        if most is not None and count > most:
            return "dense_resource<__elided__>"
        is_bits = dense.get_element_type() == IntegerType(1)  # which upstream packs into bytes
        if plain is not None and count > plain and not is_bits:
            return f'dense<"0x{dense.data.data.hex().upper()}">'
        return None

    @override
    def print_region(self, region: Region, *args: Any, **kwargs: Any) -> None:
        if self._format.skip_regions:
            self.print_string("{...}")
        else:
            super().print_region(region, *args, **kwargs)

    @override
    def print_block(self, block: Block, *args: Any, **kwargs: Any) -> None:
        if self._format.value_users:
            with self.indented():
                for argument in block.args:
                    self._print_new_line()
                    self.print_string("// ")
                    self.print_ssa_value(argument)
                    self._print_users(argument.uses, " is used by ", " is unused")
        super().print_block(block, *args, **kwargs)

    @override
    def print_op(self, op: Operation) -> None:
        super().print_op(op)
        if not self._format.value_users or op.parent is None:
            return
        if op.results:
            uses = [use for result in op.results for use in result.uses]
            title = " // users: " if len({use.operation for use in uses}) > 1 else " // user: "
            self._print_users(uses, title, " // unused")
        elif op.operands:
            self.print_string(f" // id: %{self._number(op)}")

    def _print_users(self, uses: Iterable[Any], title: str, otherwise: str) -> None:
        users = list(dict.fromkeys(use.operation for use in uses))
        self.print_string(title if users else otherwise)
        for index, user in enumerate(users):
            self.print_string(", " if index else "")
            if user.results:
                self.print_ssa_value(user.results[0])
            else:
                self.print_string(f"%{self._number(user)}")

    def _number(self, op: Operation) -> str:
        """Return the number by which comments name an op without results."""
        if op not in self._numbers:
            self._numbers[op] = self._get_new_valid_name_id()
        return self._numbers[op]

    @override
    def print_ssa_value(self, value: SSAValue) -> str:
        if self._format.location_names and value not in self._ssa_values:
            name = _location_name(value)
            if name is not None:
                number = self.ssa_names.get(name, 0)
                self.ssa_names[name] = number + 1
                self._ssa_values[value] = f"{name}_{number}" if number else name
        return super().print_ssa_value(value)

    @override
    def exit_scope(self) -> None:
        names, blocks = self.ssa_names, self.block_names
        number, block_number = self._next_valid_name_id[-1], self._next_valid_block_id[-1]
        super().exit_scope()
        if self._format.unique_ids:
            self.ssa_names.update(names)
            self.block_names.update(blocks)
            self._next_valid_name_id[-1] = number
            self._next_valid_block_id[-1] = block_number

    @override
    def print_metadata(self, dialects: Iterable[Dialect]) -> None:
        most = self._format.most_characters
        if most is None:
            super().print_metadata(dialects)
            return
        for dialect in dialects:
            handles = self._dialect_resources.get(dialect.name)
            if not handles or not dialect.has_interface(OpAsmDialectInterface):
                continue
            interface = dialect.get_interface(OpAsmDialectInterface)
            assert interface is not None
            resources = interface.build_resources(handles)
            # Its quotation marks count, as they do in mlir-opt.
            handles -= {key for key, value in resources.items() if len(value) + 2 > most}
        super().print_metadata(dialects)


def _location_name(value: SSAValue) -> str | None:
    """Return the name in the location of what defines a value, as far as it can name a value."""
    if isinstance(value, OpResult):
        location = value.op.location
    else:
        location = value.location if isinstance(value, BlockArgument) else None
    if not isinstance(location, NameLoc):
        return None
    text = "".join(
        c if c.isascii() and (c.isalnum() or c in "_$.-") else "_" for c in location.desc.data
    )
    if not text:
        return None
    return f"_{text}" if text[0].isdigit() else text


def printed(op: Operation, print_format: PrintFormat) -> str:
    """Return the text of an op, without a newline at its end and without resources."""
    printer = FormattedPrinter(print_format)
    printer.print_op(op)
    return printer.text
