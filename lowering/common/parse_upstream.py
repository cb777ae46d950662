"""Upstream MLIR's generic form as a module of xDSL."""

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation

from braid.dialects.float_literals import BitPatternParser

_DIALECTS = (
    "affine",
    "arith",
    "bufferization",
    "builtin",
    "func",
    "linalg",
    "math",
    "memref",
    "scf",
    "tensor",
    "vector",
)


def parse_upstream(text: str) -> ModuleOp:
    """Return a module in upstream's generic form; ops that xDSL does not know stay unregistered."""
    context = Context(allow_unregistered=True)
    dialects = get_all_dialects()
    for name in _DIALECTS:
        context.register_dialect(name, dialects[name])
    module = BitPatternParser(context, text).parse_module()
    for op in module.walk():
        _drop_unknown_properties(op)
    return module


def _drop_unknown_properties(op: Operation) -> None:
    """Drop properties that upstream prints at their defaults and xDSL's op does not have yet."""
    if not isinstance(op, IRDLOperation) or isinstance(op, UnregisteredOp):
        return
    known = op.get_irdl_definition().properties
    for name in [name for name in op.properties if name not in known]:
        del op.properties[name]
