"""braid: an MLIR-based graph compiler for tensor programs."""

__version__ = "0.1.0"
