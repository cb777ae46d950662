"""Dialects of other projects that are read to be converted: nothing is checked when they are read.

Their attributes stay text, and their ops are known only by name: the pass that converts them
reports errors.
"""

from collections.abc import Iterable, Sequence
from typing import Self, TypeVar, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation, OpTraits, ParametrizedAttribute
from xdsl.irdl import param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure

OpT = TypeVar("OpT", bound="ForeignOp")


class TextAttr(ParametrizedAttribute):
    """An attribute of the dialect: the text in its angle brackets."""

    text: StringAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse `<text>` of `#dialect.name<text>`, or the word of `#dialect<name word>`."""
        text = parser.parse_optional_identifier()
        if text is None:
            text = parser._parse_dialect_symbol_body()  # pyright: ignore[reportPrivateUsage]
        return [StringAttr(text)]

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the attribute with this text."""
        return cls.new([StringAttr(text)])

    def print_parameters(self, printer: Printer) -> None:
        """Print `<text>`."""
        with printer.in_angle_brackets():
            printer.print_string(self.text.data)


class ForeignOp(Operation):
    """Any op of such a dialect; printed in generic form."""

    traits = OpTraits(lambda: (Pure(),))

    @classmethod
    def short_name(cls) -> str:
        """Return the name without that of the dialect."""
        return cls.name.partition(".")[2]

    def field(self, name: str) -> Attribute | None:
        """Return a property or attribute, None if it is missing."""
        return self.properties.get(name, self.attributes.get(name))


def foreign_ops(base: type[OpT], dialect: str, names: Iterable[str]) -> list[type[OpT]]:
    """Return classes for the ops `names` of `dialect`."""
    return [
        cast(type[OpT], type(f"{dialect}_{name}", (base,), {"name": f"{dialect}.{name}"}))
        for name in names
    ]
