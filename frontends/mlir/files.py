"""From a file to the text in it."""

from pathlib import Path

from braid.support.errors import BraidError, SourceLocation

_BYTECODE_MAGIC = b"ML\xefR"


class MLIRSyntaxError(BraidError):
    """The text is not MLIR, or uses an op, attribute or type that no loaded dialect has."""


def read_mlir_text(path: Path) -> str:
    """The text of the MLIR file at `path`. Raises `BraidError` where it cannot be read."""
    try:
        return decode_mlir(path.read_bytes(), str(path))
    except OSError as error:
        raise BraidError(f"cannot read '{path}': {error.strerror}") from error


def decode_mlir(data: bytes, file: str) -> str:
    """`data` as MLIR text. Raises `MLIRSyntaxError` for bytecode and what is not UTF-8."""
    location = SourceLocation(file)
    if data.startswith(_BYTECODE_MAGIC):
        raise MLIRSyntaxError(
            "expected MLIR text, but this is MLIR bytecode",
            location=location,
            hint="convert it with 'mlir-opt FILE -o FILE.mlir'",
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MLIRSyntaxError(
            f"expected MLIR text, but byte {error.start} is not UTF-8", location=location
        ) from error
