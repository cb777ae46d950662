"""Reading `.mlir` text into xDSL, with the source location of every op kept."""

from braid.frontends.mlir.files import BYTECODE_MAGIC, MLIRSyntaxError, decode_mlir, read_mlir_text
from braid.frontends.mlir.parser import ExternalResources, ParsedFile, parse_mlir

__all__ = [
    "BYTECODE_MAGIC",
    "ExternalResources",
    "MLIRSyntaxError",
    "ParsedFile",
    "decode_mlir",
    "parse_mlir",
    "read_mlir_text",
]
