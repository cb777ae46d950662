"""Reading the input, splitting it, and writing results so that no partial file is left."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from braid.frontends.mlir import decode_mlir, read_mlir_text
from braid.runtime.atomic_file import atomic_file

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
    if path is None or str(path) == "-":
        sys.stdout.write(text)
        return
    with atomic_file(path) as file:
        file.write(text.encode())
