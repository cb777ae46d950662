"""Python's collector of cyclic garbage, called less often where much is made that stays.

IR and imported modules are very many objects, nearly all of which live to the end: with Python's
defaults the collector spends a fifth of a compilation's time on visiting them again.
"""

import atexit
import gc
import os
import sys
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from threading import get_ident

_YOUNG = 400_000
"""The number of new objects after which the collector runs; Python's default is hundreds."""


class _Thresholds:
    """The thresholds of the process, and how many blocks of each thread raised them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.blocks: Counter[int] = Counter()
        self.before = self.raised = gc.get_threshold()
        self.has_aged = False
        self.modules = 0

    def enter(self) -> None:
        with self.lock:
            self.blocks[get_ident()] += 1
            if self.blocks.total() > 1:
                return
            self.modules = len(sys.modules)
            self.before = gc.get_threshold()
            young, *older = self.before
            if young:  # else whoever runs this process has turned the collector off
                gc.set_threshold(max(young, _YOUNG), *older)
            self.raised = gc.get_threshold()

    def leave(self, *, imports: bool) -> None:
        with self.lock:
            self.blocks[get_ident()] -= 1
            self.blocks = +self.blocks  # without threads that are in none
            if not self.blocks:
                # A block that asks for what was imported before has nothing to make old; whether
                # the program froze anything takes as long to tell as it froze objects.
                if not imports or len(sys.modules) > self.modules:
                    self._age(imports=imports)
                self._restore()

    def _age(self, *, imports: bool) -> None:
        """Make all that there is old, without looking at it, after imports and the first other
        block.

        Else the first object that is made afterwards would have all looked at that the block made:
        a fiftieth of a compilation. Later blocks leave that to Python, which collects old objects
        only after many objects have become old. Imported modules contain no garbage.
        """
        if (imports or not self.has_aged) and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        self.has_aged |= not imports

    def after_fork(self) -> None:
        """Reset the state in a child process, where other threads will not leave their blocks."""
        self.lock = threading.Lock()
        own, others = self.blocks[get_ident()], self.blocks.total() - self.blocks[get_ident()]
        self.blocks = +Counter({get_ident(): own})
        if others and not own:
            self._restore()

    def _restore(self) -> None:
        """Restore the thresholds, unless the embedding program has set others meanwhile."""
        if gc.get_threshold() == self.raised:
            gc.set_threshold(*self.before)


_thresholds = _Thresholds()
os.register_at_fork(after_in_child=_thresholds.after_fork)


@contextmanager
def rare_collections(*, imports: bool = False) -> Generator[None]:
    """Collect garbage rarely while a `with` block makes many objects that stay; threads may
    overlap.

    `imports` says that the block only imports modules, which stay to the end.
    """
    _thresholds.enter()
    try:
        yield
    finally:
        _thresholds.leave(imports=imports)


def end_without_search() -> None:
    """Let this process end without a last search for garbage.

    That takes a sixth of a compilation whose kernels are cached, and memory goes back to the system
    anyway. Only for programs of braid's own: of what others run, such as files that are to be
    written at the end, some is in cycles that the search would find.
    """
    atexit.register(gc.freeze)
