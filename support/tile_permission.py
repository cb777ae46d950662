"""Request permission for this process to use the tile registers of AMX."""

import ctypes
import platform
import sys
from functools import cache

_ARCH_PRCTL, _REQUEST, _TILE_DATA = 158, 0x1023, 18


@cache
def may_use_tiles() -> bool:
    """Ask the system for the registers' state, which it keeps only for processes that ask.

    All threads have it from then on (Linux, Documentation/arch/x86/xstate.rst); the runtime asks
    on its own before it runs code that needs them.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST, _TILE_DATA) == 0
