"""Reading `.mlir` text that is in the syntax of xDSL or of upstream MLIR."""

from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, StringAttr, UnregisteredOp

from braid.analysis.verification import InvalidIRError, verify_module
from braid.errors import BraidError
from braid.frontends.mlir import MLIRSyntaxError, parse_mlir
from braid.frontends.mlir.upstream import from_upstream
from braid.universe import make_context

_ONLY_UPSTREAM = ("linalg", "math")
"""Dialects whose ops stay unregistered: xDSL's are fewer, and older, than upstream's."""

_TEXT = "-"
"""What upstream calls the file of a text."""


def read_mlir(context: Context, text: str, file: str) -> ModuleOp:
    """The valid module `text`; what xDSL does not take is read by upstream, if it is installed.

    Ops of `linalg` and `math` that upstream read are unregistered ones. Raises `MLIRSyntaxError`
    or `InvalidIRError`, with xDSL's diagnostic, where neither takes the text.
    """
    try:
        module = parse_mlir(context, text, file).module
        verify_module(module)
        return module
    except (MLIRSyntaxError, InvalidIRError):
        read = _read_by_upstream(text, file)
        if read is None:
            raise
        return read


def _read_by_upstream(text: str, file: str) -> ModuleOp | None:
    try:
        from braid.lowering.common.mlir_bindings import ir
    except BraidError:
        return None
    with ir.Context() as upstream:
        upstream.allow_unregistered_dialects = True
        try:
            parsed: Any = ir.Module.parse(text)
        except ir.MLIRError:
            return None
        context = make_context(allow_unregistered=True, without=_ONLY_UPSTREAM)
        module = from_upstream(context, parsed)
    for op in module.walk():
        if isinstance(op, UnregisteredOp) and not _is_known(op):
            return None
        location = op.location
        if isinstance(location, FileLineColLoc) and location.filename.data == _TEXT:
            op.location = FileLineColLoc(StringAttr(file), location.line, location.column)
    try:
        verify_module(module)
    except InvalidIRError:
        return None
    return module


def _is_known(op: UnregisteredOp) -> bool:
    return op.op_name.data.partition(".")[0] in _ONLY_UPSTREAM
