"""`--emit-bytecode`: the result as upstream MLIR's bytecode."""

from braid.support.errors import BraidError
from braid.support.upstream_process import EndedError, RejectedError, upstream_bytecode


def to_bytecode(text: str, version: int | None) -> bytes:
    """Return the bytecode of a module in the form that upstream tools read.

    Raises:
        BraidError: upstream does not take the module, or cannot write this version.

    """
    try:
        return upstream_bytecode(text, version)
    except (RejectedError, EndedError) as error:
        first = next(iter(str(error).splitlines()), "it says nothing")
        raise BraidError(
            f"upstream MLIR cannot write the module as bytecode: {first}",
            hint="without --emit-bytecode the result is text",
        ) from error
