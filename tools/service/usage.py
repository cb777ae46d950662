"""Resource limits of a task or run, including all processes that it starts."""

import asyncio
import contextlib
import errno
import os
import resource
import time
from dataclasses import dataclass, field
from pathlib import Path

from braid.support.byte_sizes import format_size
from braid.tools.service.sessions import members

_LOOK = 0.5
"""The interval in seconds at which resource usage is measured."""


def half_of_memory() -> int:
    """Return half of the physical memory of this machine in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


@dataclass(frozen=True)
class Usage:
    """Limits of a task or run: seconds of wall time, bytes of memory, and bytes written to disk."""

    seconds: float = 86400.0
    memory: int = field(default_factory=half_of_memory)
    output: int = 4 << 30


def restrict_process(memory: int, output: int) -> None:
    """Limit the memory, in bytes, and the file size of this process and each that it starts.

    An allocation beyond the limit fails; `exceeded` measures what all processes use together.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (output, output))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def over_limit(error: BaseException, memory: int, output: int) -> str | None:
    """Return which of these limits of the process caused an error, None if neither did."""
    if isinstance(error, MemoryError):
        return f"out of memory: it uses more than {format_size(memory)}"
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return f"it writes more than {format_size(output)}"
    return None


async def exceeded(session: int, directory: Path, usage: Usage) -> str:
    """Wait until the processes of a session exceed a limit; return a message that names it.

    The growth of `directory` counts as their output.
    """
    begin, before = time.monotonic(), await asyncio.to_thread(_bytes_in, directory)
    while time.monotonic() - begin <= usage.seconds:
        if await asyncio.to_thread(_memory_of, session) > usage.memory:
            return f"uses more than {format_size(usage.memory)} of memory"
        if await asyncio.to_thread(_bytes_in, directory) - before > usage.output:
            return f"writes more than {format_size(usage.output)}"
        left = usage.seconds - (time.monotonic() - begin)
        await asyncio.sleep(max(min(_LOOK, left), 0.01))
    return f"takes longer than {usage.seconds:g} s"


def _memory_of(session: int) -> int:
    """Return the bytes of anonymous and shared memory that the processes of a session use."""
    total = 0
    for process in members(session):
        with contextlib.suppress(OSError, ValueError):
            for line in Path(f"/proc/{process}/status").read_text().splitlines():
                if line.startswith(("RssAnon:", "RssShmem:")):
                    total += int(line.split()[1]) << 10
    return total


def _bytes_in(directory: Path) -> int:
    """Return the disk usage in bytes of all files in a directory."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(Path(folder) / name).st_blocks * 512
    return total
