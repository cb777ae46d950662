"""Writing measurements down, so that later compilations find them."""

from collections.abc import Mapping
from pathlib import Path

from braid.support.diagnostics import Diagnostic, emit
from braid.support.record_lines import append_lines, encode_line
from braid.targets.costs.cost_records import records_path


def append_records(
    seconds: Mapping[str, float], details: Mapping[str, str], path: Path | None = None
) -> None:
    """Adds measured seconds by `record_key` to a file, by default the user's.

    `details` say to people, by key, what was measured. Any number of processes may write at
    once. Where the file cannot be written, a warning says that the measurements are lost.
    """
    path = path or records_path()
    lines = (encode_line(key, value, details.get(key, "")) for key, value in seconds.items())
    try:
        append_lines(path, lines)
    except OSError as error:
        emit(
            Diagnostic(
                "warning",
                f"measurements cannot be kept in '{path}': {error.strerror or error}",
                hint="nothing is chosen by them; set BRAID_CACHE_DIR to a directory with room "
                "that you may write to",
            )
        )
