"""Warnings of passes, for commands that run them."""

import sys

from braid.analysis.diagnostics import Diagnostic


def show_diagnostic(diagnostic: Diagnostic) -> None:
    """Print it to standard error, as errors are printed."""
    place = "braid" if diagnostic.location is None else str(diagnostic.location)
    hint = f"\nhint: {diagnostic.hint}" if diagnostic.hint else ""
    print(f"{place}: {diagnostic.severity}: {diagnostic.message}{hint}", file=sys.stderr)
