"""What ends a command though nothing in it is wrong: an input that is too deep or too large."""

from braid.support.errors import BraidError


def exhausted(error: RecursionError | MemoryError) -> BraidError:
    """The diagnostic for a stack or a memory that was not enough.

    Readers refuse what is nested too deeply, so that this is the last resort.
    """
    if isinstance(error, RecursionError):
        return BraidError(
            "the model is nested too deeply",
            hint="write inner regions as functions, and long expressions in parts",
        )
    return BraidError(
        f"out of memory: {error}",
        hint="give smaller shapes (--shape), or use a machine with more memory",
    )
