"""The text of a module."""

from io import StringIO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer


def module_text(context: Context, module: ModuleOp) -> str:
    """Return the module in custom format, ending in a newline."""
    stream = StringIO()
    printer = Printer(stream)
    printer.print_op(module)
    printer.print_metadata(context.loaded_dialects)
    return stream.getvalue() + "\n"
