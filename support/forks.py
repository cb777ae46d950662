"""Refuse to compile in a child of fork if another thread compiled when its parent forked.

Compiling takes locks of Python and of LLVM. The child inherits their state, but no thread that
would release them: a compilation would wait for ever.
"""

import os
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from threading import get_ident

from braid.support.collector import rare_collections
from braid.support.errors import BraidError

_at_work: Counter[int] = Counter()
"""The number of blocks of `compiling` that each thread is in."""
_cut_off: list[bool] = []
"""A list that is not empty in a child that was forked while another thread compiled."""


@contextmanager
def compiling() -> Generator[None]:
    """Mark a `with` block that compiles or runs passes; garbage is collected rarely in it.

    Raises:
        BraidError: the process was forked while another thread of its parent was in such a block.

    """
    if _cut_off:
        raise BraidError(
            "this process was forked while another thread compiled, and cannot compile",
            hint="fork before or after that, start the process anew (multiprocessing's 'spawn'), "
            "or load what was compiled before",
        )
    thread = get_ident()
    _at_work[thread] += 1
    try:
        with rare_collections():
            yield
    finally:
        _at_work[thread] -= 1
        if not _at_work[thread]:
            del _at_work[thread]


def _after_fork() -> None:
    others = set(_at_work) - {get_ident()}
    if others:
        _cut_off.append(True)
    for thread in others:
        del _at_work[thread]


os.register_at_fork(after_in_child=_after_fork)
