"""Reproducers: a file with the IR and the pass that crashed on it, in mlir-opt's format."""

import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import StringIO
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from braid.dialects.braid.settings import say_settings
from braid.passes.infrastructure.instrumentation import CountedPasses
from braid.passes.infrastructure.manager import PassCrashError, run_pipeline
from braid.passes.infrastructure.options import pass_text
from braid.support.errors import BraidError


def write_reproducer(path: Path | None, ir: str, crash: PassCrashError) -> Path:
    """Write `ir` and the pipeline of the pass that crashed alone to `path`.

    Without a path that is a new temporary file.

    Returns the path. Raises `BraidError` where it cannot be written.
    """
    failed = crash.failed
    checked = " --verify-decisions" if crash.is_wrong_claim else ""
    comment = (
        f"// The IR before pass '{failed.name}', which fails on it.\n"
        f"// Run it with: braid-opt --run-reproducer{checked} THIS_FILE\n"
    )
    text = comment + reproducer_text(ir, [failed])
    try:
        if path is None:
            descriptor, name = tempfile.mkstemp(prefix=f"braid-{failed.name}-", suffix=".mlir")
            os.close(descriptor)
            path = Path(name)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BraidError(f"cannot write the reproducer '{path}': {error.strerror}") from error
    return path


def reproducer_text(ir: str, passes: Sequence[ModulePass]) -> str:
    """Return the text of `ir` with the pipeline that `braid-opt --run-reproducer` runs on it."""
    pipeline = f"builtin.module({','.join(map(pass_text, passes))})"
    return (
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


def _escaped(text: str) -> str:
    """Return `text` within one of MLIR's string literals, which take printable ASCII only."""
    return "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\{byte:02X}"
        for byte in text.encode()
    )


def run_reproducibly(
    context: Context,
    module: ModuleOp,
    passes: Sequence[ModulePass],
    read_again: Callable[[], ModuleOp],
) -> None:
    """Run passes on a module in place, without verifying it after each.

    Raises what `run_pipeline` raises. A crash leaves, if the disk has space, a temporary file with
    the IR before the pass that crashed, which `PassCrashError.reproducer` names. That IR is made
    again from the module that `read_again` gives, so that runs that do not crash need not keep it.
    """
    counted = [CountedPasses(passes)]
    try:
        run_pipeline(context, module, passes, verify=False, instrumentation=counted)
    except PassCrashError as crash:
        text = _ir_before(context, passes[: crash.index], read_again)
        with suppress(BraidError):  # what crashed matters more than that it cannot be written down
            crash.reproducer = write_reproducer(None, text, crash)
        raise


def _ir_before(
    context: Context, passes: Sequence[ModulePass], read_again: Callable[[], ModuleOp]
) -> str:
    module = read_again()
    try:
        run_pipeline(context, module, passes, verify=False)
    except (BraidError, PassCrashError):
        # Some pass is not deterministic; the input is then the best there is.
        module = read_again()
    say_settings(module)
    stream = StringIO()
    Printer(stream, print_generic_format=True, print_debuginfo=True).print_op(module)
    return stream.getvalue()
