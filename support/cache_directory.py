"""Where braid keeps what it can make again, and what it says where that is damaged."""

import os
from pathlib import Path

import platformdirs

from braid.support.diagnostics import Diagnostic, emit

OBJECTS = "compiled"
"""The directory of what was compiled."""
RECORDS = "records-1.sqlite"
"""The file of what was measured; the number is that of its schema."""

_warned: set[Path] = set()


def cache_directory() -> Path:
    """`$BRAID_CACHE_DIR`, or braid's part of the user's cache directory."""
    return Path(os.environ.get("BRAID_CACHE_DIR") or platformdirs.user_cache_dir("braid"))


def warn_of_damage(message: str) -> None:
    """Warn of something damaged in the cache, once for each cache and process."""
    directory = cache_directory()
    if directory in _warned:
        return
    _warned.add(directory)
    hint = "'braid cache verify' lists all that is damaged; the disk may be failing"
    emit(Diagnostic("warning", message, hint=hint))
