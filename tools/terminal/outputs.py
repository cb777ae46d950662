"""The files that a command writes: all or none, and refused early where they cannot be.

`-` is standard output.
"""

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from braid.support.atomic_file import atomic_file, check_writable, resolved
from braid.support.errors import BraidError
from braid.tools.terminal.reporter import reporter

STANDARD_OUTPUT = Path("-")


def check_outputs(*paths: Path | None, model: Path | None = None) -> None:
    """Find reasons why outputs cannot be written; None is an output that is not wanted.

    Raises:
        BraidError: a file cannot be written, two outputs are the same file, or one is the file of
            the `model` that is read.

    """
    taken: set[Path] = set()
    for path in paths:
        if path == STANDARD_OUTPUT and reporter().is_json:
            raise BraidError(
                "--json prints its document on standard output, and so would '-'",
                hint="write to a file, or leave out --json",
            )
        if path is None or path == STANDARD_OUTPUT:
            continue
        check_writable(path)
        target = resolved(path)
        if model is not None and _is_same(target, model):
            raise BraidError(
                f"'{path}' is the model, and would be overwritten",
                hint="give the output a name of its own",
            )
        if target in taken:
            raise BraidError(
                f"two outputs would be written to '{path}'", hint="give each a name of its own"
            )
        if target.is_file() or not target.exists():  # a device takes several
            taken.add(target)


def _is_same(target: Path, model: Path) -> bool:
    """Return whether both are one file; whoever reads the model says why it cannot be read."""
    try:
        return target.is_file() and target.samefile(model)
    except (OSError, ValueError):
        return False


def check_directory(path: Path) -> None:
    """Find what would keep files from being written to a directory, which need not exist yet.

    Raises:
        BraidError: a file has that name or the name of a parent directory, or there is no
        permission.

    """
    try:
        there = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
    except OSError as error:
        raise BraidError(f"cannot make the directory '{path}': {error.strerror}") from error
    if not there.is_dir():
        raise BraidError(
            f"cannot make the directory '{path}': '{there}' is a file",
            hint="give a directory, or a name that is free",
        )
    check_writable(there / path.name)


def make_directory(path: Path) -> None:
    """Make a directory and its parents, unless they exist.

    Raises:
        BraidError: there is a file of that name, or no permission.

    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BraidError(f"cannot make the directory '{path}': {error.strerror}") from error


def write_files(contents: Mapping[Path, bytes | memoryview]) -> None:
    """Write all these files, or none, and after them what goes to standard output.

    Raises:
        BraidError: one of them cannot be written.

    """
    with ExitStack() as files:
        for path, content in contents.items():
            if path != STANDARD_OUTPUT:
                file = files.enter_context(atomic_file(path))
                file.write(content)
                file.flush()  # a full disk is found before the first of them replaces a file
    if STANDARD_OUTPUT in contents:
        write_standard_output(contents[STANDARD_OUTPUT])


def write_standard_output(content: bytes | memoryview) -> None:
    """Write bytes behind what was printed."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
