"""Provide instrumentations, which watch a pipeline while it runs."""

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from typing_extensions import override
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.support.progress import Steps


class Instrumentation:
    """Hooks around the passes of a pipeline; each does nothing unless overridden."""

    def before_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Handle the start of `pass_` on `module`."""

    def after_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Handle the return of `pass_`, before the result is verified."""

    def after_failed_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Handle a `pass_` that has raised an error or left invalid IR."""

    def after_verify(self, module: ModuleOp) -> None:
        """Handle IR that was found to be valid."""


class CountedPasses(Instrumentation):
    """Reports each pass that has ended to the listener of progress."""

    def __init__(self, passes: Sequence[ModulePass]) -> None:
        self._steps = Steps("passes", len(passes))

    @override
    def after_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        self._steps.finish(pass_.name)


class Timing(Instrumentation):
    """Wall time of the phases of a run, one after the other."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        """Name -> seconds, in the order of first occurrence; repeated ones are added up."""
        self._start = time.perf_counter()
        self._last = self._start

    @override
    def before_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        self._last = time.perf_counter()

    @override
    def after_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        self._record(pass_.name)

    @override
    def after_verify(self, module: ModuleOp) -> None:
        self._record("(verify)")

    @contextmanager
    def phase(self, name: str) -> Generator[None]:
        """Time the `with` block as `name`; passes do not run inside."""
        self._last = time.perf_counter()
        yield
        self._record(name)

    def total(self) -> float:
        """Return the seconds since the beginning."""
        return time.perf_counter() - self._start

    def _record(self, name: str) -> None:
        now = time.perf_counter()
        self.phases[name] = self.phases.get(name, 0.0) + now - self._last
        self._last = now
