"""Reproducers: a file with the IR and the pass that fails on it, in mlir-opt's format."""

import os
import tempfile
from pathlib import Path

from braid.passes.infrastructure.manager import PassCrashError
from braid.passes.infrastructure.option_values import pass_text
from braid.support.errors import BraidError


def write_reproducer(path: Path | None, ir: str, crash: PassCrashError) -> Path:
    """Write `ir` and the pipeline of the pass that crashed alone to `path`.

    Without a path that is a new temporary file.

    Returns the path. Raises `BraidError` where it cannot be written.
    """
    failed = crash.failed
    pipeline = f"builtin.module({pass_text(failed)})"
    checked = " --verify-decisions" if crash.is_wrong_claim else ""
    text = (
        f"// The IR before pass '{failed.name}', which fails on it.\n"
        f"// Run it with: braid-opt --run-reproducer{checked} THIS_FILE\n"
        f"{ir.rstrip()}\n\n"
        "{-#\n"
        "  external_resources: {\n"
        "    mlir_reproducer: {\n"
        f'      pipeline: "{_escaped(pipeline)}",\n'
        "      disable_threading: true,\n"
        "      verify_each: true\n"
        "    }\n"
        "  }\n"
        "#-}\n"
    )
    try:
        if path is None:
            descriptor, name = tempfile.mkstemp(prefix=f"braid-{failed.name}-", suffix=".mlir")
            os.close(descriptor)
            path = Path(name)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BraidError(f"cannot write the reproducer '{path}': {error.strerror}") from error
    return path


def _escaped(text: str) -> str:
    """`text` within one of MLIR's string literals, which take printable ASCII only."""
    return "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\{byte:02X}"
        for byte in text.encode()
    )
