"""Reading the input, splitting it, and writing results so that no partial file is left."""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from braid.frontends.mlir import ParsedFile, decode_mlir, read_mlir_text
from braid.support.errors import BraidError
from braid.tools.terminal.outputs import STANDARD_OUTPUT, write_files


def stored_pipeline(parsed: ParsedFile, file: str) -> str:
    """The pipeline that a reproducer holds; raises `BraidError` where there is none."""
    pipeline = parsed.external_resources.get("mlir_reproducer", {}).get("pipeline")
    if not isinstance(pipeline, str):
        raise BraidError(
            f"'{file}' holds no pipeline to run",
            hint="a reproducer ends in {-# external_resources: {mlir_reproducer: {pipeline: …",
        )
    return pipeline


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


def write_texts(texts: Sequence[tuple[Path | None, str]]) -> None:
    """Write texts to files, all or none, then those for standard output: None or `-`.

    Raises:
        BraidError: a file cannot be written.

    """
    files = {path: text.encode() for path, text in texts if path and path != STANDARD_OUTPUT}
    write_files(files)
    for path, text in texts:
        if path is None or path == STANDARD_OUTPUT:
            sys.stdout.write(text)
