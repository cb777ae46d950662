"""Reading the input, splitting it, and writing results so that no partial file is left."""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from braid.frontends.mlir import ParsedFile, decode_mlir, read_mlir_text
from braid.support.errors import BraidError
from braid.tools.terminal.outputs import STANDARD_OUTPUT, write_files, write_standard_output


def stored_pipeline(parsed: ParsedFile, file: str) -> str:
    """Return the pipeline that a reproducer holds. Raises `BraidError` if there is none."""
    pipeline = parsed.external_resources.get("mlir_reproducer", {}).get("pipeline")
    if not isinstance(pipeline, str):
        raise BraidError(
            f"'{file}' holds no pipeline to run",
            hint="a reproducer ends in {-# external_resources: {mlir_reproducer: {pipeline: …",
        )
    return pipeline


SPLIT_MARKER = "// -----"


@dataclass(frozen=True)
class Chunk:
    """A part of the input that is processed on its own."""

    text: str
    line_offset: int


def read_input(name: str) -> tuple[str, str]:
    """Return the name of the input for diagnostics and its text; `-` is standard input."""
    if name == "-":
        return "<stdin>", decode_mlir(sys.stdin.buffer.read(), "<stdin>")
    return name, read_mlir_text(Path(name))


def split_chunks(text: str, marker: str = SPLIT_MARKER) -> Iterator[Chunk]:
    """Yield the parts of `text` between the lines that hold nothing but the marker."""
    split_line = re.compile(rf"^[ \t]*{re.escape(marker)}[ \t]*$\n?", re.MULTILINE)
    begin = line = 0
    for match in split_line.finditer(text):
        yield Chunk(text[begin : match.start()], line)
        line += text.count("\n", begin, match.end())
        begin = match.end()
    yield Chunk(text[begin:], line)


def write_texts(texts: Sequence[tuple[Path | None, str | bytes]]) -> None:
    """Write texts or bytes to files, all or none, then those for standard output: None or `-`.

    Raises:
        BraidError: a file cannot be written.

    """
    write_files({p: _encoded(text) for p, text in texts if p and p != STANDARD_OUTPUT})
    for path, text in texts:
        if path is not None and path != STANDARD_OUTPUT:
            continue
        if isinstance(text, bytes):
            write_standard_output(text)
        else:
            sys.stdout.write(text)


def _encoded(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
