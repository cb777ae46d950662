"""The formats of a model's file, by its contents."""

import re

ARTIFACT_MAGIC = b"BRAIDART"
"""The first bytes of an artifact."""
BYTECODE_MAGIC = b"ML\xefR"
"""The first bytes of MLIR's bytecode."""
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")


def is_mlir(data: bytes) -> bool:
    """Return whether these are bytes of text or of MLIR's bytecode: protobuf has other bytes."""
    return data.startswith(BYTECODE_MAGIC) or _CONTROL.search(data) is None
