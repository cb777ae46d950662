"""`braid cache`: what is kept from earlier compilations, whether it holds, and its removal."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import typer

cache = typer.Typer(
    name="cache",
    help="Look into the cache of kernels and measurements, or empty it.",
    rich_markup_mode=None,
)

_DAMAGED_SHOWN = 20
_OLDER = "objects/??/*.o"
"""Entries of versions that wrote no digests."""


@cache.command()
def show() -> None:
    """Print how many entries of each kind there are, and their bytes."""
    from rich.console import Console
    from rich.table import Table

    from braid.support.cache_directory import cache_directory

    table = Table("kind", "entries", "bytes")
    for column in table.columns[1:]:
        column.justify = "right"
    for kind, files in _files():
        table.add_row(kind, f"{len(files):,}", f"{sum(map(_size, files)):,}")
    records = _records()
    table.add_row("measurements", f"{_count(records):,}", f"{_size(records):,}")
    print(cache_directory())
    Console().print(table)


@cache.command()
def verify() -> None:
    """Read every entry, and list what is damaged.

    The exit status is 1 if anything is.
    """
    from braid.support.errors import BraidError

    damaged = [(path, reason) for path, reason in _verdicts() if reason is not None]
    for path, reason in damaged[:_DAMAGED_SHOWN]:
        print(f"{path}: {reason}")
    if len(damaged) > _DAMAGED_SHOWN:
        print(f"… and {len(damaged) - _DAMAGED_SHOWN} more")
    if damaged:
        raise BraidError(
            f"{len(damaged)} entries of the cache are damaged",
            hint="each is made again when it is needed; 'braid cache clear' removes all entries",
        )
    print("all entries hold")


@cache.command()
def clear() -> None:
    """Remove all entries and measurements. Nothing else in the directory is touched."""
    from braid.support.cache_directory import OBJECTS, cache_directory
    from braid.support.entry_file import remove
    from braid.support.errors import BraidError

    directory = cache_directory()
    halves = [path for path in (directory / OBJECTS).glob("*/??/.*") if path.is_file()]
    count = size = 0
    for path in (*(path for _, files in _files() for path in files), *halves, _records()):
        if not path.exists() and not path.is_symlink():
            continue
        count, size = count + 1, size + _size(path)
        try:
            remove(path)
        except OSError as error:
            raise BraidError(f"cannot remove '{path}': {error.strerror}") from error
    for path in sorted(_directories(directory), reverse=True):
        with suppress(OSError):  # it is not empty
            path.rmdir()
    print(f"removed {count:,} files, {size:,} bytes")


def _files() -> Iterator[tuple[str, list[Path]]]:
    """The files of each kind of entries, and those that an older version left."""
    from braid.support.cache_directory import cache_directory
    from braid.support.object_cache import Kind, default_cache

    for kind in Kind:
        yield kind, list(default_cache().files(kind))
    older = list(cache_directory().glob(_OLDER))
    if older:
        yield "of an older version", older


def _verdicts() -> Iterator[tuple[str, str | None]]:
    """Every entry and measurement, and what is wrong with it; None for what holds."""
    from braid.support.object_cache import Kind, default_cache
    from braid.support.record_lines import decode_line, read_lines

    entries = default_cache()
    for kind in Kind:
        for path in entries.files(kind):
            yield str(path), entries.damage(kind, path)
    try:
        lines = read_lines(_records())
    except FileNotFoundError:
        return
    except OSError as error:
        yield str(_records()), error.strerror or str(error)
        return
    for number, line in enumerate(lines, 1):
        damage = "it does not match its digest" if decode_line(line) is None else None
        yield f"{_records()}:{number}", damage


def _directories(directory: Path) -> Iterator[Path]:
    from braid.support.cache_directory import OBJECTS

    for name in (OBJECTS, "objects"):
        yield directory / name
        yield from (path for path in (directory / name).rglob("*") if path.is_dir())


def _records() -> Path:
    from braid.targets.costs.cost_records import records_path

    return records_path()


def _count(records: Path) -> int:
    from braid.support.record_lines import read_lines

    try:
        return len(read_lines(records))
    except OSError:
        return 0


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
