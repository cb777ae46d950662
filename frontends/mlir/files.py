"""From a file to the text in it."""

from pathlib import Path

from braid.frontends.mlir.nesting import check_nesting
from braid.frontends.mlir.syntax_error import MLIRSyntaxError
from braid.support.errors import BraidError, SourceLocation
from braid.support.input_files import read_regular

BYTECODE_MAGIC = b"ML\xefR"


def read_mlir_text(path: Path) -> str:
    """The text of the MLIR file at `path`. Raises `BraidError` where it cannot be read."""
    try:
        return decode_mlir(read_regular(path), str(path))
    except OSError as error:
        raise BraidError(f"cannot read '{path}': {error.strerror}") from error


def decode_mlir(data: bytes, file: str) -> str:
    """`data` as MLIR text. Raises `MLIRSyntaxError` for bytecode and what is not UTF-8."""
    location = SourceLocation(file)
    if data.startswith(BYTECODE_MAGIC):
        raise MLIRSyntaxError(
            "expected MLIR text, but this is MLIR bytecode",
            location=location,
            hint="convert it with 'mlir-opt FILE -o FILE.mlir'",
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MLIRSyntaxError(
            f"expected MLIR text, but byte {error.start} is not UTF-8", location=location
        ) from error
    check_nesting(text, file)
    return text
