"""Read a process's resident memory, and its peak, as Linux counts it (see proc(5))."""

import ctypes
import resource
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
_KIB = 1024


@dataclass(frozen=True)
class ResidentMemory:
    """Bytes in memory now, the most since the last `reset_peak`, and those of mapped files."""

    current: int
    peak: int
    mapped: int


def reset_peak() -> None:
    """Let the peak begin at what is in use now, as far as the system allows that.

    Memory that was freed but that the allocator keeps goes back to the system first: what reuses
    it would not be seen to grow.
    """
    with suppress(OSError, AttributeError):  # no allocator but glibc's has it
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        _CLEAR.write_text(_RESET_PEAK)


def resident_memory() -> ResidentMemory:
    """Read the counters; without /proc, the peak resident size is the only one."""
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB
        return ResidentMemory(peak, peak, 0)
    fields = dict(line.split(":", 1) for line in lines)
    current, peak, mapped = (
        int(fields[name].split()[0]) * _KIB for name in ("VmRSS", "VmHWM", "RssFile")
    )
    return ResidentMemory(current, peak, mapped)
