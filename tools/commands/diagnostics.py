"""What commands show on standard error while a model is compiled: progress, and warnings."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from braid.support.diagnostics import Diagnostic, handle_diagnostics


@contextmanager
def compiling(model: Path) -> Generator[list[Diagnostic]]:
    """Show that a model is being compiled, and what passes warn of; the list grows by that."""
    from rich.console import Console  # a model that was compiled before does without

    shown: list[Diagnostic] = []

    def show(diagnostic: Diagnostic) -> None:
        shown.append(diagnostic)
        show_diagnostic(diagnostic)

    with Console(stderr=True).status(f"compiling {model.name}"), handle_diagnostics(show):
        yield shown


def show_diagnostic(diagnostic: Diagnostic) -> None:
    """Print it as errors are printed."""
    place = "braid" if diagnostic.location is None else str(diagnostic.location)
    hint = f"\nhint: {diagnostic.hint}" if diagnostic.hint else ""
    print(f"{place}: {diagnostic.severity}: {diagnostic.message}{hint}", file=sys.stderr)
