"""Modules as the text that upstream reads."""

from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.printer import Printer


class _Printer(Printer):
    """Writes every attribute once and then copies it: kernels have few types."""

    def __init__(self, stream: StringIO) -> None:
        super().__init__(stream, print_generic_format=True)
        self._texts: dict[Attribute, str] = {}

    def print_attribute(self, attribute: Attribute) -> None:
        text = self._texts.get(attribute)
        if text is None:
            stream = StringIO()
            Printer(stream, print_generic_format=True).print_attribute(attribute)
            text = self._texts[attribute] = stream.getvalue()
        self.print_string(text)


def module_text(module: ModuleOp) -> str:
    """The module in generic form, which upstream parses for every dialect."""
    stream = StringIO()
    _Printer(stream).print_op(module)
    return stream.getvalue()
