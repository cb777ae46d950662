"""The formats of a model's file, by its contents."""

import re

ARTIFACT_MAGIC = b"BRAIDART"
"""What an artifact begins with."""
BYTECODE_MAGIC = b"ML\xefR"
"""What MLIR's bytecode begins with."""
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")


def is_mlir(data: bytes) -> bool:
    """Return whether these are bytes of text or of MLIR's bytecode: protobuf has other bytes."""
    return data.startswith(BYTECODE_MAGIC) or _CONTROL.search(data) is None
