"""Show how far a compilation is: a line that changes in a terminal, or a line for each phase.

Both are fed by the events of `braid.compile(…, progress=…)`.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from braid.support.progress import Progress, Stage, telling_progress

if TYPE_CHECKING:
    from rich.progress import TaskID

_STEPS: dict[Stage, str] = {"passes": "pass", "emit": "lowering kernel", "compile": "kernel"}
_PHASES: dict[Stage, str] = {
    "passes": "passes",
    "emit": "kernels lowered",
    "compile": "kernels compiled",
}


def step_text(event: Progress) -> str:
    """Return where a compilation stands, such as `kernel 12 of 47`; the step that runs counts."""
    return f"{_STEPS[event.stage]} {min(event.done + 1, event.total)} of {event.total}"


class Phases:
    """Reports the time of each phase that has ended, or of every step."""

    def __init__(self, say: Callable[[str], None], *, every_step: bool) -> None:
        """Begin before the first phase; `say` gets each line."""
        self._say, self._every_step = say, every_step
        self._begun = time.perf_counter()

    def on(self, event: Progress) -> None:
        """Take an event of the compilation."""
        if event.done == 0:
            self._begun = time.perf_counter()
        elif self._every_step:
            self._say(str(event))
        if event.done == event.total:
            took = time.perf_counter() - self._begun
            self._say(f"{event.total} {_PHASES[event.stage]} in {took:.2f} s")


@contextmanager
def shown_progress(what: str) -> Generator[Callable[[str], None]]:
    """Show a line on standard error while the block runs, with the steps of what it compiles.

    `what` is shown before the first step. The function that is given replaces that text, where no
    step is counted. The line is erased afterwards, and is not shown if standard error is no
    terminal.
    """
    from rich.console import Console  # a model that was compiled before does without
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Display

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
    )
    with Display(*columns, console=Console(stderr=True), transient=True) as display:
        line: TaskID = display.add_task(what, total=None)
        begun: list[Stage] = []

        def on(event: Progress) -> None:
            if begun != [event.stage] or event.done == 0:  # times of other steps say nothing
                begun[:] = [event.stage]
                display.reset(line, total=event.total)
            text = f"{what}: {step_text(event)}"
            display.update(line, completed=event.done, description=text)

        with telling_progress(on):
            yield lambda text: display.update(line, description=text)
