"""What is wrong with a command line, said as all errors are, with a hint."""

from collections.abc import Sequence

from braid.support.errors import BraidError


def usage_error(error: Exception, arguments: Sequence[str]) -> BraidError | None:
    """Return the diagnostic for what typer finds wrong; None for errors of other kinds."""
    # Errors of a command line have this method in all versions of typer.
    format_message = getattr(error, "format_message", None)
    if format_message is None:
        return None
    message = " ".join(str(format_message()).split())
    command = getattr(getattr(error, "ctx", None), "command_path", "braid")
    if "unexpected extra argument" in message and "--json" in arguments:
        return BraidError(
            message, hint=f"--json takes no file, it prints: {command} … --json > FILE"
        )
    return BraidError(message, hint=f"see {command} --help")
