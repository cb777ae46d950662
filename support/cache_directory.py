"""Where braid keeps what it may lose: compiled kernels and measurements."""

import os
from pathlib import Path

import platformdirs


def cache_directory() -> Path:
    """`$BRAID_CACHE_DIR`, or braid's part of the user's cache directory."""
    return Path(os.environ.get("BRAID_CACHE_DIR") or platformdirs.user_cache_dir("braid"))
