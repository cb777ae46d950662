"""Where the files are that CMake builds from the C sources of a room."""

from collections.abc import Iterable
from pathlib import Path


def find_built(name: str, packages: Iterable[str]) -> Path | None:
    """Return the path of a built file: in one of `packages`, or the checkout's `build/`.

    `packages` are the directories of the room that the file belongs to. Where there are several
    files, as in an editable install whose C sources are being worked on, the newest is taken.
    """
    places = [Path(directory) for directory in packages]
    builds = [place.resolve().parent / "build" for place in places]
    places += [*builds, *(build / "wheel" for build in builds)]
    found = [place / name for place in places if (place / name).is_file()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)
