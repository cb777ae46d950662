"""The profile of a session as a file, in the format of Chrome's traces."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

from braid.runtime.profile_entries import ProfileEntry
from braid.support.atomic_file import atomic_file


def write_profile(prefix: str, profile: Mapping[str, ProfileEntry]) -> str:
    """Write an event for each op, and return the name of the file, which begins with `prefix`.

    The runtime counts and adds up: an event has the time of all executions together, in
    microseconds, and stands behind that of the op before it.

    Raises:
        BraidError: the file cannot be written.

    """
    path = Path(f"{prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S')}.json")
    events: list[dict[str, object]] = []
    begin = 0.0
    for name, entry in profile.items():
        duration = entry.seconds * 1e6
        events.append(
            {
                "cat": "Node",
                "pid": 0,
                "tid": 0,
                "ph": "X",
                "name": name,
                "ts": round(begin),
                "dur": round(duration),
                "args": {"executions": entry.count},
            }
        )
        begin += duration
    with atomic_file(path) as file:
        file.write(json.dumps(events, indent=1).encode())
    return str(path)
