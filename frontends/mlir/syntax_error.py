"""What is raised about text that is not MLIR."""

from braid.support.errors import BraidError


class MLIRSyntaxError(BraidError):
    """The text is not MLIR, or uses an op, attribute or type that no loaded dialect has."""
