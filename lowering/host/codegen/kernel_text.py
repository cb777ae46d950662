"""A kernel as text under a name that says nothing, and its own name given back to the object.

Kernels with equal code get equal text, and so one entry in the object cache, whatever they are
called.
"""

from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp

from braid.lowering.common.module_text import module_text
from braid.support.errors import BraidError
from braid.targets.kernels.kernel_family import Kernel

PLACEHOLDER = "braid_kernel_".ljust(128, "_")
"""The symbol of every kernel while it is compiled; as long as a symbol may be."""


def anonymous_text(kernel: Kernel) -> str:
    """The text of the kernel's module with the placeholder as the kernel's symbol."""
    named: list[FuncOp] = []
    for op in kernel.module.walk():
        if isinstance(op, FuncOp) and op.sym_name.data == kernel.symbol:
            named.append(op)
        for name, attribute in op.properties.items():
            if isinstance(attribute, SymbolRefAttr):
                assert attribute.root_reference.data != kernel.symbol, f"{name}: a kernel calls"
    for op in named:
        op.sym_name = StringAttr(PLACEHOLDER)
    text = module_text(kernel.module)
    for op in named:
        op.sym_name = StringAttr(kernel.symbol)
    return text


def with_symbol(object_code: bytes, symbol: str) -> bytes:
    """The object with the placeholder replaced by `symbol` in its string table.

    Names there end at a zero byte, so that a shorter one takes the room of a longer one.
    """
    placeholder = PLACEHOLDER.encode()
    encoded = symbol.encode()
    if len(encoded) > len(placeholder):
        raise BraidError(f"symbol '{symbol}' is longer than {len(placeholder)} bytes")
    assert object_code.count(placeholder) == 1, "a kernel has exactly one symbol"
    return object_code.replace(placeholder, encoded.ljust(len(placeholder), b"\0"))
