"""`braid cache`: the contents of the caches, their verification and their removal."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from pathlib import Path

from braid.tools.terminal.answer import Answer
from braid.tools.terminal.command_group import CommandGroup

cache = CommandGroup(
    name="cache", help="Look into the cache of kernels, models and records, or empty it."
)

_DAMAGED_SHOWN = 20
_OLDER = ("objects/??/*.o", "rtl/*.so", "rtl/*.o", "measurements.jsonl")
"""Entries of versions that wrote no digests, or lines of measurements."""


def _with_errors(command: Callable[[], Answer]) -> Callable[[], Answer]:
    """Return the command, with a diagnostic if the directory of the cache cannot be read."""

    @wraps(command)
    def checked() -> Answer:
        from braid.support.cache_files import cache_directory
        from braid.support.errors import BraidError
        from braid.support.input_files import reason

        try:
            return command()
        except OSError as error:
            if error.filename is None:  # of standard output
                raise
            raise BraidError(
                f"cannot read the cache '{cache_directory()}': {reason(error)}",
                hint="set BRAID_CACHE_DIR to a directory that you may read",
            ) from error

    return checked


@cache.command()
@_with_errors
def show() -> Answer:
    """Print how many entries of each kind there are, and their bytes.

    If nothing can be kept in the directory, it shows the reason.
    """
    from braid.support.cache_files import cache_directory, unusable_reason
    from braid.support.records.record_store import default_store

    unusable = unusable_reason()
    entries: list[dict[str, object]] = [
        {"kind": kind, "entries": len(files), "bytes": sum(map(_size, files))}
        for kind, files in _files()
    ]
    store = default_store()
    for kind, count in sorted(store.count().items()):
        entries.append({"kind": f"measurements: {kind}", "entries": count, "bytes": None})
    stored = sum(map(_size, store.files()))
    entries.append({"kind": "measurements", "entries": None, "bytes": stored})
    data = {"directory": str(cache_directory()), "unusable": unusable, "entries": entries}
    return Answer(data, lambda: _show(cache_directory(), unusable, entries))


def _show(directory: Path, unusable: str | None, entries: list[dict[str, object]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("kind", "entries", "bytes")
    for column in table.columns[1:]:
        column.justify = "right"
    for entry in entries:
        numbers = (entry["entries"], entry["bytes"])
        table.add_row(str(entry["kind"]), *("" if n is None else f"{n:,}" for n in numbers))
    print(directory if unusable is None else f"{directory} cannot be used: {unusable}")
    Console().print(table)


@cache.command()
@_with_errors
def verify() -> Answer:
    """Read every entry, and list what is damaged.

    The exit status is 1 if anything is.
    """
    from braid.support.errors import BraidError

    damaged = [(path, reason) for path, reason in _verdicts() if reason is not None]
    data = {"damaged": [{"entry": path, "reason": reason} for path, reason in damaged]}
    if not damaged:
        return Answer(data, lambda: print("all entries hold"))

    def show_damaged() -> None:
        for path, reason in damaged[:_DAMAGED_SHOWN]:
            print(f"{path}: {reason}")
        if len(damaged) > _DAMAGED_SHOWN:
            print(f"… and {len(damaged) - _DAMAGED_SHOWN} more")

    error = BraidError(
        f"{len(damaged)} entries of the cache are damaged",
        hint="each is made again when it is needed; 'braid cache clear' removes all entries",
    )
    return Answer(data, show_damaged, error=error)


@cache.command()
@_with_errors
def clear() -> Answer:
    """Remove all entries and measurements. Nothing else in the directory is touched.

    Records that are elsewhere, since $BRAID_RECORDS says so, are kept.
    """
    from braid.support.cache_files import OBJECTS, RECORDS, cache_directory, remove
    from braid.support.errors import BraidError
    from braid.support.records.record_store import open_store

    directory = cache_directory()
    halves = [path for path in (directory / OBJECTS).glob("*/??/.*") if path.is_file()]
    count = size = 0
    for path in (
        *(path for _, files in _files() for path in files),
        *halves,
        *open_store(directory / RECORDS).files(),
    ):
        count, size = count + 1, size + _size(path)
        try:
            remove(path)
        except OSError as error:
            raise BraidError(f"cannot remove '{path}': {error.strerror}") from error
    for path in sorted(_directories(directory), reverse=True):
        with suppress(OSError):  # it is not empty
            path.rmdir()
    data = {"directory": str(directory), "files": count, "bytes": size}
    return Answer(data, lambda: print(f"removed {count:,} files, {size:,} bytes"))


def _files() -> Iterator[tuple[str, list[Path]]]:
    """Yield the files of each kind of entries, and those that an older version left."""
    from braid.runtime.artifact_cache import default_artifacts
    from braid.support.cache_files import cache_directory
    from braid.support.object_cache import Kind, default_cache

    for kind in Kind:
        yield kind, list(default_cache().files(kind))
    yield "models", list(default_artifacts().files())
    older = [path for pattern in _OLDER for path in cache_directory().glob(pattern)]
    if older:
        yield "of an older version", older


def _verdicts() -> Iterator[tuple[str, str | None]]:
    """Yield every entry and measurement, with its defect; None for valid ones."""
    from braid.runtime.artifact_cache import default_artifacts
    from braid.support.object_cache import Kind, default_cache
    from braid.support.records.record_store import default_store

    entries = default_cache()
    for kind in Kind:
        for path in entries.files(kind):
            yield str(path), entries.damage(kind, path)
    artifacts = default_artifacts()
    for path in artifacts.files():
        yield str(path), artifacts.damage(path)
    yield from default_store().damage()


def _directories(directory: Path) -> Iterator[Path]:
    from braid.support.cache_files import OBJECTS

    for name in (OBJECTS, "objects", "rtl"):
        yield directory / name
        yield from (path for path in (directory / name).rglob("*") if path.is_dir())


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
