"""Threads of this process, by their names."""

from collections.abc import Iterator
from pathlib import Path


def statuses_of_threads(name: str) -> Iterator[str]:
    """Yield the text of `/proc/self/task/*/status` of each thread called `name`.

    A thread may end between the listing and the reading: it is then left out, as one that ended
    before the listing is.
    """
    for task in Path("/proc/self/task").iterdir():
        try:
            if (task / "comm").read_text() == name + "\n":
                yield (task / "status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
