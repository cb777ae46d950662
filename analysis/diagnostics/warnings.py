"""Warnings about ops."""

from xdsl.ir import Operation

from braid.analysis.diagnostics.locations import source_location
from braid.support.diagnostics import Diagnostic, emit


def emit_warning(op: Operation, message: str, *, hint: str | None = None) -> None:
    """Warn about `op`: the result is correct, but probably not what the user wants."""
    emit(Diagnostic("warning", message, source_location(op), hint=hint))
