"""What is left of a crash inside a pipeline: a reproducer."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from io import StringIO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from braid.passes.infrastructure.manager import PassCrashError, run_pipeline
from braid.passes.infrastructure.reproducer import write_reproducer
from braid.support.errors import BraidError


def run_reproducibly(
    context: Context,
    module: ModuleOp,
    passes: Sequence[ModulePass],
    read_again: Callable[[], ModuleOp],
) -> None:
    """Run passes on a module in place, without verifying it after each.

    Raises what `run_pipeline` raises. A crash leaves, where there is room, a temporary file with
    the IR before the pass that crashed, which `PassCrashError.reproducer` names. That IR is made
    again from the module that `read_again` gives, so that runs that do not crash need not keep it.
    """
    try:
        run_pipeline(context, module, passes, verify=False)
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
    stream = StringIO()
    Printer(stream, print_generic_format=True, print_debuginfo=True).print_op(module)
    return stream.getvalue()
