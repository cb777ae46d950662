"""Reading the input, splitting it, and writing results so that no partial file is left."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from braid.errors import BraidError
from braid.frontends.mlir import decode_mlir, read_mlir_text

SPLIT_MARKER = "// -----"
_SPLIT_LINE = re.compile(r"^[ \t]*// -----[ \t]*$\n?", re.MULTILINE)


@dataclass(frozen=True)
class Chunk:
    """A part of the input that is processed on its own."""

    text: str
    line_offset: int


def read_input(name: str) -> tuple[str, str]:
    """The name of the input for diagnostics and its text; `-` is standard input."""
    if name == "-":
        return "<stdin>", decode_mlir(sys.stdin.buffer.read(), "<stdin>")
    return name, read_mlir_text(Path(name))


def split_chunks(text: str) -> Iterator[Chunk]:
    """The parts of `text` between the lines that hold nothing but `// -----`."""
    begin = line = 0
    for match in _SPLIT_LINE.finditer(text):
        yield Chunk(text[begin : match.start()], line)
        line += text.count("\n", begin, match.end())
        begin = match.end()
    yield Chunk(text[begin:], line)


def write_output(path: Path | None, text: str) -> None:
    """Write `text` to standard output or, all or nothing, to `path`; raises `BraidError`."""
    try:
        if path is None or str(path) == "-":
            sys.stdout.write(text)
            sys.stdout.flush()
        elif path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")  # a device or a pipe
        else:
            _replace(path, text)
    except BrokenPipeError:
        # The reader has seen enough; keep Python from complaining when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if path is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        target = "standard output" if path is None else f"'{path}'"
        raise BraidError(f"cannot write to {target}: {error.strerror}") from error


def _replace(path: Path, text: str) -> None:
    """Write next to `path`, then rename: a failure leaves what was there before."""
    path = path.resolve()
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        os.chmod(temporary, mode)  # noqa: PTH101  mkstemp made it private
        os.replace(temporary, path)  # noqa: PTH105
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
