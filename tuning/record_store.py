"""Writing measurements down, so that later compilations find them."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from braid.targets.costs.cost_records import records_path


def append_records(
    seconds: Mapping[str, float], details: Mapping[str, str], path: Path | None = None
) -> None:
    """Adds measured seconds by `record_key` to a file, by default the user's.

    `details` say to people, by key, what was measured. Any number of processes may write at
    once: a file opened for appending takes each write whole, and a reader skips what is cut off.
    Raises OSError where the file cannot be written.
    """
    path = path or records_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        for key, value in seconds.items():
            entry = {"key": key, "seconds": value, "what": details.get(key, "")}
            os.write(descriptor, (json.dumps(entry) + "\n").encode())
    finally:
        os.close(descriptor)
