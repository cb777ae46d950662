"""Python's collector of cyclic garbage, called less often where much is made that stays.

IR is very many objects, nearly all of which live to the end, and so are the classes of modules that
are imported: by Python's defaults a fifth of the time of a compilation goes into looking at them
again and again.
"""

import atexit
import gc
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager

_YOUNG = 400_000
"""How many objects more than before call the collector; Python's default is hundreds."""


class _Thresholds:
    """The thresholds of the process, and how many blocks have raised them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.blocks = 0
        self.before = gc.get_threshold()
        self.spares_exit = False
        self.has_aged = False

    def enter(self) -> None:
        with self.lock:
            self.blocks += 1
            if self.blocks > 1:
                return
            self.before = gc.get_threshold()
            if not self.spares_exit:
                # At its end Python would look at all of it once more: a sixth of a compilation
                # whose kernels are cached. Memory goes back to the system anyway.
                atexit.register(gc.freeze)
                self.spares_exit = True
            young, *older = self.before
            if young:  # else whoever runs this process has turned the collector off
                gc.set_threshold(max(young, _YOUNG), *older)

    def leave(self) -> None:
        with self.lock:
            self.blocks -= 1
            if not self.blocks:
                self._age()
                gc.set_threshold(*self.before)

    def _age(self) -> None:
        """Make all that there is old after the first block, without looking at it.

        Else the first object that is made afterwards would have all looked at that the block made:
        a twentieth of a compilation whose kernels are cached. Later blocks leave that to Python,
        which collects what is old only where much has become so by its own account.
        """
        if not self.has_aged and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        self.has_aged = True

    def renew_lock(self) -> None:
        """In a child of fork, where nobody would give the lock back."""
        self.lock = threading.Lock()


_thresholds = _Thresholds()
os.register_at_fork(after_in_child=_thresholds.renew_lock)


@contextmanager
def rare_collections() -> Generator[None]:
    """Around what makes many objects that stay; blocks of several threads may overlap."""
    _thresholds.enter()
    try:
        yield
    finally:
        _thresholds.leave()
