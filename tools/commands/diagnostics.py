"""Show progress and warnings on standard error while a model is compiled."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from braid.support.diagnostics import Diagnostic, handle_diagnostics
from braid.tools.terminal.reporter import reporter


@contextmanager
def compiling(model: Path, what: str = "compiling") -> Generator[list[Diagnostic]]:
    """Show the progress of a compilation, and the warnings of passes, which it appends."""
    to, shown = reporter(), list[Diagnostic]()

    def show(diagnostic: Diagnostic) -> None:
        shown.append(diagnostic)
        to.show(diagnostic)

    with ExitStack() as stack:
        if to.shows_progress:
            from braid.tools.terminal.phases import shown_progress

            stack.enter_context(shown_progress(f"{what} {model.name}"))
        stack.enter_context(handle_diagnostics(show))
        yield shown


@contextmanager
def counting(what: str) -> Generator[Callable[[str], None]]:
    """Show a line of text while the block runs, which the function that is given replaces."""
    if not reporter().shows_progress:
        yield lambda _: None
        return
    from braid.tools.terminal.phases import shown_progress

    with shown_progress(what) as show:
        yield show
